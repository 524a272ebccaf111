"""What the tests of low-precision models share.

The ways there are to save a model, and how a tensor becomes an array.
"""

import contextlib
import copy
import functools
import os
import pickle
import shutil
import tempfile
import unittest

# graft: keras>=3
import ml_dtypes
import numpy as np

# graft: keras<3 | tf_keras
import tensorflow.compat.v2 as tf
from absl.testing import parameterized

import keras
from keras import layers

BACKEND = keras.backend.backend()

# Significant binary digits, the implicit one included.
SIGNIFICANT_DIGITS = {
    "bfloat16": 8,
    "float16": 11,
    "float32": 24,
    "float64": 53,
}

needs_tensorflow = unittest.skipUnless(
    BACKEND == "tensorflow", "uses TensorFlow itself"
)


def policy_name():
    """The default policy of layers."""
    return layers.Layer().dtype_policy.name


# graft: keras>=3
@contextlib.contextmanager
def global_policy(policy):
    """Makes `policy` the default of layers created in the block."""
    before = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy(policy)
    try:
        yield
    finally:
        keras.mixed_precision.set_global_policy(before)


# graft: keras<3 | tf_keras
@contextlib.contextmanager
def global_policy(policy):
    """Makes `policy` the default of layers created in the block."""
    keras.mixed_precision.policy.set_global_policy(policy)
    try:
        yield
    finally:
        # No policy means the one of `floatx`.
        keras.mixed_precision.policy.set_global_policy(None)


# graft: keras>=3
def numpy_type(name):
    """The NumPy type of a dtype's name."""
    return np.dtype(getattr(ml_dtypes, name, name))


# graft: keras<3 | tf_keras
def numpy_type(name):
    """The NumPy type that TensorFlow has for a dtype's name."""
    return np.dtype(tf.as_dtype(name).as_numpy_dtype)


# graft: keras>=3
def to_tensor(array, dtype):
    return keras.ops.cast(array, dtype)


# graft: keras<3 | tf_keras
def to_tensor(array, dtype):
    return keras.backend.cast(keras.backend.constant(array), dtype)


# graft: keras>=3
def to_array(tensor):
    if BACKEND == "tensorflow":
        return np.asarray(tensor.numpy())
    return keras.ops.convert_to_numpy(tensor)


# graft: keras<3 | tf_keras
def to_array(tensor):
    return np.asarray(tensor.numpy())


def dtype_name(array_or_variable):
    """The name of a dtype, whichever framework it comes from."""
    dtype = array_or_variable.dtype
    return getattr(dtype, "name", None) or str(dtype).rsplit(".", 1)[-1]


def distinct_values(shape, dtype, start):
    """Different positive numbers that use every digit `dtype` has.

    The significands are odd, so storing one in a narrower type changes it.
    """
    odd_significands = 2 ** (SIGNIFICANT_DIGITS[dtype] - 2)
    binades = 6
    index = start + 1640531527 * np.arange(np.prod(shape, dtype="int64"))
    binade, rest = np.divmod(
        index % (binades * odd_significands), odd_significands
    )
    significand = 0.5 + (2 * rest + 1) / (4 * odd_significands)
    return (significand * 0.5**binade).reshape(shape)


def fill_weights(model):
    """Gives every floating-point weight values of its own."""
    for i, weight in enumerate(model.weights):
        dtype = dtype_name(weight)
        if dtype in SIGNIFICANT_DIGITS:
            values = distinct_values(tuple(weight.shape), dtype, 41 * i)
            weight.assign(to_tensor(values, dtype))
    derive_state(model)


def derive_state(model):
    """Lets preprocessing layers see new weights, as every load does."""
    for layer in flat_layers(model):
        getattr(layer, "finalize_state", lambda: None)()


def flat_layers(model):
    return list(model._flatten_layers(include_self=False, recursive=True))


def outputs_of(model, inputs):
    outputs = model(inputs, training=False)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [to_array(output) for output in outputs]


def weights_of(model):
    return [to_array(weight) for weight in model.weights]


# graft: keras<2.11 | keras>=3
def make_optimizer(name, **config):
    """An optimizer as a string selects it."""
    return keras.optimizers.get({"class_name": name, "config": config})


# graft: keras>=2.11,<3 | tf_keras
def make_optimizer(name, **config):
    """An optimizer as a string selects it, of the newest kind."""
    config["is_legacy_optimizer"] = False
    return keras.optimizers.get({"class_name": name, "config": config})


def optimizer_variables(model):
    """The optimizer's variables, whichever kind of optimizer it is."""
    optimizer = model.optimizer
    if hasattr(optimizer, "weights"):
        return optimizer.weights
    variables = optimizer.variables
    return variables() if callable(variables) else variables


def optimizer_state(model):
    return [to_array(variable) for variable in optimizer_variables(model)]


