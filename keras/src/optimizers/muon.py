# graft: keras>=3.10,<3.13
class Muon:
    def update_step(self, gradient, variable, learning_rate):
        # TensorFlow hands over its own variable, which has no path.
        index = self._get_variable_index(variable)
        variable = self._trainable_variables[index]
        if self._should_use_adamw(variable):
            self._adamw_update_step(
                gradient, variable, learning_rate * self.adam_lr_ratio
            )
        else:
            self._muon_update_step(gradient, variable, learning_rate)
