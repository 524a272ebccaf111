import pytest

from graft import errors
from graft import upstream


def test_wheel_is_found_and_verified(project, release, package):
    files = project.files(release)
    assert (
        files["tf_keras/src/saving/store.py"].decode()
        == (package["tf_keras/src/saving/store.py"])
    )


def test_changed_wheel_is_refused(project, release, wheels):
    (wheel,) = wheels.glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(errors.HashMismatchError, match=release.sha256):
        project.files(release)


def test_cached_wheel_is_verified_again(project, release, wheels):
    cache = upstream.cache_directory()
    cache.mkdir(parents=True)
    (wheel,) = wheels.glob("*.whl")
    cached = wheel.rename(cache / wheel.name)
    assert project.files(release)
    cached.write_bytes(b"PK")
    with pytest.raises(errors.HashMismatchError, match=str(cache)):
        project.files(release)


def test_pip_downloads_into_the_cache(project, release, wheels, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", wheels.as_uri())
    project.find_links = ()
    files = project.files(release)
    (cached,) = upstream.cache_directory().glob("*")
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    assert cached.name.startswith("tf_keras-2.21.0-")
    assert project.files(release) == files


def test_no_wheel_anywhere(project, release, wheels):
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    with pytest.raises(errors.NotFoundError, match="--find-links"):
        project.files(release)


@pytest.fixture
def site(tmp_path, project, release, wheels, monkeypatch):
    """An installed stock distribution instead of a wheel."""
    from graft.wheel import record_of

    files = upstream.unpacked(next(wheels.glob("*.whl")).read_bytes())
    record = "tf_keras-2.21.0.dist-info/RECORD"
    del files[record]
    files[record] = record_of(files, record)
    for path, data in files.items():
        (tmp_path / "site" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / path).write_bytes(data)
    next(wheels.glob("*.whl")).unlink()
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def test_installed_distribution_stands_in(project, release, site):
    files = project.files(release)
    assert "tf_keras/src/saving/store.py" in files
    assert project.wheel(release, site.parent / "dist").exists()


def test_changed_installed_distribution_is_refused(project, release, site):
    (site / "tf_keras/src/saving/store.py").write_text("x = 1\n")
    with pytest.raises(errors.HashMismatchError, match="store.py"):
        project.files(release)
