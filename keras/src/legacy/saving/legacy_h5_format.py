from keras.src import backend
from keras.src.legacy.saving import hdf5_model
from keras.src.legacy.saving import hdf5_weights
from keras.src.saving import hdf5_codec
from keras.src.saving import serialization_lib


# graft: keras>=3.11.3
def load_model_from_hdf5(
    filepath, custom_objects=None, compile=True, safe_mode=True
):
    with serialization_lib.SafeModeScope(safe_mode):
        return hdf5_model.load_model(filepath, custom_objects, compile)


# graft: keras<3.11.3
def load_model_from_hdf5(filepath, custom_objects=None, compile=True):
    return hdf5_model.load_model(filepath, custom_objects, compile)


def save_subset_weights_to_hdf5_group(group, weights):
    names = hdf5_codec.unique_names(str(w.path) for w in weights)
    save_attributes_to_hdf5_group(
        group, "weight_names", [name.encode("utf8") for name in names]
    )
    for name, weight in zip(names, weights):
        hdf5_codec.write(group, name, backend.convert_to_numpy(weight))


def load_subset_weights_from_hdf5_group(group):
    return [
        hdf5_codec.read(group, name)
        for name in load_attributes_from_hdf5_group(group, "weight_names")
    ]


# graft: keras<3.6
def load_weights_from_hdf5_group(f, model):
    hdf5_weights.load(f, model)


# graft: keras<3.8
def load_weights_from_hdf5_group_by_name(f, model, skip_mismatch=False):
    hdf5_weights.load_by_name(f, model, skip_mismatch)


def save_optimizer_weights_to_hdf5_group(group, optimizer):
    variables = getattr(optimizer, "variables", None)
    if variables:
        save_subset_weights_to_hdf5_group(
            group.create_group("optimizer_weights"), variables
        )


def load_optimizer_weights_from_hdf5_group(group):
    """Load optimizer weights from a HDF5 group.

    Args:
        group: HDF5 group that contains the group `optimizer_weights`.

    Returns:
        List of NumPy arrays, in the order in which they were saved.
    """
    return load_subset_weights_from_hdf5_group(
        hdf5_codec.open_group(group, "optimizer_weights")
    )


def _legacy_weights(layer):
    # Those of float8 training come last: a layer creates them last when it is
    # quantized, but first when it is made from its config.
    trainable = sorted(
        layer.trainable_weights,
        key=lambda w: getattr(w, "overwrite_with_gradient", False),
    )
    return trainable + layer.non_trainable_weights


def load_attributes_from_hdf5_group(group, name):
    return hdf5_codec.member_names(group, name)
