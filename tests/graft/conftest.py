"""A tiny upstream: two releases, as wheels in a folder, and their table."""

import hashlib
import textwrap
import zipfile

import pytest

from graft.project import Project
from graft.releases import Table
from graft.review import Reviewed

STORE = '''\
# Licence.
# ==========
"""Stores things."""

import os

from {root} import backend


# Reads.
@backend.export
def read(path):
    """Reads a file."""
    return backend.load(path)


class Box:
    """Holds a value."""

    def get(self):
        return self.value
'''

OVERLAY = """\
from keras import backend
from keras.saving import codec


def read(path):
    return codec.decode(backend.load(path))
"""

CODEC = '''\
"""Decodes."""


def decode(value):
    return value
'''

CODEC_TEST = """\
from keras.saving import codec


def test_decode():
    assert codec.decode(1) == 1
"""

TABLE = """\
default = "tf_keras==2.21.0"
new = ["keras/saving/codec.py", "keras/saving/codec_test.py"]

[[facts]]
releases = "tf_keras"
root = "tf_keras.src"
python = ">=3.10"
tensorflow = "==2.21.*"

[wheels]
"""


def dedent(text):
    return textwrap.dedent(text).lstrip("\n")


def write_files(directory, files):
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")


def write_upstream_wheel(directory, version, files):
    """Writes a wheel as upstream would and returns its path."""
    info = f"tf_keras-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        "Name: tf_keras",
        f"Version: {version}",
        "Summary: A test.",
        "License-File: LICENSE",
    ]
    files = {
        **files,
        f"{info}/LICENSE": "Do what you like.\n",
        f"{info}/METADATA": "\n".join(metadata) + "\n\nVersion: none.\n",
        f"{info}/RECORD": "stale\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: other (1.0)\n"
        "Root-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n",
    }
    path = directory / f"tf_keras-{version}-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


@pytest.fixture
def wheels(tmp_path):
    directory = tmp_path / "wheels"
    directory.mkdir()
    return directory


@pytest.fixture
def package():
    """The files of upstream's package."""
    return {
        "tf_keras/__init__.py": "",
        "tf_keras/src/__init__.py": "",
        "tf_keras/src/saving/__init__.py": "",
        "tf_keras/src/saving/store.py": STORE.format(root="tf_keras.src"),
    }


@pytest.fixture
def project(tmp_path, monkeypatch, wheels, package):
    """A project whose overlay is reviewed, cut off from the network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for variable in ("GRAFT", "PIP", "UV"):
        monkeypatch.delenv(f"{variable}_FIND_LINKS", raising=False)
    wheel = write_upstream_wheel(wheels, "2.21.0", package)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    overlay = {
        "keras/saving/store.py": OVERLAY,
        "keras/saving/codec.py": CODEC,
        "keras/saving/codec_test.py": CODEC_TEST,
        "releases.toml": f'{TABLE}"tf_keras==2.21.0" = "{digest}"\n',
    }
    write_files(tmp_path, overlay)
    project = Project(
        directory=tmp_path / "keras",
        table=Table(tmp_path / "releases.toml"),
        reviewed=Reviewed(tmp_path / "reviewed.toml"),
        find_links=[str(wheels)],
    )
    release = project.table.release("tf_keras==2.21.0")
    project.reviewed.accept(project.bodies(release))
    return project


@pytest.fixture
def release(project):
    return project.table.release("tf_keras==2.21.0")
