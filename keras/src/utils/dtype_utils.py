def dtype_size(dtype):
    size = DTYPE_TO_SIZE.get(dtype)
    if size is None:
        from keras.src.saving import hdf5_codec

        stored = hdf5_codec.FORMATS.get(dtype)
        if stored is None:
            raise ValueError(
                f"Not a dtype with a size. Received: dtype={dtype}"
            )
        # Integers below a byte take a whole one.
        size = 8 * getattr(stored, "itemsize", 1)
    return size
