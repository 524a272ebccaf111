class Orthogonal:
    def _generate_init_val(self, shape, dtype):
        # The QR decomposition has kernels for the wider types only.
        wide = dtype if dtype in (tf.float32, tf.float64) else tf.float32
        num_cols = shape[-1]
        num_rows = 1
        for dim in shape[:-1]:
            num_rows *= dim
        flat_shape = (max(num_cols, num_rows), min(num_cols, num_rows))
        a = self._random_generator.random_normal(flat_shape, dtype=wide)
        q, r = tf.linalg.qr(a, full_matrices=False)
        # With the signs of R taken out, Q is uniformly distributed.
        q *= tf.sign(tf.linalg.tensor_diag_part(r))
        if num_rows < num_cols:
            q = tf.linalg.matrix_transpose(q)
        return tf.cast(self.gain * tf.reshape(q, shape), dtype)
