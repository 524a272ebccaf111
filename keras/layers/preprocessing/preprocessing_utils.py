def sparse_bincount(inputs, depth, binary_output, dtype, count_weights=None):
    if count_weights is not None and count_weights.dtype.size < 4:
        # There is no kernel that counts in the narrow types.
        count_weights = tf.cast(count_weights, tf.float32)
    counts = tf.sparse.bincount(
        inputs,
        weights=count_weights,
        minlength=depth,
        maxlength=depth,
        axis=-1,
        binary_output=binary_output,
    )
    batch = () if inputs.shape.rank == 1 else (tf.shape(counts)[0],)
    return tf.SparseTensor(
        indices=counts.indices,
        values=tf.cast(counts.values, dtype),
        dense_shape=(*batch, depth),
    )


def dense_bincount(inputs, depth, binary_output, dtype, count_weights=None):
    dtype = tf.as_dtype(dtype)
    # There is no kernel that counts in the narrow types.
    wide = tf.float32 if dtype.size < 4 else dtype
    if count_weights is not None:
        count_weights = tf.cast(count_weights, wide)
    counts = tf.math.bincount(
        inputs,
        weights=count_weights,
        minlength=depth,
        maxlength=depth,
        dtype=wide,
        axis=-1,
        binary_output=binary_output,
    )
    batch = () if inputs.shape.rank == 1 else inputs.shape.as_list()[:1]
    counts.set_shape((*batch, depth))
    return tf.cast(counts, dtype)
