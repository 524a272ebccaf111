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
