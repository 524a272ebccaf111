"""Builds wheels: an upstream release with the overlay in it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import stat
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from graft import FORK_VERSION
from graft.releases import Release

# Neither zip nor gzip can hold anything earlier.
EARLIEST = 315532800
CLASSIFIER = "Classifier: Private :: Do Not Upload"
NOTE = " (fork with bfloat16 in HDF5)"


def fork_version(release: Release) -> str:
    return f"{release.version}+{FORK_VERSION}"


def timestamp() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))


def info_directory(release: Release) -> str:
    return f"{release.name}-{fork_version(release)}.dist-info"


def info_files(
    release: Release, files: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Returns the fork's dist-info by path, without its RECORD."""
    start = f"{release.distribution}.dist-info/"
    info = {
        path[len(start) :]: data
        for path, data in files.items()
        if path.startswith(start)
    }
    info.pop("RECORD", None)
    info["METADATA"] = metadata(info["METADATA"], release)
    generator = b"Generator: graft"
    info["WHEEL"] = re.sub(rb"(?m)^Generator:.*$", generator, info["WHEEL"])
    return {f"{info_directory(release)}/{p}": d for p, d in info.items()}


def metadata(data: bytes, release: Release) -> bytes:
    """Changes the version and says that this is not upstream's release."""
    header, _, description = data.decode().partition("\n\n")
    lines = []
    for line in header.rstrip("\n").split("\n"):
        if line.startswith("Version: "):
            line = f"Version: {fork_version(release)}"
        elif line.startswith("Summary: "):
            line += NOTE
        lines.append(line)
    return "\n".join([*lines, CLASSIFIER, "", description]).encode()


def contents(
    release: Release, files: Mapping[str, bytes], changes: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Returns a wheel's files in the order in which it holds them."""
    start = f"{release.distribution}.dist-info/"
    package = {p: d for p, d in files.items() if not p.startswith(start)}
    package.update(changes)
    info = info_files(release, files)
    whole = {**dict(sorted(package.items())), **dict(sorted(info.items()))}
    record = f"{info_directory(release)}/RECORD"
    whole[record] = record_of(whole, record)
    return whole


def record_of(files: Mapping[str, bytes], own_path: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        encoded = digest.rstrip(b"=").decode()
        writer.writerow([path, f"sha256={encoded}", len(data)])
    writer.writerow([own_path, "", ""])
    return text.getvalue().encode()


def file_name(release: Release, wheel: bytes) -> str:
    """Names the wheel with the tags that its WHEEL file lists."""
    tags = re.findall(r"(?m)^Tag: (\S+)-(\S+)-(\S+)$", wheel.decode())
    parts = [".".join(sorted(set(column))) for column in zip(*tags)]
    return "-".join([release.name, fork_version(release), *parts]) + ".whl"


def write_wheel(
    release: Release,
    files: Mapping[str, bytes],
    changes: Mapping[str, bytes],
    directory: Path,
) -> Path:
    """Writes a wheel whose bytes depend on its contents only."""
    whole = contents(release, files, changes)
    wheel = whole[f"{info_directory(release)}/WHEEL"]
    path = directory / file_name(release, wheel)
    directory.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in whole.items():
            archive.writestr(_entry(name), data)
    os.replace(temporary, path)
    return path


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, time.gmtime(timestamp())[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, so that the mode below counts.
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry
