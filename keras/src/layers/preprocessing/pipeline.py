# graft: keras>=3.6
class Pipeline:
    # graft: keras>=3.7
    def __init__(self, layers, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        self._pipeline_layers = layers
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    # graft: keras<3.7
    def __init__(self, layers, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        # There is no `from_config` yet: a config has the layers' configs.
        self._pipeline_layers = [
            serialization_lib.deserialize_keras_object(layer)
            if isinstance(layer, dict)
            else layer
            for layer in layers
        ]
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    def get_config(self):
        config = super().get_config()
        return {
            "layers": serialization_lib.serialize_keras_object(
                self._pipeline_layers
            ),
            "name": config["name"],
            "dtype": config["dtype"],
        }
