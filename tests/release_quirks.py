"""What older releases cannot do: the one table of it, and its pytest plugin.

    KERAS_MODULE=keras pytest -p release_quirks TESTS

The overlay's tests are written for the newest releases. A test of something
that a release does not have is skipped there; a test that a fault of the
release itself keeps from passing, in float32 too, must fail there, and counts
as a failure of the suite once it passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from graft.releases import Range


@dataclass(frozen=True)
class Quirk:
    """Tests that some releases cannot pass.

    Args:
        releases: The releases, as in the overlay's range comments.
        reason: What is not there, or what is wrong.
        tests: Patterns of `Class::test`.
        backend: The only backend that it is so with; all of them if empty.
    """

    releases: str
    reason: str
    tests: tuple[str, ...]
    backend: str = ""

    def holds(self, name: str, version: str, backend: str) -> bool:
        served = Range(self.releases).serves(name, version)
        return served and self.backend in ("", backend)

    def has(self, test: str) -> bool:
        return any(fnmatchcase(test, pattern) for pattern in self.tests)


ABSENT = (
    Quirk(
        "keras<2.12",
        "there is no .keras archive before 2.12",
        ("*_keras", "*_pickle", "*_deepcopy"),
    ),
    Quirk(
        "keras<2.12",
        "a layout of its own for .weights.h5 came with 2.12",
        ("*_weights_h5_skip_mismatch",),
    ),
    Quirk(
        "keras==2.12.*",
        "ModelCheckpoint writes a SavedModel to any name but .h5",
        ("CallbacksTest::test_model_checkpoint_*_keras",),
    ),
    Quirk(
        "keras<2.11",
        "optimizers of the new kind are experimental, no file holds them",
        (
            "OptimizerRoundTripTest::test_round_trip_experimental_*",
            "OptimizerRoundTripTest::test_moving_average_*",
        ),
    ),
    Quirk(
        "keras<2.13",
        "layers cannot store variables in a way of their own before 2.13",
        ("*_own_store_*",),
    ),
    Quirk(
        "keras<2.15 | tf_keras<2.15 | keras>=3,<3.3",
        "there are no float8 variables",
        ("SpecialValuesTest::test_float8_*",),
    ),
    Quirk(
        "keras<2.15 | tf_keras<2.15",
        "TensorFlow has no int4 variables before 2.15",
        ("SpecialValuesTest::test_int4_*",),
    ),
    Quirk(
        "keras>=3,<3.4",
        "models are pickled without the .keras archive before 3.4",
        ("*_pickle", "*_deepcopy"),
    ),
    Quirk(
        "keras>=3,<3.8",
        "ModelCheckpoint writes whole models to .keras only before 3.8",
        ("CallbacksTest::test_model_checkpoint_*bfloat16_h5",),
    ),
    Quirk(
        "keras>=3,<3.1",
        "BackupAndRestore does not count epochs before 3.1",
        ("CallbacksTest::test_backup_and_restore_*",),
    ),
    Quirk(
        "keras>=3,<3.1",
        "LoRA came with 3.1",
        ("DerivedModelsTest::test_lora*",),
    ),
    Quirk(
        "keras>=3,<3.4",
        "quantization came with 3.4",
        ("DerivedModelsTest::test_quantized_*",),
    ),
    Quirk(
        "keras>=3.4,<3.11",
        "int4 came with 3.11",
        ("DerivedModelsTest::test_quantized_int4_*",),
    ),
    Quirk(
        "keras>=3,<3.6", "KerasFileEditor came with 3.6", ("FileEditorTest*",)
    ),
    Quirk(
        "keras>=3,<3.10",
        "sharded weights came with 3.10",
        ("ShardedWeightsTest*",),
    ),
    Quirk(
        "keras<2.15 | keras>=3,<3.15 | tf_keras<2.21",
        "an older release need not have every layer",
        ("LayerTableTest::test_every_entry_is_a_public_layer",),
    ),
)


def of_layers(*names: str, policies: str = "*") -> tuple[str, ...]:
    """The patterns of the tests of some layers."""
    return tuple(
        f"LayerRoundTripTest::test_*_{name}_{policies}" for name in names
    )


BFLOAT16 = "*bfloat16*"

FAULTS = (
    Quirk(
        "keras<2.11",
        "TensorFlow before 2.11 has no bfloat16 kernel for it",
        of_layers("Conv3DTranspose", policies=BFLOAT16),
    ),
    Quirk(
        "keras<2.12",
        "TensorFlow before 2.12 has no bfloat16 kernel for it",
        of_layers("AveragePooling3D", "MaxPooling3D", policies=BFLOAT16),
    ),
    Quirk(
        "keras<3 | tf_keras<2.16",
        "TensorFlow before 2.16 has no bfloat16 kernel for it",
        of_layers(
            *("RandomRotation", "RandomTranslation", "RandomZoom"),
            policies=BFLOAT16,
        ),
    ),
    Quirk(
        "keras==2.11.*",
        "no file brings the state of a LossScaleOptimizer back",
        ("OptimizerRoundTripTest::test_loss_scale_h5",),
    ),
    Quirk(
        "keras>=3,<3.2",
        "it follows the policy of the model around it, which no file holds",
        (
            "LayerRoundTripTest::test_*_LayerNormalization_mixed_bfloat16_h5",
            "LayerRoundTripTest::test_*_LayerNormalization_mixed_bfloat16_keras",
        ),
    ),
    Quirk(
        "keras>=3.5,<3.10",
        "checkpoints number a graph's operations; a mixed policy adds a cast",
        ("CheckpointTest::test_mixed_into_float32*",),
    ),
)


def release_under_test() -> tuple[str, str, str]:
    """The distribution, its upstream version, and the backend."""
    name = os.environ["KERAS_MODULE"]
    backend = import_module(name).backend.backend()
    return name, version(name).partition("+")[0], backend


def pytest_configure(config: pytest.Config) -> None:
    """Lets Keras find the helper module, which stands beside the tests."""
    for folder in map(Path, config.args):
        for helper in folder.rglob("bfloat16_test_utils.py"):
            package = ".".join(helper.relative_to(folder).parts[:-1])
            import_module(package).__path__.append(str(helper.parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    release = release_under_test()
    absent = [quirk for quirk in ABSENT if quirk.holds(*release)]
    faults = [quirk for quirk in FAULTS if quirk.holds(*release)]
    for item in items:
        test = item.nodeid.partition("::")[2]
        for reason in reasons(absent, test, release):
            item.add_marker(pytest.mark.skip(reason=reason))
        for reason in reasons(faults, test, release):
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


def reasons(
    quirks: list[Quirk], test: str, release: tuple[str, str, str]
) -> Iterator[str]:
    name, number, _ = release
    for quirk in quirks:
        if quirk.has(test):
            yield f"{name} {number}: {quirk.reason}"
