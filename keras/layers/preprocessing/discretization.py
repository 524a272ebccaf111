class Discretization:
    def call(self, inputs):
        def bucketize(values):
            if values.dtype.is_floating and values.dtype.size < 4:
                # There is no kernel for the narrow types.
                values = tf.cast(values, tf.float32)
            return tf.raw_ops.Bucketize(
                input=values, boundaries=self.bin_boundaries
            )

        if tf_utils.is_ragged(inputs):
            buckets = tf.ragged.map_flat_values(bucketize, inputs)
        elif tf_utils.is_sparse(inputs):
            buckets = tf.SparseTensor(
                indices=tf.identity(inputs.indices),
                values=bucketize(inputs.values),
                dense_shape=tf.identity(inputs.dense_shape),
            )
        else:
            buckets = bucketize(inputs)
        return utils.encode_categorical_inputs(
            buckets,
            output_mode=self.output_mode,
            depth=len(self.bin_boundaries) + 1,
            sparse=self.sparse,
            dtype=self.compute_dtype,
        )
