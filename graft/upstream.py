"""Obtains upstream wheels and verifies them before anything reads them."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path

from graft.errors import HashMismatchError
from graft.errors import NotFoundError
from graft.releases import Release


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "keras-graft"


def wheel_bytes(release: Release, find_links: Sequence[str] = ()) -> bytes:
    """Returns the verified bytes of a release's wheel."""
    for directory in _local_directories(find_links):
        for path in sorted(directory.glob(f"{release.distribution}-*.whl")):
            return verified(path.read_bytes(), release, str(path))
    return verified(_download(release, find_links), release, "the index")


def files(release: Release, find_links: Sequence[str] = ()) -> dict[str, bytes]:
    """Returns the wheel's files by path."""
    with zipfile.ZipFile(io.BytesIO(wheel_bytes(release, find_links))) as wheel:
        return {
            name: wheel.read(name)
            for name in sorted(wheel.namelist())
            if not name.endswith("/")
        }


def verified(data: bytes, release: Release, origin: str) -> bytes:
    received = hashlib.sha256(data).hexdigest()
    if received != release.sha256:
        raise HashMismatchError(
            f"The wheel of {release} from {origin} is not the pinned one.",
            expected=f"sha256 {release.sha256}",
            received=f"sha256 {received}",
            remedy="delete it and fetch it anew; do not use it",
        )
    return data


def _local_directories(find_links: Sequence[str]) -> Iterator[Path]:
    """Yields the folders that may hold wheels, the user's own first."""
    variables = ("GRAFT_FIND_LINKS", "PIP_FIND_LINKS", "UV_FIND_LINKS")
    words = [w for v in variables for w in os.environ.get(v, "").split()]
    for directory in map(Path, [*find_links, *words]):
        if directory.is_dir():
            yield directory
    yield cache_directory()


def _download(release: Release, find_links: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        # `===`, since `==` also accepts the fork's own local versions.
        command = [sys.executable, "-m", "pip", "download", "--quiet"]
        command += ["--no-deps", "--only-binary", ":all:"]
        command += ["--ignore-requires-python", "--dest", directory]
        command += [w for link in find_links for w in ("--find-links", link)]
        command += [f"{release.name}==={release.version}"]
        run = subprocess.run(command, capture_output=True, text=True)
        wheels = sorted(Path(directory).glob("*.whl"))
        if run.returncode or not wheels:
            raise NotFoundError(
                f"The wheel of {release} could not be downloaded.",
                received=run.stderr.strip(),
                remedy="put it into a folder and name that folder in "
                "--find-links or PIP_FIND_LINKS",
            )
        return _cached(wheels[0], release)


def _cached(wheel: Path, release: Release) -> bytes:
    data = verified(wheel.read_bytes(), release, "the index")
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        file.write(data)
    os.replace(file.name, directory / wheel.name)
    return data
