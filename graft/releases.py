"""The release table, and the marks that limit what the overlay holds."""

from __future__ import annotations

import sys
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement
from packaging.version import InvalidVersion
from packaging.version import Version

from graft.errors import OverlayError
from graft.errors import UnknownPartError
from graft.errors import UnknownReleaseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE_PATH = Path(__file__).with_name("releases.toml")
DISTRIBUTIONS = ("keras", "tf_keras")


def normalised(name: str) -> str:
    """Returns a distribution's name as its wheels spell it."""
    return name.strip().lower().replace("-", "_")


class Range:
    """Releases, as in `keras>=2.12,<3 | tf_keras`.

    Args:
        text: Alternatives separated by `|`, each a distribution's name with
            optional PEP 440 specifiers.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.alternatives = [self._alternative(p) for p in text.split("|")]

    def _alternative(self, part: str) -> Requirement:
        try:
            requirement = Requirement(part.strip())
        except InvalidRequirement as error:
            raise self._malformed() from error
        if normalised(requirement.name) not in DISTRIBUTIONS:
            raise self._malformed()
        return requirement

    def _malformed(self) -> OverlayError:
        return OverlayError(
            "A range of releases cannot be read.",
            expected="names of "
            + " or ".join(DISTRIBUTIONS)
            + " with version specifiers, separated by `|`",
            received=repr(self.text),
        )

    def serves(self, name: str, version: str) -> bool:
        return any(
            normalised(requirement.name) == name
            and requirement.specifier.contains(version, prereleases=True)
            for requirement in self.alternatives
        )

    def admits(self, target: Target) -> bool:
        return self.serves(target.name, target.version)


class With:
    """Parts of the overlay, as in `with saving | stores`.

    Args:
        names: The parts; what they limit goes into a pull request of any.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = [name.strip() for name in names]

    def admits(self, target: Target) -> bool:
        for name in self.names:
            if name not in target.parts:
                raise unknown_part(name, target.parts)
        return any(target.parts[name] for name in self.names)


def parse_mark(text: str) -> Range | With:
    """Reads what a comment of the overlay says after `# graft:`."""
    keyword, _, names = text.strip().partition(" ")
    return With(names.split("|")) if keyword == "with" else Range(text.strip())


def unknown_part(name: str, parts: Iterable[str]) -> UnknownPartError:
    return UnknownPartError(
        "The overlay has no such part.",
        expected=" or ".join(parts),
        received=name,
        remedy="correct the name, or add it to `parts` in graft/releases.toml",
    )


@dataclass(frozen=True)
class Target:
    """What the overlay is grafted onto, and how names map to it.

    Args:
        name: The distribution, `keras` or `tf_keras`.
        version: Its version.
        root: The package that holds upstream's modules.
        api: The package that `import keras` means.
        moves: Path in the overlay to path upstream, both below the root.
        renames: Class name in the overlay to class name upstream.
        parts: The parts of the overlay, and whether each one is grafted.
    """

    name: str
    version: str
    root: str
    api: str
    moves: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def distribution(self) -> str:
        return f"{self.name}-{self.version}"

    def path(self, relative: str) -> str:
        """Maps a path below the overlay's root to the one upstream."""
        moved = self.moves.get(relative, relative)
        return f"{self.root.replace('.', '/')}/{moved}"


@dataclass(frozen=True)
class Release(Target):
    """A target that is published as a wheel."""

    sha256: str = ""
    python: str = ""
    tensorflow: str = ""


class Table:
    """The releases that the fork is built for."""

    def __init__(self, path: Path = TABLE_PATH) -> None:
        self.path = path
        self.data = tomllib.loads(path.read_text(encoding="utf-8"))

    @property
    def default(self) -> str:
        return self.data["default"]

    @property
    def new(self) -> frozenset[str]:
        """The overlay's files that upstream does not have."""
        return frozenset(self.data["new"])

    @property
    def parts(self) -> dict[str, list[str]]:
        """The overlay's files by the pull requests that they go into."""
        return self.data["parts"]

    def chosen(self, names: Collection[str] = ()) -> dict[str, bool]:
        """Says of each part whether it is grafted: all are, without names."""
        for name in names:
            if name not in self.parts:
                raise unknown_part(name, self.parts)
        return {name: not names or name in names for name in self.parts}

    def facts(self, name: str, version: str) -> dict[str, Any]:
        """Merges the facts of every range that holds the release."""
        merged: dict[str, Any] = {}
        for entry in self.data["facts"]:
            if not Range(entry["releases"]).serves(name, version):
                continue
            for key, value in entry.items():
                if isinstance(value, dict):
                    merged[key] = {**merged.get(key, {}), **value}
                elif key != "releases":
                    merged[key] = value
        merged.setdefault("api", merged.get("root"))
        merged["parts"] = self.chosen()
        return merged

    def target(self, name: str, version: str) -> Target:
        """Describes a source tree, which need not be a release."""
        facts = self.facts(name, version)
        keys = ("root", "api", "moves", "renames", "parts")
        known = {key: facts[key] for key in keys if key in facts}
        return Target(name=name, version=version, **known)

    def release(self, text: str) -> Release:
        """Looks up `name==version`."""
        name, version = parse(text)
        sha256 = self.data["wheels"].get(f"{name}=={version}")
        if sha256 is None:
            raise UnknownReleaseError(
                f"{name}=={version} is not in {self.path.name}.",
                expected="a release that `python -m graft releases` lists",
                received=text,
                remedy=f"`python -m graft review {name}=={version}` shows "
                "what has changed there; with --accept it adds the release",
            )
        return self.describe(name, version, sha256)

    def describe(self, name: str, version: str, sha256: str) -> Release:
        facts = self.facts(name, version)
        return Release(name=name, version=version, sha256=sha256, **facts)

    def __iter__(self) -> Iterator[Release]:
        for text in self.data["wheels"]:
            yield self.release(text)

    def add(self, release: Release) -> None:
        """Adds a row, below those of the same distribution's older releases."""
        if str(release) in self.data["wheels"]:
            return
        self.data["wheels"][str(release)] = release.sha256
        lines = self.path.read_text(encoding="utf-8").splitlines()
        older = [i for i, x in enumerate(lines) if _is_older(x, release)]
        row = f'"{release}" = "{release.sha256}"'
        lines.insert(older[-1] + 1 if older else len(lines), row)
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _is_older(row: str, release: Release) -> bool:
    name, _, rest = row.removeprefix('"').partition("==")
    if name != release.name:
        return False
    return Version(rest.partition('"')[0]) < Version(release.version)


def parse(text: str) -> tuple[str, str]:
    """Splits `name==version`, with the name as wheels spell it."""
    name, separator, version = text.partition("==")
    try:
        canonical = str(Version(version))
    except InvalidVersion:
        separator = ""
    if not separator or normalised(name) not in DISTRIBUTIONS:
        raise UnknownReleaseError(
            "That does not name a release.",
            expected="keras==VERSION or tf_keras==VERSION",
            received=text,
        )
    return normalised(name), canonical
