# graft: keras<2.13
def function_register(func, *args, **kwargs):
    if kwargs["inputs"].dtype == tf.bfloat16:
        # The cuDNN op has no bfloat16, and tracing `func` would fail. Without
        # it the generic function runs on every device.
        return None
    traced = func.get_concrete_function(*args, **kwargs)
    traced.add_to_graph()
    traced.add_gradient_functions_to_graph()
    return traced
