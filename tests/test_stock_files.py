"""Files that unmodified releases wrote must load, bit for bit."""

from __future__ import annotations

import json
import types
from pathlib import Path

import model_files
import pytest
from model_files import FORMATS
from model_files import Release

FOLDER = Path(__file__).parent / "stock_files"
WRITERS = (
    "keras-2.9.0",
    "keras-2.11.0",
    "keras-2.12.0",
    "keras-2.13.1",
    "keras-2.15.0",
    "tf_keras-2.16.0",
    "tf_keras-2.20.1",
    "tf_keras-2.21.0",
    "keras-3.0.5",
    "keras-3.12.4",
    "keras-3.15.1",
)
# Keras 3 does not write weights in the older layout.
FILES = [
    (writer, file_format)
    for writer in WRITERS
    for file_format in FORMATS
    if file_format != "weights_only" or Release.parse(writer).line == 2
]


def record_of(writer: str) -> dict:
    record = json.loads((FOLDER / f"{writer}.json").read_text())
    for file_format, name in record["files"].items():
        record["files"][file_format] = str(FOLDER / name)
    return record


def test_every_file_is_there_and_tested() -> None:
    expected = {"README.md", *(f"{writer}.json" for writer in WRITERS)}
    expected.update(writer + FORMATS[name] for writer, name in FILES)
    assert {path.name for path in FOLDER.iterdir()} == expected


@pytest.mark.parametrize("writer,file_format", FILES)
def test_stock_file(
    keras_under_test: types.ModuleType, writer: str, file_format: str
) -> None:
    reader = model_files.release_of(keras_under_test)
    release = Release.parse(writer)
    record = record_of(writer)
    if release.line != reader.line:
        pytest.skip(f"{reader} does not open files of Keras {release.line}")
    reason = model_files.why_unreadable(record, reader, file_format)
    try:
        found = model_files.read(keras_under_test, record, file_format)
    except Exception as error:
        if not reason:
            raise
        pytest.skip(f"not in float32 either, {reason}: {error!r}"[:300])
    # Whatever loads must be right, even where nobody expects it to.
    assert found["weights"] == []
    assert found["optimizer"] == []
