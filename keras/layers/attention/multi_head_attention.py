# graft: keras<2.14
class MultiHeadAttention:
    # graft: keras<2.10
    def _build_from_signature(self, query, value, key=None):
        self._built_from_signature = True
        key = value if key is None else key
        self._query_shape = tf.TensorShape(getattr(query, "shape", query))
        self._value_shape = tf.TensorShape(getattr(value, "shape", value))
        self._key_shape = tf.TensorShape(getattr(key, "shape", key))
        common_kwargs = {
            "kernel_initializer": self._kernel_initializer,
            "bias_initializer": self._bias_initializer,
            "kernel_regularizer": self._kernel_regularizer,
            "bias_regularizer": self._bias_regularizer,
            "activity_regularizer": self._activity_regularizer,
            "kernel_constraint": self._kernel_constraint,
            "bias_constraint": self._bias_constraint,
            # Else they take the global policy, when a model is loaded too.
            "dtype": self._dtype_policy,
        }

        def projection(name, shape, size):
            equation, bias_axes, rank = _build_proj_equation(
                shape.rank - 1, bound_dims=1, output_dims=2
            )
            return rank, einsum_dense.EinsumDense(
                equation,
                output_shape=_get_output_shape(
                    rank - 1, [self._num_heads, size]
                ),
                bias_axes=bias_axes if self._use_bias else None,
                name=name,
                **common_kwargs,
            )

        with tf_utils.maybe_init_scope(self):
            _, self._query_dense = projection(
                "query", self._query_shape, self._key_dim
            )
            _, self._key_dense = projection(
                "key", self._key_shape, self._key_dim
            )
            rank, self._value_dense = projection(
                "value", self._value_shape, self._value_dim
            )
            self._build_attention(rank)
            self._output_dense = self._make_output_dense(
                self._query_shape.rank - 1, common_kwargs, "attention_output"
            )

    # graft: keras>=2.10
    def _get_common_kwargs_for_sublayer(self):
        def fresh(initializer):
            # Each layer its own: an initializer repeats its values.
            return initializer.__class__.from_config(initializer.get_config())

        return {
            "kernel_initializer": fresh(self._kernel_initializer),
            "bias_initializer": fresh(self._bias_initializer),
            "kernel_regularizer": self._kernel_regularizer,
            "bias_regularizer": self._bias_regularizer,
            "activity_regularizer": self._activity_regularizer,
            "kernel_constraint": self._kernel_constraint,
            "bias_constraint": self._bias_constraint,
            # Else they take the global policy, when a model is loaded too.
            "dtype": self._dtype_policy,
        }

    def _build_attention(self, rank):
        axes = self._attention_axes
        self._attention_axes = tuple(
            range(1, rank - 2) if axes is None else axes
        )
        (
            self._dot_product_equation,
            self._combine_equation,
            scores_rank,
        ) = _build_attention_equation(rank, attn_axes=self._attention_axes)
        self._softmax = activation.Softmax(
            axis=tuple(
                range(scores_rank - len(self._attention_axes), scores_rank)
            ),
            dtype=self._dtype_policy,
        )
        self._dropout_layer = regularization.Dropout(
            rate=self._dropout, dtype=self._dtype_policy
        )
