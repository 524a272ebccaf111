"""Applies the overlay to a git checkout of upstream, as a pull request."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from graft.errors import CheckoutError
from graft.project import Project
from graft.project import write
from graft.releases import Target
from graft.tree import graft_tree

# The file that gives a version away: distribution, root package, the package
# that `import keras` means. The layout of keras 3 has to be tried first.
LAYOUTS = {
    "tf_keras/__init__.py": ("tf_keras", "tf_keras", "tf_keras"),
    "keras/src/version.py": ("keras", "keras.src", "keras"),
    "keras/__init__.py": ("keras", "keras", "keras"),
}
VERSION = re.compile(r"(?m)^__version__ = \"(.+)\"")


def apply(directory: Path, project: Project) -> list[str]:
    """Grafts a checkout in place and returns the paths that it wrote."""
    target = detect(directory, project)
    changes = graft_tree(
        lambda path: committed(directory, path),
        target,
        project.overlay(tests=True),
        project.reviewed.guard_for,
        pull_request=True,
    )
    _check_clean(directory, changes)
    missing = [p for p in changes if _current(directory, p) != changes[p]]
    for path in missing:
        write(directory / path, changes[path])
    return missing


def detect(directory: Path, project: Project) -> Target:
    """Finds out from its layout what a checkout is."""
    for path, (name, root, api) in LAYOUTS.items():
        found = VERSION.search((committed(directory, path) or b"").decode())
        if found:
            target = project.table.target(name, found[1])
            return dataclasses.replace(target, root=root, api=api)
    raise CheckoutError(
        f"{directory} is no git checkout of Keras.",
        expected="the top folder of a clone of keras-team/keras or "
        "keras-team/tf-keras",
    )


def committed(directory: Path, path: str) -> bytes | None:
    """Returns a file as the last commit has it."""
    run = _git(directory, "cat-file", "blob", f"HEAD:{path}")
    return None if run.returncode else run.stdout


def _git(directory: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "-C", str(directory), *words], capture_output=True
    )


def _current(directory: Path, path: str) -> bytes | None:
    file = directory / path
    return file.read_bytes() if file.is_file() else None


def _check_clean(directory: Path, changes: Mapping[str, bytes]) -> None:
    """Refuses a checkout with changes other than the overlay's own."""
    status = _git(
        directory, "diff", "--name-only", "--no-renames", "-z", "HEAD"
    )
    dirty = set(filter(None, status.stdout.decode().split("\0")))
    for path in changes:
        current = _current(directory, path)
        if current is not None and current != committed(directory, path):
            dirty.add(path)
    foreign = [
        path
        for path in sorted(dirty)
        if path not in changes or _current(directory, path) != changes[path]
    ]
    if foreign:
        raise CheckoutError(
            f"{directory} has changes that are not the overlay's.",
            expected="a clean checkout, or one with just this overlay applied",
            received=", ".join(foreign),
            remedy="commit or discard them first",
        )
