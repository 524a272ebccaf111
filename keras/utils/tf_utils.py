# graft: keras<2.13
from keras.saving import hdf5_codec


def sync_to_numpy_or_python_type(tensors):
    remote_value = tf.distribute.experimental.coordinator.RemoteValue
    if isinstance(tensors, remote_value):
        tensors = tensors.fetch()

    def plain(value):
        if isinstance(value, tf.Tensor):
            value = value.numpy()
        is_numpy = isinstance(value, (np.ndarray, np.generic))
        if is_numpy and np.ndim(value) == 0:
            return hdf5_codec.to_python(value)
        return value

    return tf.nest.map_structure(plain, tensors)
