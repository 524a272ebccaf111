"""The state of every optimizer must survive a file in bfloat16.

A model is trained for some steps, saved and loaded with its optimizer. The
optimizer's variables must agree in type, shape and bytes, and then one more
step must give what it gives to the model that was never saved.
"""

import functools
import gc
import warnings
from unittest import mock

import h5py
import numpy as np

# graft: keras<3 | tf_keras
import tensorflow.compat.v2 as tf
from absl import logging
from absl.testing import absltest
from absl.testing import parameterized

import keras
from keras import layers
from keras.saving import bfloat16_test_utils as test_utils

PACKAGE = keras.__name__.partition(".")[0] + "."
EXPORT_PREFIX = "keras.optimizers."
ROUTES = test_utils.WHOLE_ROUTES

# graft: keras>=3
ROOT = keras.optimizers.Optimizer
# graft: keras<3 | tf_keras
ROOT = tf.__internal__.tracking.Trackable


def exported_optimizers():
    """The public optimizers of the Keras under test, by their shortest name.

    Keras 2 has generations of them: `Adam`, `legacy.Adam` and
    `experimental.Adam` may be three classes or two.
    """
    pending = [ROOT]
    found, seen = {}, set()
    while pending:
        cls = pending.pop()
        if cls in seen:
            continue
        seen.add(cls)
        pending.extend(cls.__subclasses__())
        names = vars(cls).get("_keras_api_names")
        names = names or vars(cls).get("_api_export_path", ())
        names = [names] if isinstance(names, str) else names
        names = [
            name[len(EXPORT_PREFIX) :]
            for name in names
            if name.startswith(EXPORT_PREFIX)
        ]
        # TensorFlow has an old Keras within itself.
        if names and cls.__module__.startswith(PACKAGE):
            found[min(names, key=len)] = cls
    return found


PUBLIC_OPTIMIZERS = exported_optimizers()


def loss_scaled(cls, learning_rate):
    inner = test_utils.make_optimizer(
        "SGD", learning_rate=learning_rate, momentum=0.5
    )
    return cls(inner)


def loss_scale_class():
    """The public class; Keras 2.11 and newer keep it under another name."""
    module = keras.mixed_precision
    module = getattr(module, "loss_scale_optimizer", module)
    return getattr(module, "BaseLossScaleOptimizer", module.LossScaleOptimizer)


def multiple(cls, learning_rate):
    """One optimizer for biases, another one for the rest."""
    optimizers = keras.optimizers
    return cls(
        optimizers.OptimizerMap(
            optimizers.SGD(learning_rate, momentum=0.5),
            {".*bias": optimizers.Adam(learning_rate)},
        )
    )


def made_with(**kwargs):
    def make(cls, learning_rate):
        return cls(learning_rate=learning_rate, **kwargs)

    return make


# By the class's own name, whichever generation it is of. The arguments give an
# optimizer all the state that it can have.
OPTIMIZERS = {
    "Adadelta": made_with(),
    "Adafactor": made_with(),
    "Adagrad": made_with(),
    "Adam": made_with(amsgrad=True),
    "AdamW": made_with(amsgrad=True),
    "Adamax": made_with(),
    "Ftrl": made_with(),
    "Lamb": made_with(),
    "Lion": made_with(),
    "LossScaleOptimizer": loss_scaled,
    "MultiOptimizer": multiple,
    "Muon": made_with(),
    "Nadam": made_with(),
    "RMSprop": made_with(momentum=0.5, centered=True),
    "SGD": made_with(momentum=0.5, nesterov=True),
    "ScheduleFreeAdamW": made_with(),
}
NO_ENTRY = {
    "Optimizer": "abstract base: has no step of its own",
    "OptimizerMap": "argument of MultiOptimizer",
}
# TensorFlow has no bfloat16 kernel for the op of this legacy optimizer.
NO_KERNEL = "Adamax"
LEARNING_RATE = 0.125


def own_name(name):
    return name.rpartition(".")[2]


def is_legacy(cls):
    """Whether an optimizer is of the generation that Keras 2.11 superseded."""
    return hasattr(cls, "get_weights")


def in_table(names):
    return sorted(name for name in names if own_name(name) in OPTIMIZERS)


def make_optimizer(name):
    make = OPTIMIZERS[own_name(name)]
    return make(PUBLIC_OPTIMIZERS[name], LEARNING_RATE)


def make_default():
    return test_utils.make_optimizer("Adam", learning_rate=LEARNING_RATE)


def make_model():
    return keras.Sequential(
        [layers.Input((4,)), layers.Dense(5, "tanh"), layers.Dense(2)]
    )


def data():
    x = np.random.RandomState(0).uniform(size=(24, 4)).astype("float32")
    return x, x[:, :2] - x[:, 2:]


def train(model, steps):
    """Takes the same steps whenever it is called."""
    x, y = data()
    model.fit(
        x[: 8 * steps], y[: 8 * steps], batch_size=8, shuffle=False, verbose=0
    )


def setUpModule():
    """Spares `clear_session` from walking through all of the framework."""
    gc.freeze()


