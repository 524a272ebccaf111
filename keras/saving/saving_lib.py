from keras import backend
from keras.saving import hdf5_codec


# graft: keras>=2.12 | tf_keras
class H5IOStore:
    def make(self, path):
        group = self.h5_file.create_group(path) if path else self.h5_file
        return hdf5_codec.VariableStore(
            group.create_group("vars"), backend.dtype_numpy
        )

    def get(self, path):
        try:
            group = hdf5_codec.open_group(self.h5_file, f"{path}/vars")
        except KeyError:
            if not path:
                raise
            return {}
        return hdf5_codec.VariableStore(group, backend.dtype_numpy)


# graft: keras==2.11.*
class H5IOHandler:
    def make(self, path):
        group = self.h5_file.create_group(path) if path else self.h5_file
        return hdf5_codec.VariableStore(
            group.create_group("vars"), backend.dtype_numpy
        )

    def get(self, path):
        if path and path not in self.h5_file:
            print(f"Warning: the file has nothing for {path}")
            return {}
        group = hdf5_codec.open_group(self.h5_file, f"{path}/vars")
        return hdf5_codec.VariableStore(group, backend.dtype_numpy)
