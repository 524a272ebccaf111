class CategoryEncoding:
    # graft: keras>=3.4
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

    # graft: keras<3.4
    def _encode(self, inputs, count_weights=None):
        if self.output_mode != "count":
            encode = getattr(self.backend.nn, self.output_mode)
            sparse = {"sparse": True} if getattr(self, "sparse", False) else {}
            outputs = encode(
                inputs, self.num_tokens, dtype=self.dtype, **sparse
            )
        elif count_weights is None:
            outputs = self._count(inputs)
        else:
            outputs = self._count(inputs, count_weights=count_weights)
        return self.backend.cast(outputs, self.compute_dtype)
