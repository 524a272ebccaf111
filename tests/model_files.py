"""Writes and reads one bfloat16 model, with any Keras and in every format.

    python tests/model_files.py write MODULE STEM
    python tests/model_files.py read MODULE FORMAT... < RECORD.json

The first form saves the model to STEM.h5 and so on, and prints the record: the
bits of every weight and of every optimizer variable. The second finds what has
been written by its record, and prints what differs.

No test runner and no fork is needed here, so that stock releases can run it.
"""

import collections
import importlib
import importlib.metadata
import json
import os
import sys

import h5py
import numpy as np

FORMATS = {
    "h5": ".h5",
    "weights_only": ".weights_only.h5",
    "weights_h5": ".weights.h5",
    "keras": ".keras",
}
WHOLE_MODEL = ("h5", "keras")


class Release(collections.namedtuple("Release", "name version")):
    """A release of Keras, for example `tf_keras-2.21.0`."""

    @classmethod
    def parse(cls, text):
        name, _, version = text.partition("-")
        return cls(name, tuple(int(part) for part in version.split(".")))

    def __str__(self):
        return f"{self.name}-{'.'.join(map(str, self.version))}"

    @property
    def line(self):
        """2 or 3. Files of one do not open in the other."""
        return self.version[0]

    @property
    def is_legacy(self):
        """Whether `keras.optimizers` are the optimizers of before 2.11.

        Those of TensorFlow, `tf.keras.optimizers`, have changed in 2.11,
        those of `import keras` in 2.13.
        """
        return self.line == 2 and self.version < (2, 13)

    @property
    def layout(self):
        """Where `.weights.h5` keeps the variables of a layer."""
        if self.line == 3 or self.name == "tf_keras":
            return "layers/"
        if self.version < (2, 12):
            return "a group for each layer's name"
        if self.version < (2, 15):
            return "_layer_checkpoint_dependencies/"
        return "layers/"


def installed_fork():
    """The module of the installed fork, or None."""
    for name in ("keras", "tf_keras"):
        try:
            if "+bf16" in importlib.metadata.version(name):
                return name
        except importlib.metadata.PackageNotFoundError:
            pass
    return None


def import_keras(name):
    """Imports `keras`, `tf_keras`, or `tensorflow.keras`."""
    package, *attributes = name.split(".")
    module = importlib.import_module(package)
    for attribute in attributes:
        module = getattr(module, attribute)
    return module


def release_of(keras):
    name = "tf_keras" if keras.__name__.startswith("tf_keras") else "keras"
    return Release.parse(f"{name}-{keras.__version__.partition('+')[0]}")


def has_newer_optimizer(record):
    """Whether the optimizer was of the kind that came with keras 2.11."""
    return "iteration" in record["optimizer"][0]["name"]


def why_unreadable(record, reader, file_format):
    """Why upstream cannot open a file, in float32 either, or an empty string.

    Measured with the float32 twins of the stock files, on the releases that
    wrote them and on keras 2.14.0 and tf_keras 2.14.1.
    """
    if file_format == "weights_only":
        return ""
    writer = Release.parse(record["writer"])
    zipped = writer.version >= (2, 13)
    if file_format == "weights_h5" or (file_format == "keras" and zipped):
        if writer.layout != reader.layout:
            return (
                f"{writer} keeps weights in {writer.layout}, {reader} looks "
                f"for them in {reader.layout}"
            )
    if file_format == "weights_h5" or writer == reader:
        return ""
    if reader.version < (2, 11) and has_newer_optimizer(record):
        return f"{reader} has no optimizers of the kind that {writer} saves"
    if reader.version < (2, 13) <= writer.version:
        return f"{reader} has no loss argument `fn`, that {writer} saves"
    if reader.version < (2, 21) <= writer.version < (3,):
        return f"{reader} has no Input argument `optional`, that {writer} saves"
    if file_format == "keras" and zipped and writer.name > reader.name:
        return f"{reader} cannot find the modules that {writer} names"
    if writer.line == 3 and writer.version > reader.version:
        return f"{reader} does not know every argument that {writer} saves"
    return ""


def build(keras):
    """Makes the model of the files: compiled, with fresh values."""
    layers = keras.layers
    inputs = layers.Input((6, 3), dtype="bfloat16", name="in0")
    x = layers.Conv1D(4, 2, dtype="bfloat16", name="conv")(inputs)
    x = layers.LayerNormalization(dtype="bfloat16", name="norm")(x)
    x = layers.Flatten(dtype="bfloat16", name="flat")(x)
    x = layers.Dense(2, dtype="bfloat16", name="out")(x)
    model = keras.Model(inputs, x)
    optimizer = keras.optimizers.SGD(learning_rate=0.125, momentum=0.5)
    model.compile(optimizer, keras.losses.MeanSquaredError())
    return model


def optimizer_variables(model):
    variables = model.optimizer.variables
    return list(variables() if callable(variables) else variables)


