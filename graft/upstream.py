"""Obtains upstream wheels and verifies them before anything reads them."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from graft.errors import HashMismatchError
from graft.errors import NotFoundError
from graft.releases import Release
from graft.releases import Target

INSTALLERS = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "keras-graft"


def files(release: Release, find_links: Sequence[str] = ()) -> dict[str, bytes]:
    """Returns the files of a release by path, all of them verified.

    Without a wheel, an installed stock distribution of that very version will
    do, if every file is what its RECORD says.
    """
    try:
        data = verified(fetch(release, find_links), release)
    except NotFoundError:
        found = installed(release)
        if found is None:
            raise
        return found
    return unpacked(data)


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        return {
            name: wheel.read(name)
            for name in sorted(wheel.namelist())
            if not name.endswith("/")
        }


def fetch(release: Target, find_links: Sequence[str] = ()) -> bytes:
    """Returns the bytes of a release's wheel, which the caller verifies."""
    for directory in _local_directories(find_links):
        for path in sorted(directory.glob(f"{release.distribution}-*.whl")):
            return path.read_bytes()
    return _download(release, find_links)


def verified(data: bytes, release: Release) -> bytes:
    received = hashlib.sha256(data).hexdigest()
    if received != release.sha256:
        raise HashMismatchError(
            f"The wheel of {release} is not the pinned one.",
            expected=f"sha256 {release.sha256}",
            received=f"sha256 {received}",
            remedy=f"delete it from {cache_directory()} and from the folders "
            "of --find-links and PIP_FIND_LINKS",
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


def _download(release: Target, find_links: Sequence[str]) -> bytes:
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
        return _cached(wheels[0])


def _cached(wheel: Path) -> bytes:
    data = wheel.read_bytes()
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        file.write(data)
    os.replace(file.name, directory / wheel.name)
    return data


def installed(release: Release) -> dict[str, bytes] | None:
    """Reads an installed stock distribution of exactly this version."""
    try:
        distribution = metadata.distribution(release.name)
    except metadata.PackageNotFoundError:
        return None
    if distribution.version != release.version:
        return None
    found = {}
    for path in distribution.files or ():
        # What has no hash was made by the installer.
        if path.hash and "/" in str(path) and path.name not in INSTALLERS:
            found[path.as_posix()] = _recorded(path, release)
    return found


def _recorded(path: metadata.PackagePath, release: Release) -> bytes:
    data = path.read_binary()
    digest = hashlib.new(path.hash.mode, data).digest()
    received = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if received != path.hash.value:
        raise HashMismatchError(
            f"{path} of the installed {release} was changed.",
            expected=f"{path.hash.mode} {path.hash.value}",
            received=received,
            remedy=f"reinstall {release}, or provide its wheel",
        )
    return data
