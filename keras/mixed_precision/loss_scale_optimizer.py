from keras.saving import optimizer_state


class LossScaleOptimizer:
    def set_weights(self, weights):
        own = optimizer_state.loss_scale_variables(self)
        count = len(self.weights)
        if own and len(weights) == count + len(own):
            optimizer_state.assign(self, own, weights[count:])
            weights = weights[:count]
        self._optimizer.set_weights(weights)
