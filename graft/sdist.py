"""Packs what it takes to build one release of the fork."""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from graft import FORK_VERSION
from graft.releases import Release
from graft.wheel import fork_version
from graft.wheel import timestamp

PROJECT = Path(__file__).resolve().parent.parent
FILES = ("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")
FOLDERS = ("graft", "keras")


def packed_release(directory: Path = PROJECT) -> str | None:
    """Returns the release that an unpacked sdist was made for."""
    path = directory / "PKG-INFO"
    if not path.exists():
        return None
    fields = dict(
        re.findall(r"(?m)^(Name|Version): (.+)$", path.read_text("utf-8"))
    )
    version = fields["Version"].removesuffix(f"+{FORK_VERSION}")
    return f"{fields['Name']}=={version}"


def write_sdist(
    release: Release, directory: Path, source: Path = PROJECT
) -> Path:
    base = f"{release.name}-{fork_version(release)}"
    path = directory / f"{base}.tar.gz"
    data = io.BytesIO()
    with tarfile.open(
        fileobj=data, mode="w", format=tarfile.PAX_FORMAT
    ) as archive:
        for name, content in _members(release, source):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mtime = len(content), timestamp()
            archive.addfile(entry, io.BytesIO(content))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(gzip.compress(data.getvalue(), mtime=timestamp()))
    os.replace(temporary, path)
    return path


def _members(release: Release, source: Path) -> Iterator[tuple[str, bytes]]:
    yield "PKG-INFO", _package_info(release)
    paths = [source / name for name in FILES]
    for folder in FOLDERS:
        paths += sorted((source / folder).rglob("*"))
    for path in paths:
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(source).as_posix(), path.read_bytes()


def _package_info(release: Release) -> bytes:
    """What is missing here is known once upstream's wheel is there."""
    lines = [
        "Metadata-Version: 2.2",
        f"Name: {release.name}",
        f"Version: {fork_version(release)}",
        *(f"Dynamic: {field}" for field in DYNAMIC),
    ]
    return ("\n".join(lines) + "\n").encode()


DYNAMIC = (
    "Summary",
    "Description",
    "Classifier",
    "License-File",
    "Requires-Dist",
    "Requires-Python",
)
