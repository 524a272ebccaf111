"""What users do around saving must work in bfloat16 as it does in float32."""

import contextlib
import functools
import gc
import os

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import keras
from keras import callbacks
from keras import layers
from keras.saving import bfloat16_test_utils as test_utils

if test_utils.BACKEND == "tensorflow":
    import tensorflow as tf

    CPUS = tf.config.list_physical_devices("CPU")
    # It must be done before anything else uses the devices.
    with contextlib.suppress(RuntimeError):
        tf.config.set_logical_device_configuration(
            CPUS[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )

POLICIES = ("bfloat16", "mixed_bfloat16")

WEIGHTS_NAMES = []
# graft: with stores
WEIGHTS_NAMES.append("best.weights.h5")
# graft: keras<3 | tf_keras
# graft: with saving
WEIGHTS_NAMES.append("best.h5")


def make_model(policy="bfloat16", normalize=True):
    with test_utils.global_policy(policy):
        model = keras.Sequential([layers.Input((4,)), layers.Dense(6, "tanh")])
        if normalize:
            model.add(layers.BatchNormalization())
        model.add(layers.Dense(2))
    test_utils.fill_weights(model)
    compile_model(model)
    return model


def compile_model(model):
    model.compile(
        test_utils.make_optimizer("SGD", learning_rate=0.125, momentum=0.5),
        loss=keras.losses.MeanSquaredError(),
    )


def data():
    x = np.random.RandomState(0).uniform(size=(16, 4)).astype("float32")
    return x, x[:, :2] - x[:, 2:]


def fit(model, epochs=1, **kwargs):
    x, y = data()
    return model.fit(
        x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, **kwargs
    )


def setUpModule():
    """Spares `clear_session` from walking through all of the framework."""
    gc.freeze()


class CallbacksTest(test_utils.ModelTestCase):
    def assert_same_training(self, before, after):
        self.assert_same_weights(before, after)
        self.assert_same_bits(
            "optimizer variable",
            test_utils.optimizer_state(before),
            test_utils.optimizer_state(after),
        )

    @parameterized.named_parameters(
        (f"{policy}_{route}", policy, route)
        for policy in POLICIES
        for route in test_utils.WHOLE_ROUTES
    )
    def test_model_checkpoint(self, policy, route):
        """The file of the last epoch goes on where training stopped."""
        path = self.path("{epoch}." + route)
        model = make_model(policy)
        fit(model, 2, callbacks=[callbacks.ModelCheckpoint(path)])
        loaded = test_utils.load_model(self.path(f"2.{route}"), compile=True)
        self.assert_same_training(model, loaded)
        fit(model)
        fit(loaded)
        self.assert_same_training(model, loaded)

    @parameterized.named_parameters(
        (f"{policy}_{name}".replace(".", "_"), policy, name)
        for policy in POLICIES
        for name in WEIGHTS_NAMES
    )
    def test_model_checkpoint_of_weights(self, policy, name):
        model = make_model(policy)
        path = self.path(name)
        checkpoint = callbacks.ModelCheckpoint(
            path, monitor="loss", save_best_only=True, save_weights_only=True
        )
        before = test_utils.weights_of(model)
        fit(model, callbacks=[checkpoint])
        self.assertNotEqual(
            test_utils.as_bits(before),
            test_utils.as_bits(test_utils.weights_of(model)),
        )
        loaded = make_model(policy)
        loaded.load_weights(path)
        self.assert_same_weights(model, loaded)

    # graft: with stores
    @parameterized.named_parameters((policy, policy) for policy in POLICIES)
    def test_backup_and_restore(self, policy):
        """Training that was interrupted ends like one that was not."""
        folder = self.path("backup")
        interrupted = make_model(policy)
        with self.assertRaises(KeyboardInterrupt):
            fit(
                interrupted,
                4,
                callbacks=[callbacks.BackupAndRestore(folder), Interrupt(2)],
            )
        resumed = make_model(policy)
        history = fit(
            resumed, 4, callbacks=[callbacks.BackupAndRestore(folder)]
        )
        self.assertEqual(history.epoch, [2, 3])
        whole = make_model(policy)
        fit(whole, 4)
        self.assert_same_training(whole, resumed)

    @parameterized.named_parameters((policy, policy) for policy in POLICIES)
    def test_early_stopping(self, policy):
        """The weights of the best epoch come back."""
        model = make_model(policy)
        seen = Remember()
        stopping = callbacks.EarlyStopping(
            monitor="epoch_number",
            mode="min",
            patience=1,
            restore_best_weights=True,
        )
        fit(model, 4, callbacks=[seen, stopping])
        self.assertLen(seen.weights, 2)
        self.assert_same_bits(
            "weight", seen.weights[0], test_utils.weights_of(model)
        )


class Interrupt(callbacks.Callback):
    """Ends training as Ctrl-C does, after the backup of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            raise KeyboardInterrupt


class Remember(callbacks.Callback):
    """Keeps each epoch's weights, and gives a number that never improves."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append(test_utils.weights_of(self.model))
        logs["epoch_number"] = epoch


# graft: with layers
class FloatxTest(test_utils.ModelTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(keras.backend.set_floatx, "float32")
        keras.backend.set_floatx("bfloat16")

    @parameterized.named_parameters(
        (route, route) for route in test_utils.FILE_ROUTES
    )
    def test_round_trip(self, route):
        def make():
            return keras.Sequential(
                [
                    layers.Input((6, 6, 1)),
                    layers.Conv2D(2, 3, activation="relu"),
                    layers.MaxPooling2D(),
                    layers.Flatten(),
                    layers.Dense(3, activation="softmax"),
                ]
            )

        model = make()
        test_utils.fill_weights(model)
        model.compile(
            "adam",
            keras.losses.SparseCategoricalCrossentropy(),
            metrics=["accuracy"],
        )
        x = np.random.RandomState(0).uniform(size=(8, 6, 6, 1))
        y = np.arange(8) % 3
        model.fit(x, y, epochs=2, verbose=0)
        model.evaluate(x, y, verbose=0)
        dtypes = set(map(test_utils.dtype_name, model.weights))
        self.assertEqual(dtypes, {"bfloat16"})
        loaded = test_utils.FILE_ROUTES[route](model, make, self.folder)
        self.assert_same_weights(model, loaded)
        self.assert_same_bits(
            "prediction",
            [np.asarray(model.predict(x, verbose=0))],
            [np.asarray(loaded.predict(x, verbose=0))],
        )


@functools.lru_cache(maxsize=None)
def mirrored_strategy():
    """One for all tests: two would use the same keys to communicate."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@test_utils.needs_tensorflow
class StrategyTest(test_utils.ModelTestCase):
    @parameterized.named_parameters(
        (f"{policy}_{route}", policy, route)
        for policy in POLICIES
        for route in test_utils.FILE_ROUTES
    )
    def test_mirrored(self, policy, route):
        """Every replica has the weights that the file has."""
        # Without normalization: each replica has moving statistics of its own,
        # and TensorFlow cannot sum up gradients of two dtypes.
        make = functools.partial(make_model, policy, normalize=False)
        strategy = mirrored_strategy()
        self.assertEqual(strategy.num_replicas_in_sync, 2)
        with strategy.scope():
            model = make()
        fit(model)
        with strategy.scope():
            loaded = test_utils.FILE_ROUTES[route](model, make, self.folder)
        self.assert_same_weights(model, loaded)
        for before, after in zip(test_utils.weights_of(model), loaded.weights):
            self.assert_same_bits("replica", [before] * 2, replicas(after))


def replicas(weight):
    """The copies of a weight, one for each device."""
    variable = getattr(weight, "value", weight)
    if callable(variable):
        variable = weight
    values = getattr(variable, "values", (variable,))
    return [np.asarray(value.numpy()) for value in values]


@test_utils.needs_tensorflow
class CheckpointTest(test_utils.ModelTestCase):
    def restore(self, source, target):
        model = make_model(source)
        path = tf.train.Checkpoint(model=model).save(self.path("checkpoint"))
        loaded = make_model(target)
        status = tf.train.Checkpoint(model=loaded).restore(path)
        status.assert_existing_objects_matched()
        self.assertTrue(os.path.exists(path + ".index"))
        return model, loaded

    @parameterized.named_parameters((policy, policy) for policy in POLICIES)
    def test_same_policy(self, policy):
        model, loaded = self.restore(policy, policy)
        self.assert_same_weights(model, loaded)

    def test_mixed_into_float32(self):
        """A mixed policy keeps its variables in float32."""
        model, loaded = self.restore("mixed_bfloat16", "float32")
        self.assert_same_weights(model, loaded)

    # graft: with stores
    def test_mixed_into_float32_and_on_to_a_file(self):
        _, loaded = self.restore("mixed_bfloat16", "float32")
        again = test_utils.weights_h5(
            loaded, functools.partial(make_model, "float32"), self.folder
        )
        self.assert_same_weights(loaded, again)


# graft: with saving
class ArraysTest(test_utils.ModelTestCase):
    @parameterized.named_parameters(
        (f"{policy}_{route}", policy, route)
        for policy in POLICIES
        for route in test_utils.FILE_ROUTES
    )
    def test_from_float32_checkpoint(self, policy, route):
        """Published float32 weights into a bfloat16 model, saved again."""
        published = make_model("float32")
        path = self.path("published.h5")
        test_utils.save_legacy_weights(published, path)
        model = make_model(policy)
        model.load_weights(path)
        expected = [
            array.astype(test_utils.numpy_type(test_utils.dtype_name(weight)))
            for array, weight in zip(
                test_utils.weights_of(published), model.weights
            )
        ]
        self.assert_same_bits("weight", expected, test_utils.weights_of(model))
        fresh = functools.partial(make_model, policy)
        loaded = test_utils.FILE_ROUTES[route](model, fresh, self.folder)
        self.assert_same_weights(model, loaded)


if __name__ == "__main__":
    absltest.main()
