from keras.saving import hdf5_codec

# graft: keras>=2.11 | tf_keras
from keras.saving.legacy import serialization

# graft: keras<2.11
from keras.utils import generic_utils as serialization

# isort: off
# graft: keras<2.12
from tensorflow.python.framework import type_spec as type_spec_registry

# graft: keras>=2.12 | tf_keras
from tensorflow.python.framework import type_spec_registry


def get_json_type(obj):
    if hasattr(obj, "get_config"):
        config = serialization.serialize_keras_object(obj)
        return {**config, "__passive_serialization__": True}
    if isinstance(obj, (np.ndarray, np.generic)):
        return hdf5_codec.to_python(obj)
    # Functions, such as losses, and types.
    if callable(obj):
        return obj.__name__
    if isinstance(obj, tf.compat.v1.Dimension):
        return obj.value
    if isinstance(obj, tf.TensorShape):
        return obj.as_list()
    if isinstance(obj, tf.DType):
        return obj.name
    if isinstance(obj, collections.abc.Mapping):
        return dict(obj)
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__"}
    if isinstance(obj, wrapt.ObjectProxy):
        return obj.__wrapped__
    if isinstance(obj, tf.TypeSpec):
        try:
            name = type_spec_registry.get_name(type(obj))
        except ValueError:
            raise ValueError(
                f"Unable to serialize {obj} to JSON. Expected a TypeSpec "
                f"class that is registered. Received: {type(obj)}."
            )
        return {
            "class_name": "TypeSpec",
            "type_spec": name,
            "serialized": _encode_tuple(obj._serialize()),
        }
    if isinstance(obj, tf.__internal__.CompositeTensor):
        tensors = [
            (tensor.dtype.name, hdf5_codec.to_python(tensor.numpy()))
            for tensor in tf.nest.flatten(obj, expand_composites=True)
        ]
        return {
            "class_name": "CompositeTensor",
            "spec": get_json_type(tf.type_spec_from_value(obj)),
            "tensors": tensors,
        }
    if isinstance(obj, enum.Enum):
        return obj.value
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "value": obj.decode("utf-8")}
    raise TypeError(
        f"Unable to serialize {obj} to JSON. Unrecognized type {type(obj)}."
    )
