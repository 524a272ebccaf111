from keras.src import backend


class Orthogonal:
    def __call__(self, shape, dtype=None):
        if len(shape) < 2:
            raise ValueError(
                "An orthogonal matrix needs at least two dimensions. "
                f"Received: shape={shape} of rank {len(shape)}."
            )
        # The QR decomposition has kernels for the wider types only.
        dtype = backend.standardize_dtype(dtype)
        wide = dtype if dtype in ("float32", "float64") else "float32"
        num_cols = shape[-1]
        num_rows = 1
        for dim in shape[:-1]:
            num_rows *= dim
        flat_shape = (max(num_cols, num_rows), min(num_cols, num_rows))
        a = random.normal(flat_shape, seed=self.seed, dtype=wide)
        q, r = ops.qr(a)
        # With the signs of R taken out, Q is uniformly distributed.
        q *= ops.sign(ops.diag(r))
        if num_rows < num_cols:
            q = ops.transpose(q)
        return ops.cast(self.gain * ops.reshape(q, shape), dtype)
