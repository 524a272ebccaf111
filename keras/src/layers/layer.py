# graft: keras<3.2
class Layer:
    def build_from_config(self, config):
        def as_built(shape):
            # Some layers insist on tuples, which JSON does not have.
            if isinstance(shape, dict):
                return {key: as_built(item) for key, item in shape.items()}
            if not isinstance(shape, (list, tuple)):
                return shape
            if any(isinstance(item, (dict, list, tuple)) for item in shape):
                return [as_built(item) for item in shape]
            return tuple(shape)

        if not config:
            return
        if "input_shape" in config:
            self.build(as_built(config["input_shape"]))
        elif "shapes_dict" in config:
            self.build(**as_built(config["shapes_dict"]))
        self.built = True
