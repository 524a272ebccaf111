class BaseOptimizer:
    def set_weights(self, weights):
        if not self.built:
            raise ValueError(
                "You are calling `set_weights` on an optimizer without "
                "variables. Call `build(trainable_variables)` first."
            )
        # Those of an inner optimizer too, and all of them or none.
        variables = self.variables
        expected = [tuple(variable.shape) for variable in variables]
        received = [tuple(weight.shape) for weight in weights]
        if expected != received:
            raise ValueError(
                f"The weights do not fit the optimizer '{self.name}'. "
                f"Expected: {len(expected)} arrays of the shapes {expected}. "
                f"Received: {len(received)} of the shapes {received}."
            )
        for variable, weight in zip(variables, weights):
            variable.assign(weight)
