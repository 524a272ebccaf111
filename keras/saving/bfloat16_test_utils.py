"""What the tests of low-precision models share.

All that differs between releases and frameworks is in here: which ways there
are to save a model, since when, and how a tensor becomes an array.
"""

import contextlib
import copy
import functools
import os
import pickle
import shutil
import tempfile
import unittest

import numpy as np
from absl.testing import parameterized

import keras

VERSION = tuple(int(part) for part in keras.__version__.split(".")[:2])
IS_KERAS_3 = VERSION >= (3, 0)
BACKEND = keras.backend.backend()

# Significant binary digits, the implicit one included.
SIGNIFICANT_DIGITS = {
    "bfloat16": 8,
    "float16": 11,
    "float32": 24,
    "float64": 53,
}

# The release of each line that a feature came with.
SINCE = {
    "the .keras archive": [(2, 12), (3, 0)],
    "the .weights.h5 layout of its own": [(2, 12), (3, 0)],
    "own variables of a custom layer": [(2, 13), (3, 0)],
    "pickle by the .keras archive": [(2, 12), (3, 4)],
    "new optimizers as the default": [(2, 11), (3, 0)],
    "new optimizers in files": [(2, 11), (3, 0)],
    "LoRA": [None, (3, 1)],
    "quantize int8": [None, (3, 4)],
    "quantize float8": [None, (3, 4)],
    "quantize int4": [None, (3, 11)],
    "KerasFileEditor": [None, (3, 6)],
    "sharded weights": [None, (3, 10)],
    "files given as an h5py.File": [(2, 9), None],
    "weights of a float8 type": [(2, 13), (3, 3)],
    "weights of an int4 type": [(2, 13), None],
}

# Faults that float32 shows as well, and the release since which the fork mends
# them.
MENDED_SINCE = {
    "string losses in .h5": [(2, 9), (3, 15)],
    "constants in a graph": [(2, 21), (3, 15)],
    "NumPy scalars in a config": [(2, 21), (3, 15)],
    "weights without names": [(2, 9), (3, 0)],
    "optimizer state in .h5": [(2, 9), (3, 15)],
    "quantized models in .h5": [None, (3, 15)],
    "legacy optimizers in .keras": [(2, 21), None],
}


def reached(what):
    """Whether the Keras under test has come to an entry of a table."""
    since = {**SINCE, **MENDED_SINCE}[what][IS_KERAS_3]
    return since is not None and VERSION >= since


def reason(what):
    """Why a test is skipped that needs an entry of a table."""
    since = {**SINCE, **MENDED_SINCE}[what]
    releases = [f"Keras {x}.{y}" for x, y in filter(None, since)]
    verb = "mended" if what in MENDED_SINCE else "there"
    return f"{what}: {verb} since {' and '.join(releases)} only"


def needs(what):
    """Skips a test, or a class of them, where Keras has no such feature."""
    return unittest.skipUnless(reached(what), reason(what))


needs_tensorflow = unittest.skipUnless(
    BACKEND == "tensorflow", "uses TensorFlow itself"
)


def policy_functions():
    if IS_KERAS_3:
        return keras.mixed_precision
    return keras.mixed_precision.policy


def policy_name():
    """The default policy of layers."""
    return policy_functions().global_policy().name


@contextlib.contextmanager
def global_policy(policy):
    """Makes `policy` the default of layers created in the block."""
    set_policy = policy_functions().set_global_policy
    set_policy(policy)
    try:
        yield
    finally:
        # In Keras 2 no policy means the one of `floatx`.
        set_policy("float32" if IS_KERAS_3 else None)


def numpy_type(name):
    """The NumPy type that the framework has for the name of a dtype."""
    if IS_KERAS_3:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name, name))
    import tensorflow as tf

    return np.dtype(tf.as_dtype(name).as_numpy_dtype)


def to_tensor(array, dtype=None):
    if dtype is None:
        import tensorflow as tf

        return tf.constant(array)
    if IS_KERAS_3:
        return keras.ops.cast(array, dtype)
    return keras.backend.cast(keras.backend.constant(array), dtype)


def to_array(tensor):
    if not IS_KERAS_3 or BACKEND == "tensorflow":
        return np.asarray(tensor.numpy())
    return keras.ops.convert_to_numpy(tensor)


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


def make_optimizer(name, **config):
    """An optimizer as a string selects it: in Keras 2 of the newest kind."""
    if not IS_KERAS_3 and reached("new optimizers as the default"):
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


def load_model(path, compile=False, **kwargs):
    return keras.models.load_model(path, compile=compile, **kwargs)


def h5(model, fresh, folder):
    """The whole model in the legacy HDF5 layout."""
    path = os.path.join(folder, "model.h5")
    model.save(path)
    return load_model(path)


def save_legacy_weights(model, folder):
    """Weights in the legacy HDF5 layout; Keras 3 only reads those."""
    path = os.path.join(folder, "model.h5")
    if IS_KERAS_3:
        model.save(path)
    else:
        model.save_weights(path)
    return path


def legacy_weights(model, fresh, folder, **kwargs):
    """Weights from the legacy HDF5 layout."""
    path = save_legacy_weights(model, folder)
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
    model.save(path, **ARCHIVE_ARGUMENTS)
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


# The archive came with Keras 2.12, there only on request.
ARCHIVE_ARGUMENTS = {"save_format": "keras_v3"} if VERSION == (2, 12) else {}


def save_arguments(route):
    return ARCHIVE_ARGUMENTS if route == "keras" else {}


FILE_ROUTES = {
    "h5": h5,
    "legacy_weights": legacy_weights,
    "weights_h5": weights_h5,
    "keras": archive,
}
if not reached("the .keras archive"):
    del FILE_ROUTES["keras"]

# The legacy layout has two ways to match layers, and to pass over some.
MATCHING_ROUTES = {
    "by_name": functools.partial(legacy_weights, by_name=True),
    "skip_mismatch": functools.partial(
        legacy_weights, by_name=True, skip_mismatch=True
    ),
}
if reached("the .weights.h5 layout of its own"):
    MATCHING_ROUTES["weights_h5_skip_mismatch"] = functools.partial(
        weights_h5, skip_mismatch=True
    )

COPYING_ROUTES = {
    "pickle": pickled,
    "deepcopy": deep_copied,
    "clone": cloned,
}
if not reached("pickle by the .keras archive"):
    del COPYING_ROUTES["pickle"], COPYING_ROUTES["deepcopy"]

ROUTES = {**FILE_ROUTES, **MATCHING_ROUTES, **COPYING_ROUTES}
WHOLE_MODEL = ("h5", "keras", "pickle", "deepcopy", "clone")


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

    def skip_unless_reached(self, what):
        if not reached(what):
            self.skipTest(reason(what))

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
