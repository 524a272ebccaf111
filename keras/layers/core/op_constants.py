# graft: keras<3 | tf_keras

"""Constants in the graphs of functional models that came from a file."""

import tensorflow.compat.v2 as tf


def match(args, kwargs):
    """Gives a constant operand of an operator the dtype of the other one.

    `1.0 + x` makes its constant a tensor of the dtype of `x`. A file holds it
    as plain numbers. Where they are the first operand, `Layer.__call__` makes
    each one a tensor of the default dtype, and most operators then refuse the
    second one.

    Args:
        args: Positional arguments of an operator.
        kwargs: Its keyword arguments.

    Returns:
        The two as they are; or with the constant as one tensor of the right
        dtype, where the operator has two operands `x` and `y`, one of them a
        floating-point tensor.
    """
    names = ("x", "y")[: 0 if "x" in kwargs else len(args)]
    operands = {**dict(zip(names, args)), **kwargs}
    x, y = operands.get("x"), operands.get("y")
    if _is_constant(x) and _is_float(y):
        operands["x"] = tf.cast(tf.convert_to_tensor(x), y.dtype)
    elif _is_constant(y) and _is_float(x):
        operands["y"] = tf.cast(tf.convert_to_tensor(y), x.dtype)
    positional = [operands.pop(name) for name in names]
    return [*positional, *args[len(names) :]], operands


def _is_float(value):
    return tf.is_tensor(value) and value.dtype.is_floating


def _is_constant(value):
    if isinstance(value, list):
        return bool(value) and all(_is_constant(item) for item in value)
    if tf.is_tensor(value):
        is_default = value.dtype in (tf.float32, tf.int32)
        return is_default and value.shape.rank == 0
    return type(value) in (int, float)