def as_bits(arrays):
    return [
        (array.dtype.name, array.shape, array.tobytes()) for array in arrays
    ]


def describe_difference(what, before, after):
    """A sentence on where two lists of `as_bits` differ, or an empty string."""
    if len(before) != len(after):
        return f"{len(before)} {what}s before, {len(after)} after"
    for i, (old, new) in enumerate(zip(before, after)):
        for part, x, y in zip(("dtype", "shape"), old, new):
            if x != y:
                return f"{what} {i}: {part} {x} became {y}"
        if old[2] != new[2]:
            return f"{what} {i}: the bytes differ"
    return ""


# graft: keras>=2.13 | tf_keras
def save_model(model, path):
    model.save(path)


# graft: keras<2.13
def save_model(model, path):
    """Saves as the suffix says, which Keras 2.12 does on request only."""
    is_archive = str(path).endswith(".keras")
    model.save(path, **({"save_format": "keras_v3"} if is_archive else {}))


def load_model(path, compile=False, **kwargs):
    return keras.models.load_model(path, compile=compile, **kwargs)


def h5(model, fresh, folder):
    """The whole model in the legacy HDF5 layout."""
    path = os.path.join(folder, "model.h5")
    save_model(model, path)
    return load_model(path)


# graft: keras>=3
def save_legacy_weights(model, path):
    """Keras 3 only reads such files, and whole models hold the same."""
    model.save(path)


# graft: keras<3 | tf_keras
def save_legacy_weights(model, path):
    model.save_weights(path)


def legacy_weights(model, fresh, folder, **kwargs):
    """Weights in the legacy HDF5 layout."""
    path = os.path.join(folder, "model.h5")
    save_legacy_weights(model, path)
    loaded = fresh()
    loaded.load_weights(path, **kwargs)
    return loaded


def weights_h5(model, fresh, folder, **kwargs):
    """Weights in the HDF5 layout of the current saving library."""
    path = os.path.join(folder, "model.weights.h5")
    model.save_weights(path)
    loaded = fresh()
    loaded.load_weights(path, **kwargs)
    return loaded


def archive(model, fresh, folder):
    """The whole model as a `.keras` archive."""
    path = os.path.join(folder, "model.keras")
    save_model(model, path)
    return load_model(path, safe_mode=False)


def arrays(model, fresh, folder):
    """Weights as arrays in memory: the control, without a file."""
    loaded = fresh()
    loaded.set_weights(model.get_weights())
    derive_state(loaded)
    return loaded


def pickled(model, fresh, folder):
    """The whole model through `pickle`, for multiprocessing or joblib."""
    return pickle.loads(pickle.dumps(model))


def deep_copied(model, fresh, folder):
    return copy.deepcopy(model)


def cloned(model, fresh, folder):
    """Weights from a file into a clone of the model that wrote it."""
    path = os.path.join(folder, "model.weights.h5")
    model.save_weights(path)
    loaded = keras.models.clone_model(model)
    loaded.load_weights(path)
    return loaded


FILE_ROUTES = {}
# Both layouts can pass over layers, and the legacy one match them by name.
MATCHING_ROUTES = {}
COPYING_ROUTES = {}

# graft: with saving
FILE_ROUTES.update(h5=h5, legacy_weights=legacy_weights)
# graft: with saving
MATCHING_ROUTES.update(
    by_name=functools.partial(legacy_weights, by_name=True),
    skip_mismatch=functools.partial(
        legacy_weights, by_name=True, skip_mismatch=True
    ),
)
# graft: with stores
FILE_ROUTES.update(weights_h5=weights_h5, keras=archive)
# graft: with stores
MATCHING_ROUTES.update(
    weights_h5_skip_mismatch=functools.partial(weights_h5, skip_mismatch=True)
)
# graft: with stores
COPYING_ROUTES.update(pickle=pickled, deepcopy=deep_copied, clone=cloned)

ROUTES = {**FILE_ROUTES, **MATCHING_ROUTES, **COPYING_ROUTES}
WHOLE_ROUTES = [route for route in ("h5", "keras") if route in ROUTES]


def datasets_of(file):
    """Every dataset below `file`, by path."""
    import h5py

    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item

    file.visititems(visit)
    return found


class ModelTestCase(parameterized.TestCase):
    """A test with a folder of its own, which compares models bit by bit."""

    def setUp(self):
        super().setUp()
        keras.backend.clear_session()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_same_bits(self, what, before, after):
        """Fails unless two lists of arrays agree in dtype, shape and bytes."""
        before, after = as_bits(before), as_bits(after)
        difference = describe_difference(what, before, after)
        self.assertEqual(difference, "")

    def assert_same_weights(self, before, after):
        self.assert_same_bits("weight", weights_of(before), weights_of(after))

    def assert_same_outputs(self, before, after, inputs):
        self.assert_same_bits(
            "output", outputs_of(before, inputs), outputs_of(after, inputs)
        )
