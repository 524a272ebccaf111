"""Every public layer must survive every file format in every precision.

One model per layer, policy by policy: its weights get values that no narrower
type can hold, the model goes through each way of saving, and what comes back
must agree in the policies, in each weight's type, shape and bytes, and in the
bytes of the output.
"""

import collections
import functools
import gc
import importlib
import tempfile

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import keras
from keras import layers
from keras.saving.bfloat16_test_utils import BACKEND
from keras.saving.bfloat16_test_utils import FILE_ROUTES
from keras.saving.bfloat16_test_utils import SIGNIFICANT_DIGITS
from keras.saving.bfloat16_test_utils import arrays
from keras.saving.bfloat16_test_utils import as_bits
from keras.saving.bfloat16_test_utils import describe_difference
from keras.saving.bfloat16_test_utils import fill_weights
from keras.saving.bfloat16_test_utils import flat_layers
from keras.saving.bfloat16_test_utils import global_policy
from keras.saving.bfloat16_test_utils import outputs_of
from keras.saving.bfloat16_test_utils import policy_name
from keras.saving.bfloat16_test_utils import to_array
from keras.saving.bfloat16_test_utils import to_tensor

# graft: keras<2.13
# These releases do not import this public layer by themselves.
importlib.import_module(
    layers.__name__.replace("layers", "feature_column.dense_features_v2")
)

COMPUTE_DTYPES = {
    "bfloat16": "bfloat16",
    "mixed_bfloat16": "bfloat16",
    "float16": "float16",
    "float32": "float32",
}

Tensor = collections.namedtuple("Tensor", "shape dtype high")
Entry = collections.namedtuple("Entry", "inputs kwargs call")


def as_one_argument(layer, tensors):
    """Calls `layer` on a tensor, or on the list of them if it has several."""
    return layer(tensors if len(tensors) > 1 else tensors[0])


def as_arguments(layer, tensors):
    """Calls `layer` with one positional argument for each tensor."""
    return layer(*tensors)


def as_dict(layer, tensors):
    """Calls `layer` on a dictionary from input names to tensors."""
    return layer({f"input_{i}": tensor for i, tensor in enumerate(tensors)})


def as_cell(layer, tensors):
    """Runs `layer`, a recurrent cell, over time."""
    return layers.RNN(layer)(tensors[0])


def as_step(layer, tensors):
    """Calls `layer`, which cannot stand in a model by itself, in a pipeline."""
    return layers.Pipeline([layer])(tensors[0])


def as_input(layer, tensors):
    """Leaves the model with little but the input layer it has anyway."""
    return layers.Activation("linear")(tensors[0])


def entry(*inputs, call=as_one_argument, **kwargs):
    """Describes one layer: what it is called on, how, and its arguments."""
    return Entry(inputs, kwargs, call)


def made(name, **kwargs):
    """Stands for a layer that is another layer's argument.

    It is made anew with each model, under the policy of that model.
    """
    return functools.partial(make_layer, name, **kwargs)


def resolved(value):
    """`value` with the layers that it stands for, see `made`."""
    if isinstance(value, functools.partial):
        return value()
    if isinstance(value, list):
        return [resolved(item) for item in value]
    return value


def make_layer(name, **kwargs):
    kwargs = {key: resolved(value) for key, value in kwargs.items()}
    return PUBLIC_LAYERS[name](**kwargs)


def made_by(function):
    """Stands for an argument that `function` makes anew with each model."""
    return functools.partial(function)


def double(x):
    return x * 2


def to_strings(array):
    import tensorflow.compat.v2 as tf

    return tf.constant(array)


# graft: keras<3 | tf_keras
def feature_columns():
    import tensorflow.compat.v2 as tf

    buckets = tf.feature_column.categorical_column_with_identity("input_0", 7)
    return [tf.feature_column.embedding_column(buckets, dimension=2)]


VECTOR = Tensor((6,), "float", 1)
SEQUENCE = Tensor((6, 4), "float", 1)
IMAGE = Tensor((6, 6, 3), "float", 1)
PIXELS = Tensor((8, 8, 3), "float", 255)
VOLUME = Tensor((4, 4, 4, 2), "float", 1)
MOVIE_1D = Tensor((3, 5, 2), "float", 1)
MOVIE_2D = Tensor((3, 5, 5, 2), "float", 1)
MOVIE_3D = Tensor((2, 3, 3, 3, 2), "float", 1)
SIGNAL = Tensor((64,), "float", 1)
IDS = Tensor((5,), "int32", 7)
ID = Tensor((1,), "int32", 7)
WORDS = Tensor((3,), "string", 4)
WORD = Tensor((1,), "string", 4)
VOCABULARY = ["w0", "w1", "w2"]

