# graft: keras<3.3
class Bidirectional:
    def from_config(cls, config, custom_objects=None):
        def restored(name):
            return serialization_lib.deserialize_keras_object(
                config[name], custom_objects=custom_objects
            )

        config = copy.deepcopy(config)
        # The wrapped layer is a pattern for both directions. If it were built
        # it would have weights, too, which no file has.
        config["layer"].pop("build_config", None)
        config["layer"] = restored("layer")
        if config.get("backward_layer") is not None:
            config["backward_layer"] = restored("backward_layer")
        return cls(**config)
