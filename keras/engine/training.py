# graft: keras>=2.12,<2.15
class Model:
    def compile_from_config(self, config):
        if type(self).compile != Model.compile:
            logging.warning(
                "The loaded model is not compiled, because its class has a "
                "`compile()` of its own. Such a class needs "
                "`get_compile_config()` and `compile_from_config(config)` as "
                "well; or call `compile()` after loading."
            )
            return
        self.compile(**saving_lib.deserialize_keras_object(config))
        # The legacy optimizers have no `build`.
        if self.built and hasattr(getattr(self, "optimizer", None), "build"):
            self.optimizer.build(self.trainable_variables)
