class UpSampling2D:
    def call(self, inputs):
        dtype = backend.standardize_dtype(inputs.dtype)
        x = inputs
        if self.interpolation == "bicubic" and dtype in ("bfloat16", "float16"):
            # TensorFlow has no gradient of it in a 16-bit type.
            x = ops.cast(x, "float32")
        x = self._resize_images(
            x,
            self.size[0],
            self.size[1],
            self.data_format,
            interpolation=self.interpolation,
        )
        return ops.cast(x, dtype)
