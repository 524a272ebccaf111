"""What the fork writes must open in stock releases, bit for bit.

An environment is built for each stock release, unless a variable names its
Python: STOCK_PYTHON_KERAS_2_9_0 for keras==2.9.0, and so on. INTEROP_FOLDER
keeps the environments for the next time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import model_files
import pytest
from model_files import FORMATS
from model_files import Release

pytestmark = pytest.mark.interop

SCRIPT = Path(__file__).with_name("model_files.py")
# The Python of each stock release, and what it needs beside it.
READERS = {
    "keras==2.9.0": (
        "3.10",
        ("tensorflow==2.9.*", "numpy<2", "protobuf<3.20"),
    ),
    "keras==2.15.0": ("3.11", ("tensorflow==2.15.*",)),
    "tf_keras==2.21.0": ("3.11", ("tensorflow==2.21.*",)),
    "keras==3.15.1": ("3.11", ("tensorflow==2.21.*",)),
}


def run_script(
    python: str, *arguments: str, record: dict | None = None
) -> dict:
    """Runs the script of `model_files` and returns what it prints."""
    # Neither this interpreter's path nor its Keras may leak into the other.
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONPATH", "KERAS_MODULE")
    }
    done = subprocess.run(
        [python, SCRIPT, *arguments],
        input=json.dumps(record),
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def build_environment(release: str, folder: Path) -> str:
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    complete = folder / "complete"
    if not complete.exists():
        version, requirements = READERS[release]
        uv = ["uv", "--no-config"]
        venv = [*uv, "venv", "--clear", "--python", version, str(folder)]
        subprocess.run(venv, check=True)
        install = [*uv, "pip", "install", "--python", str(python)]
        subprocess.run([*install, release, *requirements], check=True)
        complete.touch()
    return str(python)


def assert_stock(python: str, release: Release) -> None:
    """A fork has a local part in its version."""
    code = f"""import importlib.metadata, {release.name}
print(importlib.metadata.version({release.name!r}))
print({release.name}.__version__)"""
    done = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    )
    version = str(release).partition("-")[2]
    assert done.stdout.splitlines()[-2:] == [version, version]


@pytest.fixture(scope="module", params=READERS)
def stock(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Release, str]:
    """A stock release and its Python."""
    release = Release.parse(request.param.replace("==", "-"))
    name = re.sub(r"\W+", "_", request.param).upper()
    python = os.environ.get(f"STOCK_PYTHON_{name}")
    if not python:
        folder = os.environ.get("INTEROP_FOLDER")
        root = Path(folder) if folder else tmp_path_factory.mktemp("interop")
        python = build_environment(request.param, root / str(release))
    assert_stock(python, release)
    return release, python


@pytest.fixture(scope="module")
def record(
    keras_under_test: types.ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict:
    """The record of a model that the fork saves."""
    stem = tmp_path_factory.mktemp("fork") / "model"
    module = os.environ.get("KERAS_MODULE") or model_files.installed_fork()
    return run_script(sys.executable, "write", module, str(stem))


def test_opens_in_stock_release(
    record: dict, stock: tuple[Release, str]
) -> None:
    reader, python = stock
    writer = Release.parse(record["writer"])
    if writer.line != reader.line:
        pytest.skip(f"{reader} does not open files of Keras {writer.line}")
    formats = [
        name
        for name in record["files"]
        if not model_files.why_unreadable(record, reader, name)
    ]
    assert formats
    found = run_script(python, "read", reader.name, *formats, record=record)
    assert list(found) == formats
    for name, differences in found.items():
        assert differences["weights"] == [], FORMATS[name]
        assert differences.get("numbers", []) == [], FORMATS[name]
        if restores_optimizer(record, reader, name):
            assert differences["optimizer"] == [], FORMATS[name]


def restores_optimizer(record: dict, reader: Release, file_format: str) -> bool:
    """Whether a stock release can give an optimizer all of its state back."""
    if reader.line == 3:
        # It leaves out all but two variables, in float32 too.
        return file_format != "h5"
    # The fork writes what an optimizer of the same kind can read: the older
    # ones need blobs, the newer ones numbers.
    return model_files.has_newer_optimizer(record) != reader.is_legacy
