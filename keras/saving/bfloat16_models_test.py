"""Every kind of model must survive every file in bfloat16, bit for bit.

The weights get values that no narrower type can hold, the model goes through
each way of saving, and what comes back must agree in each weight's type, shape
and bytes, and in the bytes of the output.
"""

import collections
import functools
import gc
import io
import os
import pathlib
import warnings
import zipfile
from unittest import mock

import h5py
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import keras
from keras import layers
from keras.applications import efficientnet
from keras.saving import bfloat16_test_utils as test_utils

POLICIES = ("bfloat16", "mixed_bfloat16")
ALL_ROUTES = tuple(test_utils.ROUTES)
WEIGHTS_ROUTES = ("legacy_weights", "by_name", "skip_mismatch", "weights_h5")
LONG_NAME = "x" * 90


class Scale(layers.Layer):
    """Multiplies by one number."""

    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        self.built = True

    def call(self, inputs):
        return inputs * self.scale


class OddShapes(layers.Layer):
    """Has a scalar, an empty and a one-element weight."""

    def build(self, input_shape):
        self.shapes = [
            self.add_weight(name=name, shape=shape, initializer="ones")
            for name, shape in [
                ("scalar", ()),
                ("empty", (0, 3)),
                ("single", (1, 1, 1)),
            ]
        ]
        self.built = True

    def call(self, inputs):
        return inputs * self.shapes[0]


class Unnamed(layers.Layer):
    """Leaves the names of its weights to Keras."""

    def build(self, input_shape):
        size = input_shape[-1]
        self.a = self.add_weight(shape=(size,), initializer="ones")
        self.b = self.add_weight(shape=(size,), initializer="ones")
        self.built = True

    def call(self, inputs):
        return inputs * self.a + self.b


class OwnStore(Unnamed):
    """Writes both of its weights as one array."""

    def build(self, input_shape):
        size = input_shape[-1]
        self.a = self.add_weight(name="a", shape=(size,), initializer="ones")
        self.b = self.add_weight(name="b", shape=(size,), initializer="ones")
        self.built = True

    def save_own_variables(self, store):
        arrays = [test_utils.to_array(weight) for weight in (self.a, self.b)]
        store["both"] = np.stack(arrays)

    def load_own_variables(self, store):
        both = store["both"][:]
        self.a.assign(both[0])
        self.b.assign(both[1])


class ManyWeights(layers.Layer):
    """Its weights' names do not fit into one HDF5 attribute."""

    def build(self, input_shape):
        self.many = [
            self.add_weight(
                name=f"{LONG_NAME}_{i}", shape=(2,), initializer="ones"
            )
            for i in range(750)
        ]
        self.built = True

    def call(self, inputs):
        return inputs * self.many[0][0] + self.many[-1][1]


# graft: keras>=3.2
NO_AUTOCAST = {"autocast": False}
# graft: keras<3.2 | tf_keras
NO_AUTOCAST = {}


class Stored(layers.Layer):
    """Keeps one weight of any type and shape, and passes its input on."""

    def __init__(self, weight_dtype, weight_shape, **kwargs):
        super().__init__(**kwargs)
        self.weight_dtype = weight_dtype
        self.weight_shape = tuple(weight_shape)

    def build(self, input_shape):
        self.stored = self.add_weight(
            name="stored",
            shape=self.weight_shape,
            dtype=self.weight_dtype,
            initializer=zeros,
            trainable=False,
            **NO_AUTOCAST,
        )
        self.built = True

    def call(self, inputs):
        return inputs * 1.0

    def get_config(self):
        config = super().get_config()
        config["weight_dtype"] = self.weight_dtype
        config["weight_shape"] = self.weight_shape
        return config


def zeros(shape, dtype=None, **kwargs):
    name = getattr(dtype, "name", dtype)
    return np.zeros(shape, test_utils.numpy_type(name))


