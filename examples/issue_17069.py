"""The script of keras-team/keras#17069: does a bfloat16 `.h5` come back?

    python examples/issue_17069.py            # the Keras that TensorFlow uses
    python examples/issue_17069.py tf_keras   # Keras 2

It trains a small bfloat16 convolution net for a few steps, saves it as `.h5`,
shows what is on disk, loads it again and compares weights and outputs bit for
bit. The exit status is 0 if all of it came back.
"""

import importlib
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import h5py
import numpy as np
import tensorflow as tf


def trained_model(keras):
    layers = keras.layers
    inputs = keras.Input((8, 8, 1), dtype="bfloat16")
    x = layers.Conv2D(4, 3, activation="relu", dtype="bfloat16")(inputs)
    x = layers.BatchNormalization(dtype="bfloat16")(x)
    x = layers.Flatten(dtype="bfloat16")(x)
    outputs = layers.Dense(2, dtype="bfloat16")(x)
    model = keras.Model(inputs, outputs)
    model.compile(
        keras.optimizers.SGD(0.5, momentum=0.5),
        keras.losses.MeanSquaredError(),
    )
    model.fit(images(), np.eye(2)[[0, 1] * 4], verbose=0)
    return model


def images():
    """Eight pictures of a bar, upright or lying, at different places."""
    pictures = np.zeros((8, 8, 8, 1), "float32")
    for i in range(8):
        if i % 2:
            pictures[i, i] = 1
        else:
            pictures[i, :, i] = 1
    return tf.cast(pictures, "bfloat16")


def show_file(path):
    with h5py.File(path) as file:
        print(f"{'HDF5 type':<36} {'shape':<14} dataset")
        file.visititems(show_item)


def show_item(name, item):
    if isinstance(item, h5py.Dataset):
        hdf5_type = describe(item.id.get_type())
        print(f"{hdf5_type:<36} {str(item.shape):<14} {name}")


def describe(hdf5_type):
    bits = 8 * hdf5_type.get_size()
    if isinstance(hdf5_type, h5py.h5t.TypeFloatID):
        _, _, exponent, _, mantissa = hdf5_type.get_fields()
        return f"{bits}-bit float: {exponent} exponent, {mantissa} mantissa"
    if isinstance(hdf5_type, h5py.h5t.TypeOpaqueID):
        return f"{bits}-bit opaque: nobody knows what it is"
    return f"{bits}-bit integer"


def differences(before, after):
    x = images()
    pairs = [
        (f"weight {w.name}", w.numpy(), v.numpy())
        for w, v in zip(before.weights, after.weights)
    ]
    pairs.append(("output", before(x).numpy(), after(x).numpy()))
    return [
        name
        for name, a, b in pairs
        if (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes())
    ]


def main(name="keras"):
    keras = importlib.import_module(name)
    print(f"{name} {keras.__version__}, TensorFlow {tf.__version__}")
    model = trained_model(keras)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.h5")
        model.save(path)
        show_file(path)
        try:
            loaded = keras.models.load_model(path)
        except Exception as error:
            sys.exit(f"LOST: {type(error).__name__}: {error}")
    lost = differences(model, loaded)
    if lost:
        sys.exit(f"LOST: {', '.join(lost)}")
    print(f"SAVED: {len(model.weights)} weights and the output, bit for bit")


if __name__ == "__main__":
    main(*sys.argv[1:])
