class CategoryEncoding:
    # graft: keras>=3.6
    def _encode(self, inputs, count_weights=None):
        return numerical_utils.encode_categorical_inputs(
            self.backend.core.convert_to_tensor(inputs),
            output_mode=self.output_mode,
            depth=self.num_tokens,
            dtype=self.compute_dtype,
            sparse=self.sparse,
            count_weights=count_weights,
            backend_module=self.backend,
        )
