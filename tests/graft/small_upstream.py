"""A tiny upstream for the tests of graft, and small targets."""

import textwrap
import zipfile

from click.testing import CliRunner

from graft import cli
from graft.overlay import parse_file
from graft.releases import Target
from graft.transform import graft
from graft.transform import overlay_module
from graft.transform import parse

PARTS = {"reading": True, "testing": False}
KERAS_2 = Target("keras", "2.12.0", "keras", "keras", parts=PARTS)
TF_KERAS = Target("tf_keras", "2.21.0", "tf_keras.src", "tf_keras.src")
KERAS_3 = Target(
    "keras",
    "3.5.0",
    "keras.src",
    "keras",
    renames={"Orthogonal": "OrthogonalInitializer"},
)

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

[parts]
reading = ["keras/saving/codec.py", "keras/saving/store.py"]
testing = ["keras/saving/codec_test.py", "keras/saving/codec.py"]

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


def add_to_overlay(project, files):
    """Writes overlay files, by their paths below keras/, into a part."""
    write_files(project.directory, files)
    project.table.parts["reading"] += [f"keras/{path}" for path in files]


def command(project, *words):
    """Runs the command line; see the fixture `command_line`."""
    main = ["--find-links", project.find_links[0], "--overlay"]
    return CliRunner().invoke(cli.main, [*main, str(project.directory), *words])


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


def grafted(before, overlay, target=KERAS_2, path="keras/saving/store.py"):
    file = parse_file(path, dedent(overlay))
    module = overlay_module(file, target)
    return graft(parse(dedent(before), path), module, target, path).code


def assert_grafted(before, overlay, after, **options):
    code = grafted(before, overlay, **options)
    assert code == dedent(after)
    assert grafted(code, overlay, **options) == code
