from keras import backend
from keras.saving import hdf5_codec
from keras.saving import optimizer_state


def save_subset_weights_to_hdf5_group(f, weights):
    names = hdf5_codec.unique_names(w.name for w in weights)
    save_attributes_to_hdf5_group(
        f, "weight_names", [name.encode("utf8") for name in names]
    )
    for name, value in zip(names, backend.batch_get_value(weights)):
        hdf5_codec.write(f, name, value)


def load_subset_weights_from_hdf5_group(f):
    return [
        hdf5_codec.read(f, name, backend.dtype_numpy)
        for name in load_attributes_from_hdf5_group(f, "weight_names")
    ]


def save_optimizer_weights_to_hdf5_group(hdf5_group, optimizer):
    # Only the legacy optimizers have `weights`. Older releases load a bfloat16
    # slot of theirs from a blob and from nothing else.
    legacy = hasattr(optimizer, "weights")
    variables = optimizer.weights if legacy else optimizer.variables()
    if not variables:
        return
    group = hdf5_group.create_group("optimizer_weights")
    names = hdf5_codec.unique_names(str(v.name) for v in variables)
    save_attributes_to_hdf5_group(
        group, "weight_names", [name.encode("utf8") for name in names]
    )
    for name, value in zip(names, backend.batch_get_value(variables)):
        hdf5_codec.write(group, name, value, opaque=legacy)
    optimizer_state.save_loss_scale(optimizer, group)


def load_optimizer_weights_from_hdf5_group(hdf5_group):
    """Loads optimizer weights from an HDF5 group.

    Args:
        hdf5_group: HDF5 group that contains the group `optimizer_weights`.

    Returns:
        List of NumPy arrays, in the order in which they were saved, and then
        of the numbers of a dynamic loss scale.

    Raises:
        ValueError: if one of them is missing.
    """
    group = hdf5_codec.open_group(hdf5_group, "optimizer_weights")
    names = load_attributes_from_hdf5_group(group, "weight_names")
    try:
        values = [
            hdf5_codec.read(group, name, backend.dtype_numpy) for name in names
        ]
    except KeyError as error:
        raise ValueError(
            "The state of the optimizer cannot be restored: its variable "
            f"{error} is missing in '{group.file.filename}'. To load the model "
            "without it, pass `compile=False`."
        ) from error
    return values + optimizer_state.read_loss_scale(group)


def load_attributes_from_hdf5_group(group, name):
    return hdf5_codec.member_names(group, name)
