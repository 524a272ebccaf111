"""What the fork writes must open in stock releases and forks, bit for bit.

An environment is built for each reader. INTEROP_FOLDER keeps them for the next
time.
"""

from __future__ import annotations

import json
import os
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
ROOT = SCRIPT.parent.parent
# One release of each line as a reader: its Python, and what it needs beside it.
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


def build_environment(release: str, kind: str, folder: Path) -> str:
    """Installs a stock release, or the fork for it, and returns its Python."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    complete = folder / "complete"
    if not complete.exists():
        version, requirements = READERS[release]
        venv = ["uv", "--no-config", "venv", "--clear", "--python", version]
        subprocess.run([*venv, str(folder)], check=True)
        needed = [release, *requirements]
        subprocess.run([*install_with(python), *needed], check=True)
        complete.touch()
    if kind == "fork":
        # Anew each time, as the overlay may have changed.
        fork = [ROOT, f"-Cupstream={release}", "--no-deps"]
        fork += ["--reinstall-package", release.partition("==")[0]]
        subprocess.run([*install_with(python), *fork], check=True)
    return str(python)


def install_with(python: Path) -> list[str]:
    return ["uv", "--no-config", "pip", "install", "--python", str(python)]


def assert_kind(python: str, release: str, kind: str) -> None:
    """A fork has a local part in its version."""
    name, _, version = release.partition("==")
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    )
    assert (done.stdout.strip() == version) == (kind == "stock")


@pytest.fixture(scope="module", params=READERS)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=["stock", "fork"])
def reader(
    request: pytest.FixtureRequest,
    release: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Release, str, str]:
    """A release, its kind and its Python."""
    kind = request.param
    folder = os.environ.get("INTEROP_FOLDER")
    root = Path(folder) if folder else tmp_path_factory.mktemp("interop")
    name = f"{kind}-{release.replace('==', '-')}"
    python = build_environment(release, kind, root / name)
    assert_kind(python, release, kind)
    return Release.parse(release.replace("==", "-")), kind, python


@pytest.fixture(scope="module")
def record(
    keras_under_test: types.ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict:
    """The record of a model that the fork saves."""
    stem = tmp_path_factory.mktemp("fork") / "model"
    module = os.environ.get("KERAS_MODULE") or model_files.installed_fork()
    return run_script(sys.executable, "write", module, str(stem))


def test_opens(record: dict, reader: tuple[Release, str, str]) -> None:
    release, kind, python = reader
    writer = Release.parse(record["writer"])
    if writer.line != release.line:
        pytest.skip(f"{release} does not open files of Keras {writer.line}")
    formats = [
        name
        for name in record["files"]
        if not model_files.why_unreadable(record, release, name)
    ]
    assert formats
    found = run_script(python, "read", release.name, *formats, record=record)
    assert list(found) == formats
    for name, differences in found.items():
        assert differences["weights"] == [], FORMATS[name]
        assert differences.get("numbers", []) == [], FORMATS[name]
        if restores_optimizer(record, release, kind, name):
            assert differences["optimizer"] == [], FORMATS[name]


def restores_optimizer(
    record: dict, reader: Release, kind: str, file_format: str
) -> bool:
    """Whether a release can give an optimizer all of its state back."""
    if reader.line == 3:
        # Stock leaves out all but two variables, in float32 too.
        return kind == "fork" or file_format != "h5"
    # The fork writes what an optimizer of the same kind can read: the older
    # ones need blobs, the newer ones numbers.
    return model_files.has_newer_optimizer(record) != reader.is_legacy
