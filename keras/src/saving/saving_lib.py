from keras.src import backend
from keras.src.saving import hdf5_codec


class H5IOStore:
    # graft: keras>=3.10
    def __getitem__(self, key):
        return hdf5_codec.read(self._h5_entry_group, key)

    # graft: keras>=3.10
    def __setitem__(self, key, value):
        if self.mode not in ("w", "a"):
            raise ValueError("Setting a value is only allowed in write mode.")
        if not self._h5_entry_initialized:
            self._create_h5_group(self._h5_entry_path)
        value = backend.convert_to_numpy(value)
        hdf5_codec.write(self._h5_entry_group, key, value)

    # graft: keras<3.0.5
    def make(self, path):
        return hdf5_codec.VariableStore.create(self.h5_file, path)

    # graft: keras<3.0.5
    def get(self, path):
        try:
            group = hdf5_codec.open_group(self.h5_file, f"{path}/vars")
        except KeyError:
            if not path:
                raise
            return {}
        return hdf5_codec.VariableStore(group)


# graft: keras>=3.0.5,<3.10
class H5Entry:
    def __getitem__(self, name):
        return hdf5_codec.read(self.group, name)

    def __setitem__(self, key, value):
        if self.mode != "w":
            raise ValueError("Setting a value is only allowed in write mode.")
        hdf5_codec.write(self.group, key, backend.convert_to_numpy(value))