LAYERS = {
    "Activation": entry(VECTOR, activation="tanh"),
    "ActivityRegularization": entry(VECTOR, l2=0.5),
    "Add": entry(VECTOR, VECTOR),
    "AdditiveAttention": entry(SEQUENCE, SEQUENCE),
    "AlphaDropout": entry(VECTOR, rate=0.5),
    "Attention": entry(SEQUENCE, SEQUENCE, use_scale=True),
    "Average": entry(VECTOR, VECTOR),
    "AveragePooling1D": entry(SEQUENCE, pool_size=2),
    "AveragePooling2D": entry(IMAGE, pool_size=2),
    "AveragePooling3D": entry(VOLUME, pool_size=2),
    "BatchNormalization": entry(VECTOR),
    "Bidirectional": entry(SEQUENCE, layer=made("LSTM", units=3)),
    # By itself it takes floatx instead of the policy.
    "CategoryEncoding": entry(IDS, num_tokens=7, dtype=made_by(policy_name)),
    "CenterCrop": entry(PIXELS, height=4, width=4),
    "Concatenate": entry(VECTOR, VECTOR),
    "Conv1D": entry(SEQUENCE, filters=2, kernel_size=3),
    "Conv1DTranspose": entry(SEQUENCE, filters=2, kernel_size=3),
    "Conv2D": entry(IMAGE, filters=2, kernel_size=3),
    "Conv2DTranspose": entry(IMAGE, filters=2, kernel_size=3),
    "Conv3D": entry(VOLUME, filters=2, kernel_size=3),
    "Conv3DTranspose": entry(VOLUME, filters=2, kernel_size=3),
    "ConvLSTM1D": entry(MOVIE_1D, filters=2, kernel_size=2),
    "ConvLSTM2D": entry(MOVIE_2D, filters=2, kernel_size=2),
    "ConvLSTM3D": entry(MOVIE_3D, filters=2, kernel_size=2),
    "Cropping1D": entry(SEQUENCE),
    "Cropping2D": entry(IMAGE, cropping=1),
    "Cropping3D": entry(VOLUME),
    "Dense": entry(VECTOR, units=3),
    "DepthwiseConv1D": entry(SEQUENCE, kernel_size=3),
    "DepthwiseConv2D": entry(IMAGE, kernel_size=3),
    "Discretization": entry(VECTOR, bin_boundaries=[0.25, 0.5]),
    "Dot": entry(VECTOR, VECTOR, axes=1),
    "Dropout": entry(VECTOR, rate=0.5),
    "ELU": entry(VECTOR),
    "EinsumDense": entry(
        SEQUENCE, equation="abc,cd->abd", output_shape=(None, 3), bias_axes="d"
    ),
    "Embedding": entry(IDS, input_dim=7, output_dim=3),
    "Flatten": entry(SEQUENCE),
    "GRU": entry(SEQUENCE, units=3),
    "GRUCell": entry(SEQUENCE, units=3, call=as_cell),
    "GaussianDropout": entry(VECTOR, rate=0.5),
    "GaussianNoise": entry(VECTOR, stddev=0.5),
    "GlobalAveragePooling1D": entry(SEQUENCE),
    "GlobalAveragePooling2D": entry(IMAGE),
    "GlobalAveragePooling3D": entry(VOLUME),
    "GlobalMaxPooling1D": entry(SEQUENCE),
    "GlobalMaxPooling2D": entry(IMAGE),
    "GlobalMaxPooling3D": entry(VOLUME),
    "GroupNormalization": entry(IMAGE, groups=3),
    "HashedCrossing": entry(WORD, WORD, num_bins=5),
    "Hashing": entry(WORDS, num_bins=5),
    "Identity": entry(VECTOR),
    "InputLayer": entry(VECTOR, input_shape=(6,), call=as_input),
    "IntegerLookup": entry(IDS, vocabulary=[1, 2, 3]),
    "LSTM": entry(SEQUENCE, units=3),
    "LSTMCell": entry(SEQUENCE, units=3, call=as_cell),
    "Lambda": entry(VECTOR, function=double),
    "LayerNormalization": entry(VECTOR),
    "LeakyReLU": entry(VECTOR),
    "Masking": entry(SEQUENCE),
    "MaxPooling1D": entry(SEQUENCE, pool_size=2),
    "MaxPooling2D": entry(IMAGE, pool_size=2),
    "MaxPooling3D": entry(VOLUME, pool_size=2),
    "Maximum": entry(VECTOR, VECTOR),
    "Minimum": entry(VECTOR, VECTOR),
    "MultiHeadAttention": entry(
        SEQUENCE, SEQUENCE, num_heads=2, key_dim=3, call=as_arguments
    ),
    "Multiply": entry(VECTOR, VECTOR),
    "Normalization": entry(VECTOR),
    "PReLU": entry(VECTOR),
    "Permute": entry(SEQUENCE, dims=(2, 1)),
    "RNN": entry(SEQUENCE, cell=made("LSTMCell", units=3)),
    "RandomBrightness": entry(PIXELS, factor=0.2),
    "RandomContrast": entry(PIXELS, factor=0.2),
    "RandomCrop": entry(PIXELS, height=4, width=4),
    "RandomFlip": entry(PIXELS),
    "RandomRotation": entry(PIXELS, factor=0.2),
    "RandomTranslation": entry(PIXELS, height_factor=0.2, width_factor=0.2),
    "RandomZoom": entry(PIXELS, height_factor=0.2),
    "ReLU": entry(VECTOR),
    "RepeatVector": entry(VECTOR, n=2),
    "Rescaling": entry(PIXELS, scale=1 / 255),
    "Reshape": entry(VECTOR, target_shape=(3, 2)),
    "Resizing": entry(PIXELS, height=5, width=5),
    "SeparableConv1D": entry(SEQUENCE, filters=2, kernel_size=3),
    "SeparableConv2D": entry(IMAGE, filters=2, kernel_size=3),
    "SimpleRNN": entry(SEQUENCE, units=3),
    "SimpleRNNCell": entry(SEQUENCE, units=3, call=as_cell),
    "Softmax": entry(VECTOR),
    "SpatialDropout1D": entry(SEQUENCE, rate=0.5),
    "SpatialDropout2D": entry(IMAGE, rate=0.5),
    "SpatialDropout3D": entry(VOLUME, rate=0.5),
    "SpectralNormalization": entry(VECTOR, layer=made("Dense", units=3)),
    "StackedRNNCells": entry(
        SEQUENCE,
        cells=[made("LSTMCell", units=3), made("GRUCell", units=2)],
        call=as_cell,
    ),
    "StringLookup": entry(WORDS, vocabulary=VOCABULARY),
    "Subtract": entry(VECTOR, VECTOR),
    "TextVectorization": entry(WORD, vocabulary=VOCABULARY),
    "TimeDistributed": entry(SEQUENCE, layer=made("Dense", units=3)),
    "UnitNormalization": entry(VECTOR),
    "UpSampling1D": entry(SEQUENCE),
    "UpSampling2D": entry(IMAGE),
    "UpSampling3D": entry(VOLUME),
    "ZeroPadding1D": entry(SEQUENCE),
    "ZeroPadding2D": entry(IMAGE),
    "ZeroPadding3D": entry(VOLUME),
}

