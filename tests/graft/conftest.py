"""A project around a tiny upstream release."""

import hashlib

import pytest
from small_upstream import CODEC
from small_upstream import CODEC_TEST
from small_upstream import OVERLAY
from small_upstream import STORE
from small_upstream import TABLE
from small_upstream import write_files
from small_upstream import write_upstream_wheel

from graft import cli
from graft.project import Project
from graft.releases import Table
from graft.review import Reviewed


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


@pytest.fixture
def command_line(project, monkeypatch):
    """Lets the command line see the small project."""
    monkeypatch.setattr(cli, "Project", lambda find_links: project)
    return project
