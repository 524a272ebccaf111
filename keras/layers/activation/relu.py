# graft: keras==2.12.*
from keras.saving import hdf5_codec


class ReLU:
    def get_config(self):
        config = super().get_config()
        for name in ("max_value", "negative_slope", "threshold"):
            value = getattr(self, name)
            # The .keras archive of this release cannot hold arrays.
            config[name] = (
                value if value is None else hdf5_codec.to_python(value)
            )
        return config
