import pytest

from graft import errors
from graft.releases import Range
from graft.releases import Table
from graft.releases import parse


@pytest.mark.parametrize(
    "text", ["tf-keras==2.21.0", "TF_Keras==2.21.0", "tf_keras==2.21.0"]
)
def test_names_are_normalised(text):
    assert str(Table().release(text)) == "tf_keras==2.21.0"


@pytest.mark.parametrize(
    "text", ["keras", "keras==", "keras>=3", "numpy==1.0", "keras==new"]
)
def test_not_a_release(text):
    with pytest.raises(errors.UnknownReleaseError, match="Received: " + text):
        parse(text)


def test_unknown_release_names_the_remedy():
    with pytest.raises(errors.UnknownReleaseError, match="graft review"):
        Table().release("keras==3.99.0")


@pytest.mark.parametrize(
    "name, version, served",
    [
        ("keras", "2.11.0", False),
        ("keras", "2.12.0", True),
        ("keras", "3.0.0", False),
        ("keras", "2.13.0rc1", True),
        ("tf_keras", "2.15.0", True),
    ],
)
def test_range(name, version, served):
    assert Range("keras>=2.12,<3 | tf-keras").serves(name, version) is served


def test_facts_of_ranges_add_up():
    release = Table().release("keras==2.11.0")
    assert release.path("initializers/initializers.py") == (
        "keras/initializers/initializers_v2.py"
    )
    assert release.path("saving/hdf5_format.py") == (
        "keras/saving/legacy/hdf5_format.py"
    )
    assert release.path("backend.py") == "keras/backend.py"


def test_every_release_is_described():
    releases = list(Table())
    assert len(releases) >= 50
    for release in releases:
        assert release.root and release.python and release.tensorflow
        assert len(release.sha256) == 64


def test_added_release_stays(tmp_path):
    path = tmp_path / "releases.toml"
    path.write_text(Table().path.read_text("utf-8"), "utf-8")
    table = Table(path)
    table.add(table.describe("tf_keras", "2.22.0", "0" * 64))
    table.add(table.describe("keras", "3.16.0", "1" * 64))
    table.add(table.describe("keras", "3.15.9", "2" * 64))
    again = Table(path)
    names = [str(release) for release in again]
    first = names.index("keras==3.15.1")
    assert names[first + 1 : first + 3] == ["keras==3.15.9", "keras==3.16.0"]
    assert again.release("tf_keras==2.22.0").sha256 == "0" * 64
    assert again.release("keras==3.16.0").root == "keras.src"
    assert len(names) == len(list(Table())) + 3
