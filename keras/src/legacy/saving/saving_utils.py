from keras.src import api_export
from keras.src.saving import object_registration


def _deserialize_nested_config(deserialize_fn, config):
    if isinstance(config, str):
        # A custom object, or a name that `compile` knows.
        return object_registration.get_registered_object(config) or config
    if isinstance(config, dict):
        if "class_name" in config:
            return deserialize_fn(config)
        return {
            name: _deserialize_nested_config(deserialize_fn, item)
            for name, item in config.items()
        }
    if isinstance(config, (tuple, list)):
        return [
            _deserialize_nested_config(deserialize_fn, item) for item in config
        ]
    if config is None:
        return None
    raise ValueError(
        "A saved loss or metric is a name or a config, or a list or "
        f"dictionary of these. Received: config={config}"
    )


def _resolve_compile_arguments_compat(obj, obj_config, module):
    if not isinstance(obj, str) or obj in module.ALL_OBJECTS_DICT:
        return obj
    if isinstance(obj_config, str):
        raise ValueError(
            "The name of a built-in or custom object was expected; give custom "
            "ones as `custom_objects`, or load with `compile=False`. "
            f"Received: '{obj_config}'"
        )
    # Some public classes, `Lamb` for one, are missing from the dictionary.
    package = module.__name__.rpartition(".")[2]
    cls = api_export.get_symbol_from_name(
        f"keras.{package}.{obj_config['class_name']}"
    )
    if hasattr(cls, "from_config"):
        return cls.from_config(obj_config["config"])
    return module.get(obj_config["config"]["name"])
