import numpy as np

from keras.src.backend.common import global_state


def serialize_keras_object(instance):
    instance = inspect.unwrap(instance)
    if instance is None:
        return None
    if not hasattr(instance, "get_config"):
        if hasattr(instance, "__name__"):
            return object_registration.get_registered_name(instance)
        raise ValueError(
            "Only functions and objects with a `get_config` method can be "
            f"serialized. Received: instance={instance}"
        )
    if global_state.get_global_attribute("use_legacy_config", False):
        from keras.src.legacy.saving import hdf5_model

        if hdf5_model.is_built_in(instance):
            return hdf5_model.built_in_config(instance)
    name = object_registration.get_registered_name(instance.__class__)
    try:
        config = instance.get_config()
    except NotImplementedError:
        if not _SKIP_FAILED_SERIALIZATION:
            raise
        return serialize_keras_class_and_config(
            name, {_LAYER_UNDEFINED_CONFIG_KEY: True}
        )
    serialized = {}
    for key, item in config.items():
        if isinstance(item, np.generic):
            # JSON knows no number of NumPy or `ml_dtypes`; Python's are exact.
            item = item.item()
        if isinstance(item, str):
            serialized[key] = item
            continue
        try:
            serialized[key] = serialize_keras_object(item)
        except ValueError:
            # Plain data.
            serialized[key] = item
            continue
        if isinstance(serialized[key], dict) and not isinstance(item, dict):
            serialized[key]["__passive_serialization__"] = True
    return serialize_keras_class_and_config(name, serialized, instance)
