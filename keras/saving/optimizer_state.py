# graft: keras<3 | tf_keras

"""The state of optimizers in files, beyond the variables they list.

A dynamic loss scale adapts while a model trains. Its optimizer does not list
it among its variables, and older releases refuse a file with more variables
than an optimizer has. In an HDF5 file it is therefore stored as attributes of
the optimizer's group, which they do not look at.
"""

import tensorflow.compat.v2 as tf

from keras import backend
from keras.saving import hdf5_codec

# isort: off
from tensorflow.python.platform import tf_logging as logging

LOSS_SCALE = ("current_loss_scale", "good_steps")


def loss_scale_variables(optimizer):
    """Returns the variables of a dynamic loss scale, in order of `LOSS_SCALE`.

    Args:
        optimizer: Optimizer of any kind.

    Returns:
        List of two variables. It is empty for other optimizers.
    """
    if not getattr(optimizer, "dynamic", False):
        return []
    state = optimizer._loss_scale
    return [state.current_loss_scale, state.counter]


def save_loss_scale(optimizer, group):
    """Writes the loss scale of an optimizer, if it has one that adapts.

    Args:
        optimizer: Optimizer of any kind.
        group: `h5py.Group` or store of the optimizer's variables.
    """
    variables = loss_scale_variables(optimizer)
    for name, value in zip(LOSS_SCALE, backend.batch_get_value(variables)):
        group.attrs[name] = value


def read_loss_scale(group):
    """Reads what `save_loss_scale` wrote.

    Args:
        group: `h5py.Group` or store of the optimizer's variables.

    Returns:
        List of two numbers. It is empty where the file has none.
    """
    attributes = getattr(group, "attrs", {})
    return [attributes[name] for name in LOSS_SCALE if name in attributes]


def assign(optimizer, variables, values):
    """Assigns values to the variables of an optimizer.

    Args:
        optimizer: The optimizer.
        variables: The variables that it lists.
        values: Value of each one, and then of each of
            `loss_scale_variables(optimizer)`, which may be left out.

    Raises:
        ValueError: if there is another number of values, or one has another
            shape.
    """
    variables = list(variables)
    if len(values) != len(variables):
        variables += loss_scale_variables(optimizer)
    if len(values) != len(variables):
        raise ValueError(
            f"{type(optimizer).__name__} has {len(variables)} variables. "
            f"Received: {len(values)} values."
        )
    for variable, value in zip(variables, values):
        if not tf.is_tensor(value):
            value = hdf5_codec.cast(value, backend.dtype_numpy(variable))
        if variable.shape != value.shape:
            raise ValueError(
                f"Optimizer variable {variable.name} has shape "
                f"{variable.shape}. Received: a value of shape {value.shape}."
            )
        variable.assign(value)


def save(optimizer, store):
    """Writes the whole state of an optimizer.

    Args:
        optimizer: Optimizer, but not a legacy one.
        store: Mapping to write into, see `hdf5_codec.VariableStore`.
    """
    for i, value in enumerate(backend.batch_get_value(optimizer.variables())):
        store[str(i)] = value
    save_loss_scale(optimizer, store)


def load(optimizer, store):
    """Restores what `save` wrote, or warns that it is not possible.

    Args:
        optimizer: Optimizer, but not a legacy one.
        store: Mapping to read from, see `hdf5_codec.VariableStore`.
    """
    values = _values(store)
    if len(values) == len(optimizer.variables()):
        values += read_loss_scale(store)
        assign(optimizer, optimizer.variables(), values)
        return
    _warn(
        optimizer,
        f"it has {len(optimizer.variables())} variables, the file has "
        f"{len(values)}. An optimizer has all of its variables once the model "
        "and it are built",
    )


class LegacyOptimizerState:
    """Stores a legacy optimizer in `.keras` and `.weights.h5` files.

    Args:
        model: The model that the optimizer trains.
        optimizer: The optimizer.
    """

    def __init__(self, model, optimizer):
        self._model = model
        self._optimizer = optimizer

    @classmethod
    def of(cls, model, optimizer):
        """Returns the same object each time: saving goes by identity."""
        if not hasattr(optimizer, "_state_in_files"):
            optimizer._state_in_files = cls(model, optimizer)
        return optimizer._state_in_files

    def save_own_variables(self, store):
        for i, value in enumerate(self._optimizer.get_weights()):
            store[str(i)] = value
        save_loss_scale(self._optimizer, store)

    def load_own_variables(self, store):
        values = _values(store) + read_loss_scale(store)
        if not values:
            # An optimizer that had made no step, or a file of an older release.
            _warn(self._optimizer, "the file has none")
            return
        self._optimizer._create_all_weights(self._model.trainable_variables)
        try:
            self._optimizer.set_weights(values)
        except ValueError as error:
            _warn(self._optimizer, error)

    # graft: keras==2.12.*
    _save_own_variables = save_own_variables
    # graft: keras==2.12.*
    _load_own_variables = load_own_variables


def _values(store):
    return [store[str(i)] for i in range(len(store.keys()))]


def _warn(optimizer, reason):
    logging.warning(
        "The saved state of the optimizer cannot be restored, and "
        f"{type(optimizer).__name__} starts afresh: {reason}."
    )
