from keras.saving import hdf5_codec


# graft: with saving | stores
def dtype_numpy(x):
    """Returns the numpy type of a tensor, a variable or a dtype.

    Args:
        x: Tensor, variable, `tf.DType`, numpy dtype or dtype name.

    Returns:
        The numpy type that TensorFlow registers for the dtype of `x`.

    Raises:
        TypeError: if TensorFlow has no such dtype.
    """
    if not isinstance(x, (str, type, np.dtype, tf.DType)):
        x = x.dtype
    return tf.as_dtype(x).as_numpy_dtype


# graft: keras>=2.12 | tf_keras
# graft: with saving | stores
def set_value(x, value):
    if tf.compat.v1.executing_eagerly_outside_functions():
        value = hdf5_codec.cast(value, dtype_numpy(x))
        _assign_value_to_variable(x, value)
    else:
        batch_set_value([(x, value)])


# graft: keras<2.12
# graft: with saving | stores
def set_value(x, value):
    if tf.compat.v1.executing_eagerly_outside_functions():
        x.assign(hdf5_codec.cast(value, dtype_numpy(x)))
    else:
        batch_set_value([(x, value)])


# graft: keras>=2.12 | tf_keras
# graft: with saving | stores
def batch_set_value(tuples):
    tuples = [(x, hdf5_codec.cast(v, dtype_numpy(x))) for x, v in tuples]
    if tf.executing_eagerly() or tf.inside_function():
        for x, value in tuples:
            _assign_value_to_variable(x, value)
        return
    with get_graph().as_default():
        feed_dict = {}
        for x, value in tuples:
            if not hasattr(x, "_assign_placeholder"):
                # No dimension is fixed, so that a variable whose shape may
                # change takes a value of any size.
                x._assign_placeholder = tf.compat.v1.placeholder(
                    tf.as_dtype(x.dtype).base_dtype, shape=[None] * value.ndim
                )
                x._assign_op = x.assign(x._assign_placeholder)
            feed_dict[x._assign_placeholder] = value
        if tuples:
            get_session().run(
                [x._assign_op for x, _ in tuples], feed_dict=feed_dict
            )


# graft: keras<2.12
# graft: with saving | stores
def batch_set_value(tuples):
    tuples = [(x, hdf5_codec.cast(v, dtype_numpy(x))) for x, v in tuples]
    if tf.compat.v1.executing_eagerly_outside_functions():
        for x, value in tuples:
            x.assign(value)
        return
    with get_graph().as_default():
        feed_dict = {}
        for x, value in tuples:
            if not hasattr(x, "_assign_placeholder"):
                # No dimension is fixed, so that a variable whose shape may
                # change takes a value of any size.
                x._assign_placeholder = tf.compat.v1.placeholder(
                    tf.as_dtype(x.dtype).base_dtype, shape=[None] * value.ndim
                )
                x._assign_op = x.assign(x._assign_placeholder)
            feed_dict[x._assign_placeholder] = value
        if tuples:
            get_session().run(
                [x._assign_op for x, _ in tuples], feed_dict=feed_dict
            )


# graft: with layers
def resize_images(
    x, height_factor, width_factor, data_format, interpolation="nearest"
):
    methods = {
        "area": tf.image.ResizeMethod.AREA,
        "bicubic": tf.image.ResizeMethod.BICUBIC,
        "bilinear": tf.image.ResizeMethod.BILINEAR,
        "gaussian": tf.image.ResizeMethod.GAUSSIAN,
        "lanczos3": tf.image.ResizeMethod.LANCZOS3,
        "lanczos5": tf.image.ResizeMethod.LANCZOS5,
        "mitchellcubic": tf.image.ResizeMethod.MITCHELLCUBIC,
        "nearest": tf.image.ResizeMethod.NEAREST_NEIGHBOR,
    }
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid `data_format` argument: {data_format}")
    if interpolation not in methods:
        raise ValueError(
            f"`interpolation` argument should be one of: {list(methods)}. "
            f'Received: "{interpolation}".'
        )
    if data_format == "channels_first":
        x = permute_dimensions(x, [0, 2, 3, 1])
    static_size = x.shape[1:3]
    size = static_size if static_size.is_fully_defined() else tf.shape(x)[1:3]
    images = x
    if interpolation != "nearest" and x.dtype.is_floating:
        # Not all methods have a gradient for the narrow types.
        images = tf.cast(x, tf.float32)
    outputs = tf.image.resize(
        images,
        size * tf.constant([height_factor, width_factor]),
        method=methods[interpolation],
    )
    if x.dtype.is_floating:
        # Most methods return float32, whatever they are given.
        outputs = tf.cast(outputs, x.dtype)
    if data_format == "channels_first":
        outputs = permute_dimensions(outputs, [0, 3, 1, 2])
    return outputs