# graft: keras<3 | tf_keras
LAYERS.update(
    {
        "DenseFeatures": entry(
            ID,
            feature_columns=made_by(feature_columns),
            call=as_dict,
        ),
        "LocallyConnected1D": entry(SEQUENCE, filters=2, kernel_size=3),
        "LocallyConnected2D": entry(IMAGE, filters=2, kernel_size=3),
        "RandomHeight": entry(PIXELS, factor=0.2),
        "RandomWidth": entry(PIXELS, factor=0.2),
        "ThresholdedReLU": entry(VECTOR, theta=0.5),
    }
)

# graft: keras>=3
LAYERS.update(
    {
        "AdaptiveAveragePooling1D": entry(SEQUENCE, output_size=2),
        "AdaptiveAveragePooling2D": entry(IMAGE, output_size=2),
        "AdaptiveAveragePooling3D": entry(VOLUME, output_size=2),
        "AdaptiveMaxPooling1D": entry(SEQUENCE, output_size=2),
        "AdaptiveMaxPooling2D": entry(IMAGE, output_size=2),
        "AdaptiveMaxPooling3D": entry(VOLUME, output_size=2),
        "AugMix": entry(PIXELS),
        "AutoContrast": entry(PIXELS),
        "ContrastLimitedAdaptiveHistogramEqualization": entry(
            PIXELS, tile_grid_size=(2, 2)
        ),
        "CutMix": entry(PIXELS),
        "Equalization": entry(PIXELS, call=as_step),
        "GroupQueryAttention": entry(
            SEQUENCE,
            SEQUENCE,
            head_dim=2,
            num_query_heads=2,
            num_key_value_heads=1,
            call=as_arguments,
        ),
        "MaxNumBoundingBoxes": entry(PIXELS, max_number=3),
        "MelSpectrogram": entry(
            SIGNAL, fft_length=16, sequence_stride=8, num_mel_bins=4
        ),
        "MixUp": entry(PIXELS),
        "Pipeline": entry(PIXELS, layers=[made("Rescaling", scale=1 / 255)]),
        "RMSNormalization": entry(VECTOR),
        "RandAugment": entry(PIXELS),
        "RandomColorDegeneration": entry(PIXELS, factor=0.2),
        "RandomColorJitter": entry(PIXELS, brightness_factor=0.2),
        "RandomElasticTransform": entry(PIXELS),
        "RandomErasing": entry(PIXELS),
        "RandomGaussianBlur": entry(PIXELS),
        "RandomGrayscale": entry(PIXELS),
        "RandomHue": entry(PIXELS, factor=0.2),
        "RandomInvert": entry(PIXELS),
        "RandomPerspective": entry(PIXELS),
        "RandomPosterization": entry(PIXELS, factor=4),
        "RandomSaturation": entry(PIXELS, factor=0.2),
        "RandomSharpness": entry(PIXELS, factor=0.2),
        "RandomShear": entry(PIXELS, x_factor=0.2),
        "ReversibleEmbedding": entry(IDS, input_dim=7, output_dim=3),
        "STFTSpectrogram": entry(
            SEQUENCE, frame_length=4, frame_step=2, fft_length=4, window=None
        ),
        "Solarization": entry(PIXELS),
    }
)