class OptimizersTestCase(test_utils.ModelTestCase):
    def skip_without_kernel(self, name):
        """Makes sure that what TensorFlow cannot run still fails."""
        if own_name(name) != NO_KERNEL or not is_legacy(
            PUBLIC_OPTIMIZERS[name]
        ):
            return
        with self.assertRaises(Exception):
            self.trained(make_optimizer(name))
        self.skipTest(f"TensorFlow cannot run {name} on bfloat16 weights")

    def trained(self, optimizer, policy="bfloat16"):
        with test_utils.global_policy(policy):
            model = make_model()
        test_utils.fill_weights(model)
        model.compile(optimizer, loss=keras.losses.MeanSquaredError())
        train(model, steps=3)
        return model

    def save(self, model, route):
        path = self.path(f"model.{route}")
        test_utils.save_model(model, path)
        return path

    def assert_same_state(self, before, after):
        # Keras 2.9 saves `legacy.Adam`, a mere subclass of Adam, as Adam.
        self.assertIsInstance(before.optimizer, type(after.optimizer))
        self.assert_same_weights(before, after)
        self.assert_same_bits(
            "optimizer variable",
            test_utils.optimizer_state(before),
            test_utils.optimizer_state(after),
        )

    def check(self, optimizer, route, policy="bfloat16", load=None):
        """Saves and loads; what comes back must go on in the same way."""
        model = self.trained(optimizer, policy)
        self.assertNotEmpty(test_utils.optimizer_state(model))
        load = load or functools.partial(test_utils.load_model, compile=True)
        loaded = load(self.save(model, route))
        self.assert_same_state(model, loaded)
        before = test_utils.optimizer_state(model)
        train(model, steps=1)
        train(loaded, steps=1)
        self.assertNotEqual(
            test_utils.as_bits(before),
            test_utils.as_bits(test_utils.optimizer_state(model)),
        )
        self.assert_same_state(model, loaded)


class OptimizerTableTest(parameterized.TestCase):
    def test_every_public_optimizer_has_an_entry(self):
        names = {own_name(name) for name in PUBLIC_OPTIMIZERS}
        self.assertEmpty(names - set(OPTIMIZERS) - set(NO_ENTRY))

    def test_public_optimizers_are_found(self):
        self.assertContainsSubset({"Adam", "SGD"}, PUBLIC_OPTIMIZERS)


class OptimizerRoundTripTest(OptimizersTestCase):
    @parameterized.named_parameters(
        (f"{name}_{route}".replace(".", "_"), name, route)
        for name in in_table(PUBLIC_OPTIMIZERS)
        for route in ROUTES
    )
    def test_round_trip(self, name, route):
        self.skip_without_kernel(name)
        self.check(make_optimizer(name), route)

    @parameterized.named_parameters((route, route) for route in ROUTES)
    def test_mixed_policy(self, route):
        self.check(make_default(), route, "mixed_bfloat16")

    @parameterized.named_parameters((route, route) for route in ROUTES)
    def test_default(self, route):
        self.check("adam", route)

    @parameterized.named_parameters((route, route) for route in ROUTES)
    def test_loss_scale(self, route):
        self.check(loss_scaled(loss_scale_class(), LEARNING_RATE), route)

    @parameterized.named_parameters(
        (f"{name}_{route}", name, route)
        for name in ("Adam", "SGD")
        for route in ROUTES
    )
    def test_moving_average(self, name, route):
        """Averaged weights are state of the optimizer as well."""
        cls = PUBLIC_OPTIMIZERS[name]
        self.check(cls(LEARNING_RATE, use_ema=True, ema_momentum=0.5), route)


# graft: keras<3 | tf_keras
# graft: with saving
class LegacyOptimizerTest(OptimizersTestCase):
    @parameterized.named_parameters(
        (name.replace(".", "_"), name)
        for name in in_table(PUBLIC_OPTIMIZERS)
        if is_legacy(PUBLIC_OPTIMIZERS[name])
    )
    def test_slots_are_labelled_blobs(self, name):
        """The stock releases can read nothing else there."""
        self.skip_without_kernel(name)
        self.check_slots(self.trained(make_optimizer(name)))

    def check_slots(self, model):
        with h5py.File(self.save(model, "h5"), "r") as file:
            slots = test_utils.datasets_of(file["optimizer_weights"])
            labels = {
                (slot.dtype.str, slot.attrs.get("dtype"))
                for slot in slots.values()
                if slot.dtype.itemsize == 2
            }
        self.assertEqual(labels, {("|V2", "bfloat16")})


# graft: with saving
class LostStateTest(OptimizersTestCase):
    def messages_of_load(self, path):
        """What loading says, as an error or as a warning."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with mock.patch.object(logging, "warning") as logged:
                try:
                    test_utils.load_model(path, compile=True)
                except Exception as error:
                    return str(error)
        messages = [str(warning.message) for warning in caught]
        messages += [str(call) for call in logged.call_args_list]
        return "\n".join(messages)

    def test_missing_variable(self):
        """A state that cannot be restored is never a silent fresh start."""
        path = self.save(self.trained(make_default()), "h5")
        with h5py.File(path, "r+") as file:
            group = file["optimizer_weights"]
            name = max(test_utils.datasets_of(group), key=len)
            del group[name]
        self.assertRegex(self.messages_of_load(path), "(?i)optimizer")


# graft: keras<3
class TensorFlowNamespaceTest(OptimizersTestCase):
    """In Keras 2.11 and 2.12 `tf.keras` has other defaults than `keras`."""

    @parameterized.named_parameters(
        (f"{name.replace('.', '_')}_{route}", name, route)
        for name in ("Adam", "legacy.Adam", "SGD", "adam")
        for route in ROUTES
    )
    def test_round_trip(self, name, route):
        self.assertIs(tf.keras.Model, keras.Model)
        optimizer = name
        if name != "adam":
            optimizer = tf.keras.optimizers
            for part in name.split("."):
                optimizer = getattr(optimizer, part)
            optimizer = optimizer(LEARNING_RATE)
        self.check(optimizer, route, load=tf.keras.models.load_model)


if __name__ == "__main__":
    absltest.main()
