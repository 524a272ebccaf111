from keras.layers.core import op_constants


class TFOpLambda:
    def _call_wrapper(self, *args, **kwargs):
        created_variables = []

        def creator(next_creator, **creator_kwargs):
            variable = next_creator(**creator_kwargs)
            created_variables.append(variable)
            return variable

        kwargs.pop("name", None)
        # A file holds constants such as that of `1.0 + x` as plain numbers.
        args, kwargs = op_constants.match(args, kwargs)
        with tf.GradientTape(
            watch_accessed_variables=True
        ) as tape, tf.variable_creator_scope(creator):
            result = self.function(*args, **kwargs)
        self._check_variables(created_variables, tape.watched_variables())
        return result