NO_ENTRY = {
    "AbstractRNNCell": "abstract base: has no call of its own",
    "FlaxLayer": "adapter: its weights belong to a Flax module",
    "JaxLayer": "adapter: its weights belong to a JAX function",
    "Layer": "abstract base: has no call of its own",
    "TFSMLayer": "adapter: refers to a SavedModel, cannot be saved by itself",
    "TorchModuleWrapper": "adapter: its weights belong to a torch module",
    "Wrapper": "abstract base: has no call of its own",
}

STRINGS = ("HashedCrossing", "Hashing", "StringLookup", "TextVectorization")
POOLING_3D = (
    "AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling3D",
    "AveragePooling3D",
    "MaxPooling3D",
)

# What a framework itself cannot do on a CPU, by policy.
if BACKEND == "tensorflow":
    LIMITS = {"float16": POOLING_3D}
else:
    LIMITS = {policy: STRINGS for policy in COMPUTE_DTYPES}

# TensorFlow's feature columns make float32 weights, whatever the policy; only
# a mixed one casts them.
FLOAT32_OUTPUTS = {"DenseFeatures": ("bfloat16", "float16")}


def exported_layers():
    """The public layers of the Keras under test, by name.

    What is public is read from the export decorators, which wheels and source
    checkouts share; of the aliases of a class only its own name is given.
    """
    found = {}
    pending = [layers.Layer]
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        names = vars(cls).get("_keras_api_names")
        names = names or vars(cls).get("_api_export_path", ())
        names = [names] if isinstance(names, str) else names
        names = [name for name in names if name.count(".") == 2]
        names = [
            name[13:] for name in names if name.startswith("keras.layers.")
        ]
        if names:
            found[cls.__name__ if cls.__name__ in names else min(names)] = cls
    return found


PUBLIC_LAYERS = exported_layers()


def input_dtype(tensor, policy):
    """What a user feeds: under a mixed policy, float32."""
    if tensor.dtype != "float":
        return tensor.dtype
    return "float32" if policy.startswith("mixed") else policy


def make_model(name, policy):
    """A functional model of the layer `name`, as in a new process."""
    keras.backend.clear_session()
    inputs, kwargs, call = LAYERS[name]
    with global_policy(policy):
        tensors = [
            layers.Input(
                tensor.shape,
                dtype=input_dtype(tensor, policy),
                name=f"input_{i}",
            )
            for i, tensor in enumerate(inputs)
        ]
        outputs = call(make_layer(name, **kwargs), tensors)
        return keras.Model(tensors if len(tensors) > 1 else tensors[0], outputs)


