"""The overlay's files, and which of them serve a release."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

from graft.errors import OverlayError
from graft.releases import Range
from graft.releases import Table
from graft.releases import Target
from graft.releases import With
from graft.releases import parse_mark

OVERLAY = Path(__file__).resolve().parent.parent / "keras"
MARK = "# graft:"
TESTS = ("_test.py", "_test_utils.py")
KERAS_2 = Range("keras<3 | tf_keras")
KERAS_3 = Range("keras>=3")


@dataclass(frozen=True)
class OverlayFile:
    """One Python file of the overlay.

    Args:
        path: Its path in the overlay, from `keras/` on.
        source: Its text, without the first lines that limit the file.
        new: Whether it is a whole new module.
        marks: All of these must admit what the file is grafted onto.
    """

    path: str
    source: str
    new: bool
    marks: tuple[Range | With, ...] = ()

    @property
    def relative(self) -> str:
        """The path below the root package."""
        start = "keras/src/" if self.path.startswith("keras/src/") else "keras/"
        return self.path[len(start) :]

    @property
    def is_test(self) -> bool:
        return self.path.endswith(TESTS)

    def serves(self, target: Target) -> bool:
        return all(mark.admits(target) for mark in self.marks)


def load(table: Table, directory: Path = OVERLAY) -> Iterator[OverlayFile]:
    """Reads every Python file below `directory`, in sorted order.

    Args:
        table: Says which modules are new, and what the parts are.
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
        file = parse_file(name, path.read_text(encoding="utf-8"), table.new)
        yield replace(file, marks=(*file.marks, With(_parts(name, table))))


def parse_file(path: str, text: str, new: Collection[str] = ()) -> OverlayFile:
    """Splits off the first lines that limit the whole file."""
    marks: list[Range | With] = []
    while text.startswith(MARK):
        first, _, text = text.partition("\n")
        marks.append(parse_mark(first[len(MARK) :]))
    if path.startswith("keras/src/"):
        marks.append(KERAS_3)
    elif path not in new:
        marks.append(KERAS_2)
    return OverlayFile(path, text.lstrip("\n"), path in new, tuple(marks))


def _parts(path: str, table: Table) -> list[str]:
    parts = [name for name, paths in table.parts.items() if path in paths]
    if not parts:
        raise OverlayError(
            f"{path} is in no part.",
            expected=f"{' or '.join(table.parts)} lists it",
            remedy=f"add it under `parts` in {table.path.name}",
        )
    return parts
