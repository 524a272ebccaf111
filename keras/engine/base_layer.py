# graft: keras>=2.13 | tf_keras
from keras import backend


class Layer:
    def load_own_variables(self, store):
        self._update_trackables()
        variables = self._trainable_weights + self._non_trainable_weights
        if len(store.keys()) != len(variables):
            raise ValueError(
                f"Layer '{self.name}' has {len(variables)} variables, but "
                f"received {len(store.keys())} variables from the file. "
                f"Expected: {[variable.name for variable in variables]}"
            )
        for i, variable in enumerate(variables):
            backend.set_value(variable, store[str(i)])