def make_inputs(name, policy):
    """A batch of two for the model of the layer `name`."""
    random = np.random.RandomState(0)
    batch = []
    for tensor in LAYERS[name].inputs:
        shape = (2,) + tensor.shape
        if tensor.dtype == "string":
            words = random.randint(tensor.high, size=shape)
            batch.append(to_strings(np.char.add("w", words.astype(str))))
        else:
            values = random.uniform(0, tensor.high, size=shape)
            values = values.astype("float32")
            batch.append(to_tensor(values, input_dtype(tensor, policy)))
    return batch if len(batch) > 1 else batch[0]


def policies(model):
    """Each layer's class and dtypes; an input only has the dtype it gives."""
    return [
        (type(layer).__name__, layer.dtype, layer.compute_dtype)
        if not isinstance(layer, layers.InputLayer)
        else ("InputLayer", layer.dtype)
        for layer in flat_layers(model)
    ]


ROUTES = {**FILE_ROUTES, "arrays": arrays}


class RoundTrip:
    """A filled model of one layer under one policy, ready to be saved."""

    def __init__(self, name, policy):
        self.name = name
        self.policy = policy
        self.inputs = make_inputs(name, policy)
        self.model = make_model(name, policy)
        fill_weights(self.model)
        self.outputs = outputs_of(self.model, self.inputs)

    def fresh_model(self):
        return make_model(self.name, self.policy)

    def check_output_dtype(self):
        """Floating-point outputs have the compute dtype of the policy."""
        expected = COMPUTE_DTYPES[self.policy]
        if self.policy in FLOAT32_OUTPUTS.get(self.name, ()):
            expected = "float32"
        for output in self.outputs:
            found = output.dtype.name
            if found in SIGNIFICANT_DIGITS and found != expected:
                raise AssertionError(f"output is {found}, expected {expected}")

    def check(self, route):
        """Saves and loads by `route`; what comes back must be the same."""
        with tempfile.TemporaryDirectory() as folder:
            with keras.utils.custom_object_scope({"double": double}):
                loaded = ROUTES[route](self.model, self.fresh_model, folder)
        if policies(loaded) != policies(self.model):
            raise AssertionError(
                f"policies {policies(self.model)} became {policies(loaded)}"
            )
        difference = describe_difference(
            "weight",
            as_bits(map(to_array, self.model.weights)),
            as_bits(map(to_array, loaded.weights)),
        ) or describe_difference(
            "output",
            as_bits(self.outputs),
            as_bits(outputs_of(loaded, self.inputs)),
        )
        if difference:
            raise AssertionError(difference)


@functools.lru_cache(maxsize=1)
def round_trip(name, policy):
    """One model for all the routes, which follow each other."""
    return RoundTrip(name, policy)


def setUpModule():
    """Spares `clear_session` from walking through all of the framework."""
    gc.freeze()


class LayerTableTest(parameterized.TestCase):
    def test_every_public_layer_has_an_entry(self):
        missing = set(PUBLIC_LAYERS) - set(LAYERS) - set(NO_ENTRY)
        self.assertEmpty(missing)

    def test_every_entry_is_a_public_layer(self):
        self.assertEmpty(set(LAYERS) - set(PUBLIC_LAYERS))


class LayerRoundTripTest(parameterized.TestCase):
    def skip_if_limited(self, name, policy):
        """Makes sure that what the framework cannot run still fails."""
        if name in LIMITS.get(policy, ()):
            with self.assertRaises(Exception):
                round_trip(name, policy)
            self.skipTest(f"{BACKEND} cannot run {name} in {policy} on a CPU")

    @parameterized.named_parameters(
        (f"{name}_{policy}", name, policy)
        for name in sorted(set(LAYERS) & set(PUBLIC_LAYERS))
        for policy in COMPUTE_DTYPES
    )
    def test_output_dtype(self, name, policy):
        self.skip_if_limited(name, policy)
        round_trip(name, policy).check_output_dtype()

    @parameterized.named_parameters(
        (f"{name}_{policy}_{route}", name, policy, route)
        for name in sorted(set(LAYERS) & set(PUBLIC_LAYERS))
        for policy in COMPUTE_DTYPES
        for route in ROUTES
    )
    def test_round_trip(self, name, policy, route):
        self.skip_if_limited(name, policy)
        round_trip(name, policy).check(route)


if __name__ == "__main__":
    absltest.main()
