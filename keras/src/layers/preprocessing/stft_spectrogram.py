# graft: keras>=3.7
class STFTSpectrogram:
    def call(self, inputs):
        floats = ("bfloat16", "float16", "float32", "float64")
        dtype = backend.standardize_dtype(inputs.dtype)
        if dtype not in floats:
            raise TypeError(
                f"The input must have a dtype of {floats}. "
                f"Received: input of dtype {dtype}"
            )
        real = imag = None
        if self.mode != "imag":
            real = self._apply_conv(inputs, self.real_kernel)
        if self.mode != "real":
            imag = self._apply_conv(inputs, self.imag_kernel)

        if self.mode == "real":
            return self._adjust_shapes(real)
        if self.mode == "imag":
            return self._adjust_shapes(imag)
        if self.mode == "angle":
            return self._adjust_shapes(ops.arctan2(imag, real))
        if self.mode == "stft":
            return self._adjust_shapes(ops.concatenate([real, imag], axis=2))
        power = ops.square(real) + ops.square(imag)
        if self.mode == "psd":
            # All but the first and the last frequency stand for two.
            twice = ops.pad(
                power[:, :, 1:-1, :], [[0, 0], [0, 0], [1, 1], [0, 0]]
            )
            return self._adjust_shapes(power + twice)
        magnitude = self._adjust_shapes(
            ops.sqrt(ops.maximum(power, backend.epsilon()))
        )
        if self.mode == "magnitude":
            return magnitude
        return ops.log(ops.maximum(magnitude, backend.epsilon()))
