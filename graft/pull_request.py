"""Turns a checkout into what a pull request to upstream would change."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping
from pathlib import Path

from graft.bazel import build_changes
from graft.checkout import Checkout
from graft.checkout import detect
from graft.errors import CheckoutError
from graft.errors import GraftError
from graft.errors import NotReviewedError
from graft.project import Project
from graft.project import write
from graft.review import unreviewed
from graft.tree import graft_tree


def apply(
    directory: Path, project: Project, only: Collection[str] = ()
) -> list[str]:
    """Grafts a checkout in place and returns the paths that it wrote.

    Args:
        directory: The checkout's top folder.
        project: The overlay and what belongs to it.
        only: The parts of the overlay to graft, all of them by default.
    """
    checkout = detect(directory, project.table, only)
    _check_reviewed(checkout, project)
    changes = changes_of(checkout, project)
    _check_clean(checkout, changes)
    missing = [p for p in changes if checkout.current(p) != changes[p]]
    for path in missing:
        write(directory / path, changes[path])
    return missing


def changes_of(checkout: Checkout, project: Project) -> dict[str, bytes]:
    """Returns the files that the change has, as it leaves them."""
    changes = graft_tree(
        checkout.read,
        checkout,
        project.overlay(tests=True),
        project.reviewed.guard_for,
        pull_request=True,
    )
    rules = build_changes(
        changes,
        checkout.read,
        checkout.build_files(),
        checkout.root,
        project.test_sizes(),
    )
    return {**changes, **rules}


def _check_reviewed(checkout: Checkout, project: Project) -> None:
    """Names everything that stands in the way at once."""
    errors: list[GraftError] = []
    found = project.bodies(checkout, errors)
    names = [str(error).splitlines()[0] for error in errors]
    for path, qualname, _ in unreviewed(found, project.reviewed):
        names.append(f"{path}: {qualname} has a body not reviewed yet.")
    if names:
        raise NotReviewedError(
            f"{checkout}, {checkout.name} {checkout.version}, is not what the "
            "overlay was checked against.",
            received="\n" + "\n".join(names),
            expected="bodies like those of the releases that `python -m graft "
            "releases` lists",
            remedy=f"read what `python -m graft review {checkout}` shows, "
            "adapt the overlay if need be, then run it with --accept",
        )


def _check_clean(checkout: Checkout, changes: Mapping[str, bytes]) -> None:
    """Refuses a checkout with changes other than the overlay's own."""
    dirty = checkout.changed()
    for path in changes:
        current = checkout.current(path)
        if current is not None and current != checkout.read(path):
            dirty.add(path)
    foreign = [
        path
        for path in sorted(dirty)
        if path not in changes or checkout.current(path) != changes[path]
    ]
    if foreign:
        raise CheckoutError(
            f"{checkout} has changes that are not the overlay's.",
            expected="a clean checkout, or one with just this overlay applied",
            received=", ".join(foreign),
            remedy="commit or discard them first",
        )
