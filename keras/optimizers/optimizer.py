# graft: keras>=2.11 | tf_keras
from keras.saving import optimizer_state


class _BaseOptimizer:
    # graft: keras==2.11.*
    def variables(self):
        # `LossScaleOptimizerV3` has none of its own.
        return getattr(self, "_optimizer", self)._variables

    def set_weights(self, weights):
        inner_optimizer = getattr(self, "inner_optimizer", self)
        if not getattr(inner_optimizer, "_built", False):
            raise ValueError(
                "You are calling `set_weights()` before the optimizer was "
                "built. Call `optimizer.build(trainable_variables)` first."
            )
        optimizer_state.assign(self, self.variables(), weights)

    # graft: keras==2.12.*
    # graft: with stores
    def _save_own_variables(self, store):
        optimizer_state.save(self, store)

    # graft: keras==2.12.*
    # graft: with stores
    def _load_own_variables(self, store):
        optimizer_state.load(self, store)

    # graft: keras>=2.13 | tf_keras
    # graft: with stores
    def save_own_variables(self, store):
        optimizer_state.save(self, store)

    # graft: keras>=2.13 | tf_keras
    # graft: with stores
    def load_own_variables(self, store):
        optimizer_state.load(self, store)
