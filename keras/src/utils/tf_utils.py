# graft: keras>=3.6
from keras.src.utils.module_utils import tensorflow as tf


def dense_bincount(inputs, depth, binary_output, dtype, count_weights=None):
    # The kernel has weights of 32 and 64 bits only.
    wide = "float32" if dtype in ("bfloat16", "float16") else dtype
    if count_weights is not None:
        count_weights = tf.cast(count_weights, wide)
    result = tf.math.bincount(
        inputs,
        weights=count_weights,
        minlength=depth,
        maxlength=depth,
        dtype=wide,
        axis=-1,
        binary_output=binary_output,
    )
    result.set_shape(inputs.shape[:-1] + [depth])
    return tf.cast(result, dtype)
