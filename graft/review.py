"""Which upstream bodies have been reviewed, and what the others look like."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from graft.errors import GraftError
from graft.errors import NotReviewedError
from graft.fingerprint import fingerprint
from graft.overlay import TESTS
from graft.overlay import OverlayFile
from graft.releases import Target
from graft.releases import tomllib
from graft.transform import Guard
from graft.tree import Read
from graft.tree import grafted

REVIEWED_PATH = Path(__file__).with_name("reviewed.toml")
HEADING = (
    "# Fingerprints of the upstream bodies that the overlay was checked\n"
    "# against. `python -m graft review --accept` writes this file.\n"
)


@dataclass(frozen=True)
class Body:
    """An upstream body that the overlay replaces."""

    path: str
    qualname: str
    fingerprint: str
    code: str
    target: Target


class Reviewed:
    """The fingerprints in `reviewed.toml`."""

    def __init__(self, path: Path = REVIEWED_PATH) -> None:
        self.path = path
        self.entries: dict[str, dict[str, list[str]]] = {}
        if path.exists():
            self.entries = tomllib.loads(path.read_text(encoding="utf-8"))

    def holds(self, path: str, qualname: str, digest: str) -> bool:
        return digest in self.entries.get(path, {}).get(qualname, ())

    def guard_for(self, file: OverlayFile, target: Target) -> Guard:
        """Makes a guard that refuses bodies which nobody has reviewed."""

        def guard(
            qualname: str, upstream: cst.FunctionDef, body: cst.FunctionDef
        ) -> None:
            digest = fingerprint(upstream)
            known = self.holds(file.path, qualname, digest)
            if not known and digest != fingerprint(body):
                raise self._refusal(file, qualname, target, digest)

        return guard

    def _refusal(
        self, file: OverlayFile, qualname: str, target: Target, digest: str
    ) -> NotReviewedError:
        known = self.entries.get(file.path, {}).get(qualname, [])
        return NotReviewedError(
            f"{file.path}: {qualname} has a body in {target} that has not "
            "been reviewed.",
            expected=", ".join(known) or "none is reviewed yet",
            received=digest,
            remedy=f"read what `python -m graft review {target}` shows, adapt "
            "the overlay if need be, then run it with --accept",
        )

    def accept(self, bodies: Iterable[Body]) -> None:
        for body in bodies:
            names = self.entries.setdefault(body.path, {})
            digests = names.setdefault(body.qualname, [])
            if body.fingerprint not in digests:
                digests.append(body.fingerprint)

    def keep_only(self, bodies: Iterable[Body]) -> None:
        """Drops what the overlay no longer replaces."""
        replaced = {(body.path, body.qualname) for body in bodies}
        self.entries = {
            path: {
                name: digests
                for name, digests in names.items()
                # Upstream's tests are reviewed in checkouts only.
                if (path, name) in replaced or path.endswith(TESTS)
            }
            for path, names in self.entries.items()
        }

    def write(self) -> None:
        lines = [HEADING]
        for path, names in sorted(self.entries.items()):
            if names:
                lines.append(f'\n["{path}"]\n')
            for qualname, digests in sorted(names.items()):
                quoted = "".join(f'    "{d}",\n' for d in sorted(digests))
                lines.append(f'"{qualname}" = [\n{quoted}]\n')
        self.path.write_text("".join(lines), encoding="utf-8")


def bodies(
    read: Read,
    target: Target,
    overlay: Iterable[OverlayFile],
    errors: list[GraftError] | None = None,
) -> list[Body]:
    """Collects the upstream bodies that the overlay replaces.

    Args:
        read: Returns an upstream file's bytes, or None.
        target: What `read` reads from.
        overlay: The overlay's files.
        errors: Takes what is wrong with a file, so that the others are still
            collected; without it, the first error is raised.
    """
    found: list[Body] = []

    def guard_for(file: OverlayFile, target: Target) -> Guard:
        def guard(
            qualname: str, upstream: cst.FunctionDef, body: cst.FunctionDef
        ) -> None:
            code = cst.Module([]).code_for_node(upstream).strip("\n") + "\n"
            digest = fingerprint(upstream)
            # A checkout may hold the change already.
            if digest != fingerprint(body):
                found.append(Body(file.path, qualname, digest, code, target))

        return guard

    for file in overlay:
        if file.new or not file.serves(target):
            continue
        source = read(target.path(file.relative))
        try:
            grafted(file, source, target, guard_for)
        except GraftError as error:
            if errors is None:
                raise
            errors.append(error)
    return found


def unreviewed(
    bodies: Iterable[Body], reviewed: Reviewed
) -> dict[tuple[str, str, str], list[Body]]:
    """Groups the bodies to review; equal ones need it only once."""
    groups: dict[tuple[str, str, str], list[Body]] = {}
    for body in bodies:
        key = (body.path, body.qualname, body.fingerprint)
        if not reviewed.holds(*key):
            groups.setdefault(key, []).append(body)
    return groups


def difference(body: Body, known: Iterable[Body]) -> str:
    """Shows a body against the most similar one that is known."""
    codes = {
        other.code: other
        for other in known
        if (other.path, other.qualname) == (body.path, body.qualname)
    }
    nearest = difflib.get_close_matches(body.code, codes, n=1, cutoff=0)
    if not nearest:
        return body.code
    lines = difflib.unified_diff(
        nearest[0].splitlines(keepends=True),
        body.code.splitlines(keepends=True),
        str(codes[nearest[0]].target),
        str(body.target),
    )
    return "".join(lines)
