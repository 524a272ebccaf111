def serialize_keras_object(obj):
    if isinstance(obj, np.generic) or (
        isinstance(obj, np.ndarray) and obj.ndim == 0
    ):
        # A number of NumPy or `ml_dtypes`: Python has its exact value.
        obj = obj.item()
    if obj is None or isinstance(obj, PLAIN_TYPES):
        return obj
    if isinstance(obj, (list, tuple)):
        items = [serialize_keras_object(item) for item in obj]
        return tuple(items) if isinstance(obj, tuple) else items
    if isinstance(obj, dict):
        return serialize_dict(obj)
    if isinstance(obj, bytes):
        return {
            "class_name": "__bytes__",
            "config": {"value": obj.decode("utf-8")},
        }
    if isinstance(obj, slice):
        ends = {"start": obj.start, "stop": obj.stop, "step": obj.step}
        return {"class_name": "__slice__", "config": serialize_dict(ends)}
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, backend.KerasTensor):
        history = getattr(obj, "_keras_history", None)
        if history:
            operation, *indices = history
            history = [operation.name, *indices]
        return {
            "class_name": "__keras_tensor__",
            "config": {
                "shape": obj.shape,
                "dtype": obj.dtype,
                "keras_history": history,
            },
        }
    if tf.available:
        if isinstance(obj, tf.TensorShape):
            return None if obj.rank is None else obj.as_list()
        if isinstance(obj, tf.DType):
            return obj.name
        if isinstance(obj, tf.TypeSpec):
            config = []
            for item in obj._serialize():
                if isinstance(item, tf.TensorShape):
                    item = item.as_list()
                elif isinstance(item, tf.DType):
                    item = item.name
                config.append(item)
            return {
                "class_name": "__typespec__",
                "spec_name": obj.__class__.__name__,
                "module": obj.__class__.__module__,
                "config": config,
                "registered_name": None,
            }
    is_tensor = backend.is_tensor(obj)
    if is_tensor or isinstance(obj, np.ndarray):
        values = backend.convert_to_numpy(obj) if is_tensor else obj
        return {
            "class_name": "__tensor__" if is_tensor else "__numpy__",
            "config": {
                "value": values.tolist(),
                "dtype": backend.standardize_dtype(obj.dtype),
            },
        }
    if isinstance(obj, types.FunctionType) and obj.__name__ == "<lambda>":
        warnings.warn(
            "A `lambda` is saved as byte code, which may run only where its "
            "source is trusted: loading it takes `safe_mode=False`. A named "
            "function has no such limit. "
            f"Received: {inspect.getsource(obj)}",
            stacklevel=2,
        )
        return {
            "class_name": "__lambda__",
            "config": {"value": python_utils.func_dump(obj)},
        }

    inner_config = _get_class_or_fn_config(obj)
    config = serialize_with_public_class(obj.__class__, inner_config)
    if config is None:
        owner = obj if isinstance(obj, types.FunctionType) else obj.__class__
        registered_name = None
        if owner.__module__ != "builtins":
            registered_name = object_registration.get_registered_name(owner)
        config = {
            "module": owner.__module__,
            "class_name": obj.__class__.__name__,
            "config": inner_config,
            "registered_name": registered_name,
        }
    get_build_and_compile_config(obj, config)
    record_object_after_serialization(obj, config)
    return config
