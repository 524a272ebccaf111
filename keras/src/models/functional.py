# graft: keras<3.5
class Functional:
    def compute_output_spec(self, inputs, training=None, mask=None):
        # A model that was loaded has a list even of a single output.
        return unpack_singleton(super().compute_output_spec(inputs))


# graft: keras>=3.2,<3.3
def serialize_node(node, own_nodes=()):
    if not node.input_tensors:
        return None

    def serialize(x):
        config = serialization_lib.serialize_keras_object(x)
        if isinstance(x, backend.KerasTensor):
            operation, node_index, tensor_index = x._keras_history
            # Nodes are counted within the model, which knows them by keys.
            keys = [make_node_key(operation, i) for i in range(node_index)]
            node_index = sum(key in own_nodes for key in keys)
            history = [operation.name, node_index, tensor_index]
            config["config"]["keras_history"] = history
        return config

    return {
        "args": tree.map_structure(serialize, node.arguments.args),
        "kwargs": tree.map_structure(serialize, node.arguments.kwargs),
    }
