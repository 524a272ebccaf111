# graft: keras>=2.13 | tf_keras
from keras.engine.input_spec import InputSpec
from keras.initializers import TruncatedNormal
from keras.mixed_precision import autocast_variable


class SpectralNormalization:
    def build(self, input_shape):
        super().build(input_shape)
        self.input_spec = InputSpec(shape=[None] + list(input_shape[1:]))
        for name in ("kernel", "embeddings"):
            if hasattr(self.layer, name):
                self.kernel = getattr(self.layer, name)
                break
        else:
            raise ValueError(
                "Expected a layer with an attribute `kernel` or `embeddings`. "
                f"Received: layer={self.layer}"
            )
        self.kernel_shape = self.kernel.shape.as_list()
        self.vector_u = self.add_weight(
            name="vector_u",
            shape=(1, self.kernel_shape[-1]),
            dtype=self.kernel.dtype,
            initializer=TruncatedNormal(stddev=0.02),
            trainable=False,
        )

    # graft: tf_keras>=2.19
    def _update_weights(self):
        # In the dtype of the variables: the kernel must not be rounded to the
        # compute dtype, and could not be assigned from it.
        with autocast_variable.enable_auto_cast_variables(None):
            kernel, vector_u = tf.cond(
                tf.reduce_all(tf.equal(self.kernel, 0)),
                lambda: (self.kernel.read_value(), self.vector_u.read_value()),
                self.normalize_weights,
            )
            self.kernel.assign(kernel)
            self.vector_u.assign(vector_u)
