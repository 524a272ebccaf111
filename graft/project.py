"""The overlay, the table and the reviews, put to use together."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path

from graft import bazel
from graft import overlay
from graft import upstream
from graft import wheel
from graft.checkout import Checkout
from graft.errors import GraftError
from graft.overlay import OverlayFile
from graft.releases import Release
from graft.releases import Table
from graft.releases import Target
from graft.review import Body
from graft.review import Reviewed
from graft.review import bodies
from graft.tree import Read
from graft.tree import graft_tree


@dataclass
class Project:
    """Everything that grafting a release takes.

    Args:
        directory: The overlay.
        table: The releases.
        reviewed: The bodies that the overlay was checked against.
        find_links: Folders to look for wheels in.
    """

    directory: Path = overlay.OVERLAY
    table: Table = field(default_factory=Table)
    reviewed: Reviewed = field(default_factory=Reviewed)
    find_links: Sequence[str] = ()

    def overlay(self, tests: bool = False) -> list[OverlayFile]:
        files = overlay.load(self.table, self.directory)
        return [file for file in files if tests or not file.is_test]

    def files(self, release: Release) -> dict[str, bytes]:
        return upstream.files(release, self.find_links)

    def changes(
        self, release: Release, files: dict[str, bytes], tests: bool = False
    ) -> dict[str, bytes]:
        """Returns what the overlay changes in or adds to a release."""
        chosen = self.overlay(tests)
        return graft_tree(files.get, release, chosen, self.reviewed.guard_for)

    def bodies(
        self,
        target: Target,
        errors: list[GraftError] | None = None,
        paths: Collection[str] = (),
    ) -> list[Body]:
        """Returns the upstream bodies that the overlay replaces.

        Args:
            target: What is replaced.
            errors: Takes what is wrong, see `review.bodies`.
            paths: The overlay's files to look at, all of them by default.
        """
        files = self.overlay(tests=isinstance(target, Checkout))
        files = [f for f in files if not paths or f.path in paths]
        return bodies(self._reader(target), target, files, errors)

    def _reader(self, target: Target) -> Read:
        if isinstance(target, Checkout):
            return target.read
        return self.files(target).get

    def test_sizes(self) -> dict[str, bazel.Attributes]:
        """Returns what the overlay's BUILD files say of its tests."""
        texts = [p.read_text("utf-8") for p in self.directory.rglob("BUILD")]
        return {n: a for t in texts for n, a in bazel.sizes(t).items()}

    def wheel(self, release: Release, directory: Path) -> Path:
        files = self.files(release)
        changes = self.changes(release, files)
        return wheel.write_wheel(release, files, changes, directory)

    def metadata(self, release: Release, directory: Path) -> str:
        """Writes the dist-info folder and returns its name."""
        info = wheel.info_files(release, self.files(release))
        for path, data in info.items():
            write(directory / path, data)
        return wheel.info_directory(release)


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
