"""What the tests share."""

from __future__ import annotations

import os
import types

import pytest
from model_files import import_keras
from model_files import installed_fork


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "interop: needs environments with stock releases"
    )


@pytest.fixture(scope="session")
def keras_under_test() -> types.ModuleType:
    """The Keras that KERAS_MODULE names, or else the installed fork."""
    name = os.environ.get("KERAS_MODULE") or installed_fork()
    if name is None:
        pytest.fail(
            "There is no fork to test. Install one, `pip install .`, or set "
            "KERAS_MODULE to keras, tf_keras or tensorflow.keras.",
            pytrace=False,
        )
    return import_keras(name)