class Subclassed(keras.Model):
    """A model that owns layers and says how to make it again."""

    def __init__(self, units, policy, **kwargs):
        super().__init__(dtype=policy, **kwargs)
        self.units = units
        self.policy = policy
        self.hidden = layers.Dense(units, dtype=policy)
        self.last = layers.Dense(2, dtype=policy)

    def call(self, inputs):
        return self.last(self.hidden(inputs))

    def get_config(self):
        return {"units": self.units, "policy": self.policy}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class WithOwnWeights(keras.Model):
    """A model that has weights of its own beside those of its layers."""

    def __init__(self, policy, **kwargs):
        super().__init__(dtype=policy, **kwargs)
        self.policy = policy
        self.scale = self.add_weight(
            name="scale", shape=(3,), initializer="ones"
        )
        self.offset = self.add_weight(
            name="offset", shape=(), initializer="zeros", trainable=False
        )
        self.last = layers.Dense(3, dtype=policy)

    def call(self, inputs):
        return self.last(inputs) * self.scale + self.offset

    def get_config(self):
        return {"policy": self.policy}

    def build_from_config(self, config):
        # The `build` of Keras 2 casts no weights, as a mixed policy should.
        built(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


CUSTOM_OBJECTS = {
    cls.__name__: cls
    for cls in (
        Scale,
        OddShapes,
        Unnamed,
        OwnStore,
        ManyWeights,
        Stored,
        Subclassed,
        WithOwnWeights,
    )
}


def sequential():
    return keras.Sequential(
        [layers.Input((4,)), layers.Dense(5, "relu"), layers.Dense(2)]
    )


def convolutional():
    image = layers.Input((5, 5, 3))
    x = layers.Conv2D(2, 3)(image)
    x = layers.BatchNormalization()(x)
    x = layers.DepthwiseConv2D(2)(x)
    return keras.Model(image, layers.Dense(2)(layers.Flatten()(x)))


def shared_layers():
    """Two inputs, two outputs, and a layer that is called three times."""
    left, right = layers.Input((4,)), layers.Input((4,))
    shared = layers.Dense(4, name="shared")
    both = layers.Concatenate()([shared(left), shared(shared(right))])
    outputs = [
        layers.Dense(2, name="one")(both),
        layers.Dense(3, name="other")(both),
    ]
    return keras.Model([left, right], outputs)


def built(model):
    """A model whose weights exist: one that was called."""
    model(test_utils.to_tensor(np.zeros((1, 4)), "float32"))
    return model


def subclassed():
    return built(Subclassed(3, test_utils.policy_name()))


def own_weights():
    return built(WithOwnWeights(test_utils.policy_name()))


def nested():
    inner = keras.Sequential([layers.Input((4,)), layers.Dense(4)])
    tensor = layers.Input((4,))
    middle = keras.Model(tensor, Scale()(inner(tensor)))
    return keras.Sequential([layers.Input((4,)), middle, layers.Dense(2)])


def time_distributed():
    return keras.Sequential(
        [layers.Input((3, 4)), layers.TimeDistributed(layers.Dense(2))]
    )


# graft: with layers
def bidirectional():
    return keras.Sequential(
        [layers.Input((3, 4)), layers.Bidirectional(layers.LSTM(2))]
    )


def odd_shapes():
    return keras.Sequential([layers.Input((4,)), OddShapes()])


def unnamed_weights():
    return keras.Sequential([layers.Input((4,)), Unnamed(), Unnamed()])


def own_store():
    return keras.Sequential([layers.Input((4,)), OwnStore(), layers.Dense(2)])


def normalized():
    """Statistics that the mixed policy keeps in bfloat16, too."""
    return keras.Sequential(
        [
            layers.Input((4,)),
            layers.Normalization(),
            layers.Dense(3),
            layers.BatchNormalization(),
            layers.Dense(2),
        ]
    )


# graft: with layers
def constants():
    """A graph of operations with numbers in them."""
    tensor = layers.Input((4,))
    x = 1.0 + layers.Dense(3)(tensor)
    return keras.Model(tensor, 0.5 - x * 2.0)


def configured():
    """NumPy's own bfloat16 numbers as arguments."""
    number = test_utils.numpy_type("bfloat16").type
    return keras.Sequential(
        [
            layers.Input((4,)),
            layers.Rescaling(scale=number(0.75), offset=number(-0.5)),
            layers.Dense(
                2,
                kernel_initializer=keras.initializers.Constant(number(0.25)),
            ),
        ]
    )


def thousand_layers():
    """More names than fit into one HDF5 attribute, side by side.

    Keras 3 cannot build them one after the other in any precision.
    """
    tensor = layers.Input((4,))
    scaled = [Scale(name=f"{LONG_NAME}_{i}")(tensor) for i in range(1001)]
    return keras.Model(tensor, layers.Add()(scaled))


def many_weights():
    return keras.Sequential([layers.Input((4,)), ManyWeights()])


def efficient_net():
    return efficientnet.EfficientNetB0(
        weights=None, input_shape=(32, 32, 3), classes=3
    )


Kind = collections.namedtuple("Kind", "make shapes routes")


def kind(make, *shapes, routes=ALL_ROUTES):
    """Describes one kind of model: how it is made, its inputs, its routes."""
    return Kind(make, shapes or [(4,)], routes)


# A subclassed model has no whole legacy file, and cannot be cloned.
# graft: keras>=3
OF_SUBCLASSES = ("weights_h5", "keras", "pickle", "deepcopy")
# graft: keras<3 | tf_keras
OF_SUBCLASSES = ("legacy_weights", "weights_h5", "keras", "pickle", "deepcopy")

KINDS = {
    "sequential": kind(sequential),
    "convolutional": kind(convolutional, (5, 5, 3)),
    "shared_layers": kind(shared_layers, (4,), (4,)),
    "subclassed": kind(subclassed, routes=OF_SUBCLASSES),
    "own_weights": kind(own_weights, routes=OF_SUBCLASSES),
    "nested": kind(nested),
    "time_distributed": kind(time_distributed, (3, 4)),
    "odd_shapes": kind(odd_shapes),
    "unnamed_weights": kind(unnamed_weights),
    "own_store": kind(own_store),
    "normalized": kind(normalized),
    "configured": kind(configured),
}
# graft: with layers
KINDS.update(
    bidirectional=kind(bidirectional, (3, 4)), constants=kind(constants)
)
LARGE_KINDS = {
    "thousand_layers": kind(thousand_layers, routes=("h5", "weights_h5")),
    "many_weights": kind(many_weights, routes=("h5", "weights_h5")),
    "efficient_net": kind(
        efficient_net, (32, 32, 3), routes=tuple(test_utils.FILE_ROUTES)
    ),
}


def make_model(make, policy="bfloat16"):
    """A model as in a new process."""
    keras.backend.clear_session()
    with test_utils.global_policy(policy):
        return make()


def make_inputs(shapes):
    """A batch of two for each input."""
    random = np.random.RandomState(0)
    batch = [
        test_utils.to_tensor(
            random.uniform(size=(2,) + shape).astype("float32"), "float32"
        )
        for shape in shapes
    ]
    return batch if len(batch) > 1 else batch[0]


def filled_model(make, policy="bfloat16"):
    model = make_model(make, policy)
    test_utils.fill_weights(model)
    return model


def each_route(kinds):
    """The arguments of `named_parameters`, one for each way of each kind."""
    return [
        (f"{name}_{policy}_{route}", name, policy, route)
        for name in kinds
        for policy in POLICIES
        for route in kinds[name].routes
        if route in ALL_ROUTES
    ]


def setUpModule():
    """Spares `clear_session` from walking through all of the framework."""
    gc.freeze()


class ModelsTestCase(test_utils.ModelTestCase):
    def through(self, route, model, fresh):
        """What comes back when `model` is saved and loaded by `route`."""
        # Not around the test: Keras 3 forgets it when a session is cleared.
        with keras.utils.custom_object_scope(CUSTOM_OBJECTS):
            return test_utils.ROUTES[route](model, fresh, self.folder)


class ModelRoundTripTest(ModelsTestCase):
    @parameterized.named_parameters(each_route(KINDS))
    def test_round_trip(self, name, policy, route):
        """Saves and loads; what comes back must be the same."""
        make, shapes, _ = KINDS[name]
        model = filled_model(make, policy)
        inputs = make_inputs(shapes)
        outputs = test_utils.outputs_of(model, inputs)
        loaded = self.through(route, model, lambda: make_model(make, policy))
        self.assert_same_weights(model, loaded)
        self.assert_same_bits(
            "output", outputs, test_utils.outputs_of(loaded, inputs)
        )


class LargeModelsTest(ModelsTestCase):
    @classmethod
    def tearDownClass(cls):
        # What they leave behind would slow every `clear_session` down.
        large_models.cache_clear()
        super().tearDownClass()

    @parameterized.named_parameters(
        (f"{name}_{route}", name, policy, route)
        for name, policy in [
            ("thousand_layers", "bfloat16"),
            ("many_weights", "bfloat16"),
            ("efficient_net", "mixed_bfloat16"),
        ]
        for route in LARGE_KINDS[name].routes
        if route in ALL_ROUTES
    )
    def test_large(self, name, policy, route):
        """The same for models that take long to build, which is done once."""
        model, fresh = large_models(name, policy)
        clear_weights(fresh)
        loaded = self.through(route, model, lambda: fresh)
        self.assert_same_weights(model, loaded)
        inputs = make_inputs(LARGE_KINDS[name].shapes)
        self.assert_same_outputs(model, loaded, inputs)


@functools.lru_cache(maxsize=1)
def large_models(name, policy):
    """A filled model, and another one to load its weights into."""
    make = LARGE_KINDS[name].make
    return filled_model(make, policy), make_model(make, policy)


def clear_weights(model):
    """Makes sure that what a model has afterwards was loaded."""
    model.set_weights([np.zeros_like(array) for array in model.get_weights()])


class SkipMismatchTest(ModelsTestCase):
    @parameterized.named_parameters(
        (route, route)
        for route in test_utils.MATCHING_ROUTES
        if "skip_mismatch" in route
    )
    def test_another_head(self, route):
        """All but the layer of another shape is loaded."""

        def make(units=2):
            return keras.Sequential(
                [
                    layers.Input((4,)),
                    layers.Dense(5, name="body"),
                    layers.Dense(units, name="head"),
                ]
            )

        model = filled_model(make)
        fresh = make_model(lambda: make(units=3))
        untouched = test_utils.weights_of(fresh)[2:]
        loaded = self.through(route, model, lambda: fresh)
        weights = test_utils.weights_of(loaded)
        self.assert_same_bits(
            "weight", test_utils.weights_of(model)[:2], weights[:2]
        )
        self.assert_same_bits("weight", untouched, weights[2:])


def stored(dtype, shape):
    return keras.Sequential([layers.Input((4,)), Stored(dtype, shape)])


def every_pattern(dtype):
    """An array of all values that a type of one or two bytes has."""
    dtype = test_utils.numpy_type(dtype)
    if "int4" in dtype.name:
        low = -8 if dtype.name == "int4" else 0
        return np.arange(low, low + 16).astype(dtype)
    patterns = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    return patterns.view(dtype).reshape(16, -1)


class SpecialValuesTest(ModelsTestCase):
    def check(self, dtype, route):
        patterns = every_pattern(dtype)

        def fresh():
            return make_model(lambda: stored(dtype, patterns.shape))

        model = fresh()
        model.weights[0].assign(patterns)
        if test_utils.BACKEND == "tensorflow":
            self.assert_same_bits(
                "weight", [patterns], test_utils.weights_of(model)
            )
        loaded = self.through(route, model, fresh)
        self.assert_same_weights(model, loaded)

    @parameterized.named_parameters((route, route) for route in ALL_ROUTES)
    def test_bfloat16(self, route):
        """All NaN payloads, infinities, subnormals and both zeros."""
        self.check("bfloat16", route)

    @parameterized.named_parameters(
        (f"{dtype}_{route}", dtype, route)
        for dtype in ("float8_e4m3fn", "float8_e5m2")
        for route in ALL_ROUTES
    )
    @test_utils.needs_tensorflow
    def test_float8(self, dtype, route):
        self.check(dtype, route)

    # Keras 3 has no variables of these types.
    # graft: keras<3 | tf_keras
    @parameterized.named_parameters(
        (f"{dtype}_{route}", dtype, route)
        for dtype in ("int4", "uint4")
        for route in ALL_ROUTES
    )
    def test_int4(self, dtype, route):
        self.check(dtype, route)


CASTS = [
    ("bfloat16", "float32"),
    ("bfloat16", "float16"),
    ("float32", "bfloat16"),
    ("float16", "bfloat16"),
]


class CrossPrecisionTest(ModelsTestCase):
    @parameterized.named_parameters(
        (f"{source}_into_{target}_{route}", source, target, route)
        for source, target in CASTS
        for route in WEIGHTS_ROUTES
        if route in ALL_ROUTES
    )
    def test_cast(self, source, target, route):
        """The numbers are the same wherever the other type has them."""
        model = filled_model(convolutional, source)
        loaded = test_utils.ROUTES[route](
            model, lambda: make_model(convolutional, target), self.folder
        )
        self.assertIn(target, map(test_utils.dtype_name, loaded.weights))
        # Keras 2 keeps the weights of BatchNormalization in float32.
        expected = [
            array.astype("float32").astype(
                test_utils.numpy_type(test_utils.dtype_name(weight))
            )
            for array, weight in zip(
                test_utils.weights_of(model), loaded.weights
            )
        ]
        self.assert_same_bits("weight", expected, test_utils.weights_of(loaded))


class RawArraysTest(ModelsTestCase):
    """NumPy's own files, and h5py's, forget the type of an array."""

    def check(self, arrays):
        self.assertEqual({array.dtype.kind for array in arrays}, {"V"})
        loaded = make_model(sequential)
        loaded.set_weights(arrays)
        self.assert_same_weights(self.model, loaded)

    def setUp(self):
        super().setUp()
        self.model = filled_model(sequential)

    def test_npz(self):
        path = self.path("weights.npz")
        np.savez(path, *self.model.get_weights())
        with np.load(path) as file:
            self.check([file[name] for name in file.files])

    def test_own_hdf5_file(self):
        path = self.path("mine.hdf5")
        with h5py.File(path, "w") as file:
            for i, array in enumerate(self.model.get_weights()):
                file[str(i)] = array
        with h5py.File(path, "r") as file:
            self.check([file[str(i)][()] for i in range(len(file))])

    def test_pickled_arrays(self):
        path = self.path("weights.npy")
        raw = [array.view("V2") for array in self.model.get_weights()]
        np.save(path, np.array(raw, dtype=object), allow_pickle=True)
        self.check(list(np.load(path, allow_pickle=True)))


SUFFIXES = {
    "h5": ".h5",
    "legacy_weights": ".h5",
    "by_name": ".h5",
    "skip_mismatch": ".h5",
    "weights_h5": ".weights.h5",
    "weights_h5_skip_mismatch": ".weights.h5",
    "keras": ".keras",
}


class OnDiskTestCase(ModelsTestCase):
    """Lets a test see or change a file between saving and loading."""

    def save(self, model, route, path_type=str):
        """Saves as `route` does and returns the path."""
        path = path_type(self.path("model" + SUFFIXES[route]))
        if route in test_utils.WHOLE_ROUTES:
            test_utils.save_model(model, path)
        elif "weights_h5" in route:
            model.save_weights(path)
        else:
            test_utils.save_legacy_weights(model, path)
        return path

    def load(self, path, route, fresh):
        """Loads as `route` does, the weights alone into `fresh`."""
        if route in test_utils.WHOLE_ROUTES:
            return test_utils.load_model(path)
        arguments = {}
        if route in ("by_name", "skip_mismatch"):
            arguments["by_name"] = True
        if "skip_mismatch" in route:
            arguments["skip_mismatch"] = True
        fresh.load_weights(path, **arguments)
        return fresh

    def edit(self, path, change):
        """Calls `change` with the open HDF5 file at or in `path`."""
        if not path.endswith(".keras"):
            with h5py.File(path, "r+") as file:
                return change(file)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        inner = self.path("inner.h5")
        with open(inner, "wb") as file:
            file.write(members["model.weights.h5"])
        with h5py.File(inner, "r+") as file:
            result = change(file)
        with open(inner, "rb") as file:
            members["model.weights.h5"] = file.read()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return result


class CompiledModelTest(OnDiskTestCase):
    @parameterized.named_parameters(
        (f"{policy}_{route}", policy, route)
        for policy in POLICIES
        for route in test_utils.WHOLE_ROUTES
    )
    def test_strings(self, policy, route):
        model = make_model(sequential, policy)
        model.compile("sgd", loss="mse", metrics=["mae"])
        x = np.random.RandomState(0).uniform(size=(8, 4)).astype("float32")
        y = x[:, :2]
        model.fit(x, y, verbose=0)
        test_utils.fill_weights(model)
        path = self.save(model, route)
        loaded = test_utils.load_model(path, compile=True)
        self.assert_same_weights(model, loaded)
        self.assertEqual(
            loaded.evaluate(x, y, verbose=0), model.evaluate(x, y, verbose=0)
        )


class FilesTest(OnDiskTestCase):
    # graft: keras<3 | tf_keras
    # graft: with saving
    def test_h5py_file(self):
        model = filled_model(sequential)
        with h5py.File(self.path("model.h5"), "w") as file:
            keras.models.save_model(model, file, save_format="h5")
        with h5py.File(self.path("model.h5"), "r") as file:
            loaded = test_utils.load_model(file)
        self.assert_same_weights(model, loaded)

    # graft: keras<3 | tf_keras
    # graft: with saving
    def test_file_in_memory(self):
        model = filled_model(sequential)
        memory = io.BytesIO()
        with h5py.File(memory, "w") as file:
            keras.models.save_model(model, file, save_format="h5")
        with h5py.File(memory, "r") as file:
            loaded = test_utils.load_model(file)
        self.assert_same_weights(model, loaded)

    @parameterized.named_parameters(
        (route, route) for route in test_utils.FILE_ROUTES
    )
    def test_pathlib(self, route):
        model = filled_model(sequential)
        path = self.save(model, route, pathlib.Path)
        fresh = make_model(sequential)
        self.assert_same_weights(model, self.load(path, route, fresh))


def is_bfloat16(dataset):
    """Whether a dataset is a float of bfloat16's layout."""
    file_type = dataset.id.get_type()
    return (
        file_type.get_class() == h5py.h5t.FLOAT
        and file_type.get_size() == 2
        and file_type.get_fields() == (15, 7, 8, 0, 7)
        and file_type.get_ebias() == 127
    )


def as_stock_wrote(label):
    """Makes the change that turns floats back into two-byte blobs."""

    def change(file):
        found = test_utils.datasets_of(file)
        for name, dataset in found.items():
            if is_bfloat16(dataset):
                values = dataset[()].astype(test_utils.numpy_type("bfloat16"))
                attributes = dict(dataset.attrs)
                del file[name]
                blob = file.create_dataset(name, data=values.view("V2"))
                blob.attrs.update(attributes)
                if label:
                    blob.attrs["dtype"] = "bfloat16"

    return change


class FormsOnDiskTest(OnDiskTestCase):
    @parameterized.named_parameters(
        (route, route) for route in test_utils.FILE_ROUTES
    )
    def test_numbers_for_every_reader(self, route):
        """Plain h5py shows the numbers that the model has."""
        model = filled_model(convolutional)

        def read(file):
            return [
                (is_bfloat16(dataset), str(dataset[()].tolist()))
                for dataset in test_utils.datasets_of(file).values()
            ]

        expected = [
            (
                array.dtype.name == "bfloat16",
                str(array.astype("float32").tolist()),
            )
            for array in test_utils.weights_of(model)
        ]
        found = self.edit(self.save(model, route), read)
        self.assertCountEqual(found, expected)

    @parameterized.named_parameters(
        (f"{form}_{route}", form == "labelled", route)
        for form in ("bare", "labelled")
        for route in SUFFIXES
        if route in ALL_ROUTES
    )
    def test_blobs_of_stock_releases(self, label, route):
        model = filled_model(convolutional)
        path = self.save(model, route)
        self.edit(path, as_stock_wrote(label))
        fresh = make_model(convolutional)
        self.assert_same_weights(model, self.load(path, route, fresh))


def external(file, name, old, folder):
    secret = os.path.join(folder, "secret.bin")
    with open(secret, "wb") as out:
        out.write(b"\x3f" * old.nbytes)
    file.create_dataset(
        name, old.shape, old.dtype, external=[(secret, 0, old.nbytes)]
    )


def virtual(file, name, old, folder):
    layout = h5py.VirtualLayout(old.shape, old.dtype)
    layout[:] = h5py.VirtualSource(other_file(old, folder), "x", old.shape)
    file.create_virtual_dataset(name, layout)


def external_link(file, name, old, folder):
    file[name] = h5py.ExternalLink(other_file(old, folder), "x")


def soft_link(file, name, old, folder):
    file.create_dataset("elsewhere", data=old)
    file[name] = h5py.SoftLink("/elsewhere")


def other_file(old, folder):
    path = os.path.join(folder, "other.h5")
    with h5py.File(path, "w") as file:
        file["x"] = old
    return path


REFERENCES = {
    "external": external,
    "virtual": virtual,
    "external_link": external_link,
    "soft_link": soft_link,
}


class RefusedFilesTest(OnDiskTestCase):
    """A weight that is not in the file itself is refused."""

    @parameterized.named_parameters(
        (f"{reference}_{policy}_{route}", reference, policy, route)
        for reference in REFERENCES
        for policy in ("bfloat16", "float32")
        for route in SUFFIXES
        if route in ALL_ROUTES
    )
    def test_reference(self, reference, policy, route):
        model = filled_model(sequential, policy)
        path = self.save(model, route)
        hostile = []

        def refer(file):
            for name, dataset in test_utils.datasets_of(file).items():
                if dataset.shape == (5, 2):
                    old = np.ones((5, 2)).astype(test_utils.numpy_type(policy))
                    if policy == "bfloat16":
                        old = old.view("V2")
                    del file[name]
                    REFERENCES[reference](file, name, old, self.folder)
                    hostile.append(name)

        self.edit(path, refer)
        self.assertLen(hostile, 1)
        fresh = filled_model(sequential, policy)
        clear_weights(fresh)
        before = self.refused_weight(fresh)
        message = self.message_of_load(path, route, fresh)
        self.assertIn(hostile[0].rpartition("/")[2], message)
        self.assertIn("Not allowed", message)
        self.assert_same_bits("weight", before, self.refused_weight(fresh))

    def message_of_load(self, path, route, model):
        """What loading says: a store that skips mismatches only warns."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.load(path, route, model)
            except ValueError as error:
                return str(error)
        self.assertIn("skip_mismatch", route)
        return "\n".join(str(warning.message) for warning in caught)

    def refused_weight(self, model):
        weights = test_utils.weights_of(model)
        return [array for array in weights if array.shape == (5, 2)]


# graft: keras>=3
def with_lora():
    model = keras.Sequential(
        [layers.Input((8,)), layers.Dense(6, name="a"), layers.Dense(4)]
    )
    model.layers[0].enable_lora(2)
    return model


# graft: keras>=3
def quantized(mode):
    model = keras.Sequential(
        [layers.Input((16,)), layers.Dense(8, name="a"), layers.Dense(16)]
    )
    test_utils.fill_weights(model)
    model.quantize(mode)
    return model


# graft: keras>=3
def by_path(weights):
    """Arrays by layer and name: quantizing changes the order of weights."""
    return {
        "/".join(weight.path.split("/")[-2:]): test_utils.to_array(weight)
        for weight in weights
    }


# graft: keras>=3
def effective_weights(model):
    """What the layers work with: loading may merge LoRA into the kernel."""
    tensors = [(layer.kernel, layer.bias) for layer in model.layers]
    return [test_utils.to_array(tensor) for pair in tensors for tensor in pair]


# graft: keras>=3
DERIVED_ROUTES = ("h5", "weights_h5", "keras")


# graft: keras>=3
class DerivedModelsTest(ModelsTestCase):
    @parameterized.named_parameters(
        (route, route) for route in DERIVED_ROUTES if route in ALL_ROUTES
    )
    def test_lora(self, route):
        def fresh():
            return make_model(with_lora)

        model = fresh()
        test_utils.fill_weights(model)
        loaded = self.through(route, model, fresh)
        self.assert_same_bits(
            "weight", effective_weights(model), effective_weights(loaded)
        )
        self.assert_same_outputs(model, loaded, make_inputs([(8,)]))

    @parameterized.named_parameters(
        (f"{mode}_{route}", mode, route)
        for mode in ("int8", "int4", "float8")
        for route in DERIVED_ROUTES
        if route in ALL_ROUTES
    )
    def test_quantized(self, mode, route):
        def fresh():
            return make_model(lambda: quantized(mode))

        model = fresh()
        loaded = self.through(route, model, fresh)
        before, after = by_path(model.weights), by_path(loaded.weights)
        self.assertEqual(set(before), set(after))
        self.assert_same_bits(
            "weight", before.values(), [after[name] for name in before]
        )
        self.assert_same_outputs(model, loaded, make_inputs([(16,)]))


# graft: keras>=3
# graft: with stores
class ShardedWeightsTest(ModelsTestCase):
    def test_round_trip(self):
        def make():
            return keras.Sequential(
                [layers.Input((64,))] + [layers.Dense(64) for _ in range(6)]
            )

        model = filled_model(make)
        path = self.path("model.weights.json")
        model.save_weights(path, max_shard_size=2e-5)
        shards = [name for name in os.listdir(self.folder) if "h5" in name]
        self.assertGreater(len(shards), 1)
        loaded = make_model(make)
        loaded.load_weights(path)
        self.assert_same_weights(model, loaded)


# graft: keras>=3
# graft: with stores
class FileEditorTest(ModelsTestCase):
    def setUp(self):
        super().setUp()
        self.model = filled_model(sequential)
        self.model.save_weights(self.path("model.weights.h5"))
        from keras.saving.file_editor import KerasFileEditor

        self.editor = KerasFileEditor(self.path("model.weights.h5"))

    def test_shows_bfloat16(self):
        found = []

        def visit(tree):
            for value in tree.values():
                if isinstance(value, dict):
                    visit(value)
                else:
                    found.append(np.asarray(value))

        visit(self.editor.weights_dict)
        self.assertCountEqual(
            test_utils.as_bits(found),
            test_utils.as_bits(test_utils.weights_of(self.model)),
        )

    def test_compares(self):
        with mock.patch("builtins.print"):
            outcome = self.editor.compare(make_model(sequential))
        self.assertEqual(outcome["status"], "success")

    def test_saves_again(self):
        self.editor.resave_weights(self.path("again.weights.h5"))
        loaded = make_model(sequential)
        loaded.load_weights(self.path("again.weights.h5"))
        self.assert_same_weights(self.model, loaded)


if __name__ == "__main__":
    absltest.main()
