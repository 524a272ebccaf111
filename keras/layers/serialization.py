# graft: keras>=2.13 | tf_keras
def deserialize(config, custom_objects=None, use_legacy_format=False):
    if not config:
        raise ValueError(
            f"Cannot deserialize empty config. Received: config={config}"
        )
    # Here because of a circular import.
    from keras import layers

    populate_deserializable_objects()
    # A public layer may be missing in the modules that are searched for them.
    for name, value in vars(layers).items():
        if inspect.isclass(value) and issubclass(value, base_layer.Layer):
            LOCAL.ALL_OBJECTS.setdefault(name, value)
    module = legacy_serialization if use_legacy_format else serialization_lib
    return module.deserialize_keras_object(
        config,
        module_objects=LOCAL.ALL_OBJECTS,
        custom_objects=custom_objects,
        printable_module_name="layer",
    )
