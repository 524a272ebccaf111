import base64
import csv
import hashlib
import io
import tarfile
import zipfile

import pytest

from graft import sdist
from graft.buildapi import build_sdist
from graft.wheel import timestamp


@pytest.fixture
def wheel(project, release, tmp_path):
    return project.wheel(release, tmp_path / "dist")


def test_name_and_tags(wheel):
    assert wheel.name == "tf_keras-2.21.0+bf16.1-py2.py3-none-any.whl"


def test_two_builds_are_equal(project, release, wheel, tmp_path):
    again = project.wheel(release, tmp_path / "again")
    assert again.read_bytes() == wheel.read_bytes()


def test_source_date_epoch(project, release, wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    again = project.wheel(release, tmp_path / "again")
    with zipfile.ZipFile(again) as archive:
        dates = {entry.date_time for entry in archive.infolist()}
    assert dates == {(2023, 11, 14, 22, 13, 20)}


def test_modes_and_order(wheel):
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}
    names = [entry.filename for entry in entries]
    assert names[-1].endswith(".dist-info/RECORD")
    package = [name for name in names if ".dist-info/" not in name]
    assert package == sorted(package) == names[: len(package)]


def test_record(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        rows = list(csv.reader(io.StringIO(archive.read(names[-1]).decode())))
        assert [row[0] for row in rows] == names
        for path, digest, size in rows[:-1]:
            data = archive.read(path)
            expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            assert digest == "sha256=" + expected.decode().rstrip("=")
            assert int(size) == len(data)
    assert rows[-1][1:] == ["", ""]


def test_dist_info(wheel):
    start = "tf_keras-2.21.0+bf16.1.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(start + "METADATA").decode()
        info = archive.read(start + "WHEEL").decode()
        assert archive.read(start + "LICENSE") == b"Do what you like.\n"
    header, _, description = metadata.partition("\n\n")
    assert "\nVersion: 2.21.0+bf16.1\n" in header
    assert "\nSummary: A test. (fork" in header
    assert description == "Version: none.\n"
    assert "\nGenerator: graft\n" in info


def test_prepared_metadata_is_the_wheels(project, release, wheel, tmp_path):
    name = project.metadata(release, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        for path in (tmp_path / name).rglob("*"):
            relative = path.relative_to(tmp_path).as_posix()
            assert archive.read(relative) == path.read_bytes()


def test_sdist_builds_what_it_was_made_for(tmp_path):
    settings = {"upstream": "tf-keras==2.20.1"}
    name = build_sdist(str(tmp_path), settings)
    assert name == "tf_keras-2.20.1+bf16.1.tar.gz"
    data = (tmp_path / name).read_bytes()
    assert build_sdist(str(tmp_path), settings) == name
    assert (tmp_path / name).read_bytes() == data
    assert int.from_bytes(data[4:8], "little") == timestamp()
    with tarfile.open(tmp_path / name) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path)
    root = tmp_path / "tf_keras-2.20.1+bf16.1"
    for path in ("pyproject.toml", "graft/releases.toml", "keras/backend.py"):
        assert f"{root.name}/{path}" in names
    assert sdist.packed_release(root) == "tf_keras==2.20.1"
    assert sdist.packed_release(tmp_path) is None
