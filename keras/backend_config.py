def set_floatx(value):
    """Sets the default float type.

    Note: `bfloat16` and `float16` have few digits, and training whole models in
    them can fail where `float32` does not. For most models
    `keras.mixed_precision.set_global_policy("mixed_bfloat16")` is the better
    choice: it keeps the weights in `float32`.

    Args:
        value: String; `'bfloat16'`, `'float16'`, `'float32'`, or `'float64'`.

    Example:
    >>> tf.keras.backend.floatx()
    'float32'
    >>> tf.keras.backend.set_floatx('bfloat16')
    >>> tf.keras.backend.floatx()
    'bfloat16'
    >>> tf.keras.backend.set_floatx('float32')

    Raises:
        ValueError: if `value` is none of these.
    """
    global _FLOATX
    accepted = ("bfloat16", "float16", "float32", "float64")
    if value not in accepted:
        raise ValueError(
            f"Unknown `floatx` value: {value}. Expected one of {accepted}"
        )
    _FLOATX = str(value)
