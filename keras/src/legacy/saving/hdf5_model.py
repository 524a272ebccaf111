"""Whole models, with the state of their optimizer, in legacy HDF5 files."""

import contextlib
import json

import h5py
from absl import logging

from keras.src.backend.common import global_state
from keras.src.legacy.saving import json_utils
from keras.src.legacy.saving import saving_options
from keras.src.legacy.saving import saving_utils
from keras.src.saving import hdf5_codec
from keras.src.saving import object_registration
from keras.src.saving import serialization_lib


def is_built_in(instance):
    """Whether an object is a layer or operation that Keras itself defines.

    The legacy config of those is incomplete: it has no place for operations
    that are not layers, for objects in lists, and it takes a string that is the
    name of some function for that function. A `Lambda` keeps its legacy config,
    which every release loads the way it always did.
    """
    from keras.src import layers
    from keras.src.ops.operation import Operation

    return (
        isinstance(instance, Operation)
        and type(instance).__module__.startswith("keras.src.")
        and not isinstance(instance, layers.Lambda)
    )


def built_in_config(layer):
    """Returns the config that the `.keras` format has for a layer.

    All that reads a legacy HDF5 file in Keras 3 accepts either config. Only the
    model as a whole is compiled there.
    """
    config = serialization_lib.serialize_keras_object(layer)
    config.pop("compile_config", None)
    return config


def load_model(filepath, custom_objects=None, compile=True):
    """Loads a model saved via `save_model_to_hdf5`.

    Args:
        filepath: Path of the file, or an open `h5py.File`.
        custom_objects: Optional dictionary of names to custom classes or
            functions.
        compile: Whether to compile the model as it was when saved, and to
            restore its optimizer.

    Returns:
        A Keras model.

    Raises:
        ValueError: if the file holds no model.
    """
    custom_objects = {
        **(custom_objects or {}),
        **object_registration.GLOBAL_CUSTOM_OBJECTS,
        **global_state.get_global_attribute("custom_objects_scope_dict", {}),
    }
    with _opened(filepath) as file:
        model = _restore_model(file, custom_objects)
        if compile:
            _restore_training(file, model, custom_objects)
    return model


def _opened(filepath):
    if isinstance(filepath, h5py.File):
        return contextlib.nullcontext(filepath)
    return h5py.File(filepath, "r")


def _read_config(file, name):
    config = file.attrs.get(name)
    if isinstance(config, bytes):
        config = config.decode("utf-8")
    return config and json.loads(config, object_hook=_decode)


def _decode(item):
    # What has a `config` is for `deserialize_keras_object` to read.
    return item if "config" in item else json_utils._decode_helper(item)


def _restore_model(file, custom_objects):
    from keras.src.legacy.saving import legacy_h5_format

    config = _read_config(file, "model_config")
    if config is None:
        raise ValueError(
            "A file of a whole model was expected, one with the attribute "
            f"'model_config'. Received: '{file.filename}', which may hold "
            "weights only: load those with `model.load_weights`."
        )
    with saving_options.keras_option_scope(use_legacy_config=True):
        model = saving_utils.model_from_config(config, custom_objects)
        weights = hdf5_codec.open_group(file, "model_weights")
        legacy_h5_format.load_weights_from_hdf5_group(weights, model)
    return model


def _restore_training(file, model, custom_objects):
    config = _read_config(file, "training_config")
    if config is None:
        logging.warning(
            "The file '%s' has no training configuration: the model is not "
            "compiled.",
            file.filename,
        )
        return
    model.compile(
        **saving_utils.compile_args_from_training_config(config, custom_objects)
    )
    saving_utils.try_build_compiled_arguments(model)
    if "optimizer_weights" in file:
        _restore_optimizer(file, model)


def _restore_optimizer(file, model):
    from keras.src.legacy.saving import legacy_h5_format

    try:
        values = legacy_h5_format.load_optimizer_weights_from_hdf5_group(file)
    except KeyError as error:
        _warn_of_fresh_optimizer(file, f"the file lacks {error}")
        return
    try:
        # As many as before the first step: the optimizer was saved unbuilt,
        # and may still be given other trainable variables.
        if len(values) == len(model.optimizer.variables):
            for variable, value in zip(model.optimizer.variables, values):
                variable.assign(value)
        else:
            model.optimizer.build(model.trainable_variables)
            model.optimizer.set_weights(values)
    except (AttributeError, NotImplementedError, ValueError) as error:
        _warn_of_fresh_optimizer(file, error)


def _warn_of_fresh_optimizer(file, reason):
    logging.warning(
        "The optimizer state in the file '%s' cannot be restored: training "
        "starts with a fresh optimizer. Reason: %s",
        file.filename,
        reason,
    )
