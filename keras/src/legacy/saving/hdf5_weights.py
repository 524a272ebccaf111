# graft: keras<3.8
"""Weights from legacy HDF5 files, as Keras 3.8 and newer load them.

Before, loading by name never found the weights of the model itself, and
preprocessing layers kept what they had computed from their older weights.
"""

import warnings

from keras.src.legacy.saving import legacy_h5_format
from keras.src.saving import hdf5_codec

TOP_LEVEL = "top_level_model_weights"


def load(file, model):
    """Loads weights in the order of the layers.

    Args:
        file: Group of the saved weights.
        model: The model, with its layers built.

    Raises:
        ValueError: if the numbers of layers, or of weights, or the weights'
            shapes differ.
    """
    layers = [x for x in model.layers if legacy_h5_format._legacy_weights(x)]
    groups = [
        group
        for _, group in _layer_groups(file)
        if hdf5_codec.member_names(group, "weight_names")
    ]
    if len(groups) != len(layers):
        raise ValueError(
            f"Weights of {len(layers)} layers were expected in "
            f"'{file.file.filename}'. Received: {len(groups)} layers. The "
            "model must have the layers of the one that was saved."
        )
    for layer, group in zip(layers, groups):
        _load_layer(group, layer)
    _load_top_level(file, model)


def load_by_name(file, model, skip_mismatch=False):
    """Loads the weights of those layers whose names are in the file.

    Args:
        file: Group of the saved weights.
        model: The model, with its layers built.
        skip_mismatch: Whether to warn of weights that do not fit, and to leave
            them as they are.

    Raises:
        ValueError: if the number of weights, or their shapes, differ, and
            `skip_mismatch` is false.
    """
    for name, group in _layer_groups(file):
        for layer in model.layers:
            if layer.name == name:
                _load_layer(group, layer, skip_mismatch)
    _load_top_level(file, model, skip_mismatch)


def _layer_groups(file):
    for name in hdf5_codec.member_names(file, "layer_names"):
        yield name, hdf5_codec.open_group(file, name)


def _load_layer(group, layer, skip_mismatch=False):
    weights = legacy_h5_format._legacy_weights(layer)
    _assign(group, layer.name, weights, skip_mismatch)
    if weights and hasattr(layer, "finalize_state"):
        layer.finalize_state()


def _load_top_level(file, model, skip_mismatch=False):
    """Loads the weights of the model itself, which no layer has."""
    if TOP_LEVEL not in file:
        return
    saved = {id(weight) for weight in model.weights}
    own = model._trainable_variables + model._non_trainable_variables
    _assign(
        hdf5_codec.open_group(file, TOP_LEVEL),
        model.name,
        [variable for variable in own if id(variable) in saved],
        skip_mismatch,
    )


def _assign(group, owner, weights, skip_mismatch):
    values = legacy_h5_format.load_subset_weights_from_hdf5_group(group)
    if len(values) != len(weights):
        expected, received = f"{len(weights)} weights", f"{len(values)} weights"
        return _refuse(group, owner, expected, received, skip_mismatch)
    for weight, value in zip(weights, values):
        if tuple(weight.shape) == value.shape:
            weight.assign(value)
        else:
            expected = f"{weight.path} of shape {tuple(weight.shape)}"
            received = f"shape {value.shape}"
            _refuse(group, owner, expected, received, skip_mismatch)


def _refuse(group, owner, expected, received, skip_mismatch):
    message = (
        f"'{group.name}' in '{group.file.filename}' does not fit '{owner}'. "
        f"Expected: {expected}. Received: {received}."
    )
    if not skip_mismatch:
        raise ValueError(
            f"{message} With `by_name=True, skip_mismatch=True` it is left out."
        )
    warnings.warn(f"{message} It is left out.", stacklevel=2)
