# graft: keras>=3.4
def convert_to_numpy(x):
    if isinstance(x, tf.SparseTensor):
        x = sparse_to_dense(x)
    elif isinstance(x, tf.IndexedSlices):
        x = tf.convert_to_tensor(x)
    elif isinstance(x, tf.RaggedTensor):
        x = x.to_tensor()
    if tf.is_tensor(x) and hasattr(x, "numpy"):
        # NumPy itself takes no scalar of an `ml_dtypes` type from a tensor.
        x = x.numpy()
    return np.array(x)
