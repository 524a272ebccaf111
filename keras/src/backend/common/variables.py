import numpy as np


class Variable:
    def assign(self, value):
        if isinstance(value, np.ndarray) and value.dtype.type is np.void:
            # An array of an `ml_dtypes` type that lost its type on the way,
            # through `np.savez` or a file without labels.
            from keras.src.saving import hdf5_codec

            value = hdf5_codec.cast(value, self._dtype)
        value = self._convert_to_tensor(value, dtype=self._dtype)
        if not shape_equal(value.shape, self.shape):
            raise ValueError(
                "The shapes of a variable and its new value must match. "
                f"Expected: {tuple(self.shape)} for variable '{self.path}'. "
                f"Received: value.shape={tuple(value.shape)}."
            )
        if in_stateless_scope():
            get_stateless_scope().add_update((self, value))
        else:
            self._direct_assign(value)
        return value