def load(keras, path, file_format):
    """Loads a model, or loads its weights into a fresh one."""
    if file_format in WHOLE_MODEL:
        model = keras.models.load_model(path)
        if not isinstance(model, keras.Model):
            # With tf_keras beside it, keras 2 makes a model of tf_keras from
            # a config of tf_keras, and loads nothing into it.
            raise TypeError(f"{type(model)} is no model of {keras.__name__}")
        return model
    model = build(keras)
    if hasattr(model.optimizer, "build"):
        # Or the optimizer's part of `.weights.h5` is left out.
        model.optimizer.build(model.trainable_variables)
    model.load_weights(path)
    return model


def has_optimizer_state(record, file_format, reader):
    """Whether a file holds optimizer variables that the reader looks for."""
    if file_format == "weights_h5":
        return has_newer_optimizer(record) and not reader.is_legacy
    return file_format in WHOLE_MODEL


def difference(name, variable, dtype, shape, data):
    """What is wrong with a variable, or an empty string."""
    value = variable.numpy()
    actual = (value.dtype.name, value.shape, value.tobytes().hex())
    expected = (dtype, tuple(shape), data.hex())
    if actual == expected:
        return ""
    return f"{name}: expected {expected}, received {actual}"


def weight_differences(model, record):
    expected = list(record["weights"].values())
    found = [
        difference(
            weight["name"],
            variable,
            "bfloat16",
            weight["shape"],
            np.array(weight["bits"], "<u2").tobytes(),
        )
        for variable, weight in zip(model.weights, expected)
    ]
    return counted(found, len(model.weights), len(expected))


def optimizer_differences(model, record):
    variables = optimizer_variables(model)
    expected = record["optimizer"]
    found = [
        difference(
            item["name"],
            variable,
            item["dtype"],
            item["shape"],
            bytes.fromhex(item["hex"]),
        )
        for variable, item in zip(variables, expected)
    ]
    return counted(found, len(variables), len(expected))


def counted(found, actual, expected):
    found = [text for text in found if text]
    if actual != expected:
        found.append(f"expected {expected} variables, received {actual}")
    return found


def missing_numbers(record, path):
    """The weights that plain h5py does not see as numbers in a file."""
    seen = []

    def collect(_, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            seen.append(item[()].astype("float32"))

    with h5py.File(path, "r") as file:
        file.visititems(collect)
    missing = []
    for weight in record["weights"].values():
        bits = np.array(weight["bits"], "u4").reshape(weight["shape"])
        expected = (bits << 16).view("float32")
        if not any(np.array_equal(expected, value) for value in seen):
            missing.append(f"{weight['name']} is nowhere in {path}")
    return missing


def fill(model):
    """Gives each weight values of its own, and takes a step."""
    random = np.random.RandomState(7)
    x, y = random.rand(8, 6, 3), random.rand(8, 2)
    model.train_on_batch(x.astype("float32"), y.astype("float32"))
    for index, weight in enumerate(model.weights):
        value = weight.numpy()
        bits = np.arange(value.size) * 257 + 1000 * index + 11
        bits[1::2] |= 0x8000
        bits = bits.astype("u2").reshape(value.shape)
        weight.assign(bits.view(value.dtype))


def record_of(model, writer):
    weights = [(weight, weight.numpy()) for weight in model.weights]
    variables = [(item, item.numpy()) for item in optimizer_variables(model)]
    return {
        "writer": str(writer),
        "weights": {
            f"w{index}": {
                "name": weight.name,
                "shape": value.shape,
                "bits": value.view("u2").ravel().tolist(),
            }
            for index, (weight, value) in enumerate(weights)
        },
        "optimizer": [
            {
                "name": variable.name,
                "dtype": value.dtype.name,
                "shape": value.shape,
                "hex": value.tobytes().hex(),
            }
            for variable, value in variables
        ],
    }


def write(keras, stem):
    """Saves the model in every format, and returns the record."""
    writer = release_of(keras)
    model = build(keras)
    fill(model)
    record = record_of(model, writer)
    record["files"] = {}
    for file_format, suffix in FORMATS.items():
        path = stem + suffix
        if file_format in WHOLE_MODEL:
            model.save(path)
        elif file_format == "weights_h5" or writer.line == 2:
            model.save_weights(path)
        else:
            continue
        record["files"][file_format] = path
    return record


def read(keras, record, file_format):
    """Loads a file, and lists what is not as recorded."""
    path = record["files"][file_format]
    model = load(keras, path, file_format)
    found = {"weights": weight_differences(model, record), "optimizer": []}
    if has_optimizer_state(record, file_format, release_of(keras)):
        found["optimizer"] = optimizer_differences(model, record)
    if h5py.is_hdf5(path):
        found["numbers"] = missing_numbers(record, path)
    return found


def main(command, module, *arguments):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    keras = import_keras(module)
    if command == "write":
        return write(keras, *arguments)
    record = json.load(sys.stdin)
    return {name: read(keras, record, name) for name in arguments}


if __name__ == "__main__":
    # Whatever Keras prints comes before the last line.
    print(f"\n{json.dumps(main(*sys.argv[1:]))}")
