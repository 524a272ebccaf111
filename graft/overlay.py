"""The overlay's files, and which of them serve a release."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graft.errors import OverlayError
from graft.releases import Range
from graft.releases import Target

OVERLAY = Path(__file__).resolve().parent.parent / "keras"
MARK = "# graft:"
KERAS_2 = Range("keras<3 | tf_keras")
KERAS_3 = Range("keras>=3")


@dataclass(frozen=True)
class OverlayFile:
    """One Python file of the overlay.

    Args:
        path: Its path in the overlay, from `keras/` on.
        source: Its text, without a first line that limits the file.
        new: Whether it is a whole new module.
        ranges: All of these must hold a release that the file serves.
    """

    path: str
    source: str
    new: bool
    ranges: tuple[Range, ...]

    @property
    def relative(self) -> str:
        """The path below the root package."""
        start = "keras/src/" if self.path.startswith("keras/src/") else "keras/"
        return self.path[len(start) :]

    @property
    def is_test(self) -> bool:
        return self.path.endswith("_test.py")

    def serves(self, target: Target) -> bool:
        return all(r.serves(target.name, target.version) for r in self.ranges)


def load(
    new: Collection[str], directory: Path = OVERLAY
) -> Iterator[OverlayFile]:
    """Reads every Python file below `directory`, in sorted order.

    Args:
        new: Paths, from `keras/` on, of modules that upstream does not have.
        directory: The overlay.
    """
    for path in sorted(directory.rglob("*.py")):
        relative = path.relative_to(directory).as_posix()
        if path.name == "__init__.py":
            raise OverlayError(
                f"keras/{relative}: the overlay holds no `__init__.py`.",
                remedy="give the file another name",
            )
        name = f"keras/{relative}"
        yield parse_file(name, path.read_text(encoding="utf-8"), name in new)


def parse_file(path: str, text: str, new: bool = False) -> OverlayFile:
    """Splits off a first line that limits the whole file to a range."""
    first, _, rest = text.partition("\n")
    ranges = []
    if first.startswith(MARK):
        ranges, text = [Range(first[len(MARK) :].strip())], rest.lstrip("\n")
    if path.startswith("keras/src/"):
        ranges.append(KERAS_3)
    elif not new:
        ranges.append(KERAS_2)
    return OverlayFile(path, text, new, tuple(ranges))
