"""A git checkout of upstream."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from graft.errors import CheckoutError
from graft.releases import Table
from graft.releases import Target

# The file that gives a version away: distribution, root package, the package
# that `import keras` means. The layout of keras 3 has to be tried first.
LAYOUTS = {
    "tf_keras/__init__.py": ("tf_keras", "tf_keras", "tf_keras"),
    "keras/src/version.py": ("keras", "keras.src", "keras"),
    "keras/__init__.py": ("keras", "keras", "keras"),
}
VERSION = re.compile(r"(?m)^__version__ = \"(.+)\"")


@dataclass(frozen=True)
class Checkout(Target):
    """A target that is a working tree; the last commit is what it holds."""

    directory: Path = Path()

    def __str__(self) -> str:
        return str(self.directory)

    def read(self, path: str) -> bytes | None:
        """Returns a file as the last commit has it."""
        run = git(self.directory, "cat-file", "blob", f"HEAD:{path}")
        return None if run.returncode else run.stdout

    def current(self, path: str) -> bytes | None:
        file = self.directory / path
        return file.read_bytes() if file.is_file() else None

    def changed(self) -> set[str]:
        """Returns the tracked files that differ from the last commit."""
        words = ("diff", "--name-only", "--no-renames", "-z", "HEAD")
        return set(split(git(self.directory, *words).stdout))

    def build_files(self) -> dict[str, str]:
        """Returns the text of each BUILD file below the root package."""
        root = self.root.replace(".", "/")
        words = ("ls-tree", "-r", "-z", "--name-only", "HEAD", f"{root}/")
        paths = split(git(self.directory, *words).stdout)
        chosen = [path for path in paths if path.endswith("/BUILD")]
        return {path: (self.read(path) or b"").decode() for path in chosen}


def detect(
    directory: Path, table: Table, only: Collection[str] = ()
) -> Checkout:
    """Finds out from its layout what a checkout is.

    Args:
        directory: Its top folder.
        table: Says what is known of such a version.
        only: The parts of the overlay to graft, all of them by default.
    """
    parts = table.chosen(only)
    top = git(directory, "rev-parse", "--show-toplevel").stdout.decode()
    if top and Path(top.rstrip("\n")) == directory.resolve():
        for path, (name, root, api) in LAYOUTS.items():
            found = VERSION.search(_committed(directory, path))
            if found:
                facts = dataclasses.asdict(table.target(name, found[1]))
                facts.update(root=root, api=api, parts=parts)
                return Checkout(**facts, directory=directory)
    raise CheckoutError(
        f"{directory} is no git checkout of Keras.",
        expected="the top folder of a clone of keras-team/keras or "
        "keras-team/tf-keras",
    )


def _committed(directory: Path, path: str) -> str:
    return git(directory, "cat-file", "blob", f"HEAD:{path}").stdout.decode()


def git(directory: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "-C", str(directory), *words], capture_output=True
    )


def split(output: bytes) -> list[str]:
    return [path for path in output.decode().split("\0") if path]
