from keras.src.saving import hdf5_codec


# graft: keras>=3.6
class KerasFileEditor:
    def _extract_weights_from_store(self, data, metadata=None, inner_path=""):
        metadata = metadata or {}
        if data.attrs:
            metadata[inner_path] = dict(data.attrs)
        result = collections.OrderedDict()
        for key in data.keys():
            path = f"{inner_path}/{key}"
            # A link is not followed: the codec refuses to open it.
            link = data.get(key, getclass=True, getlink=True)
            child = data[key] if link is h5py.HardLink else None
            if isinstance(child, h5py.Group):
                group = hdf5_codec.open_group(data, key)
                if "vars" in group:
                    group = hdf5_codec.open_group(group, "vars")
                if len(group):
                    result[key], metadata = self._extract_weights_from_store(
                        group, metadata=metadata, inner_path=path
                    )
            elif child is None or isinstance(child, h5py.Dataset):
                dataset = hdf5_codec.open_dataset(data, key)
                if dataset.nbytes > 1 << 32:
                    raise ValueError(
                        "A weight of more than 4 GiB is not read into an "
                        f"editor. Received: '{path}' of {dataset.nbytes} bytes."
                    )
                result[key] = hdf5_codec.read_dataset(dataset)
        return result, metadata
