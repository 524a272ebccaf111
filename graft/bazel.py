"""Declares the change in the BUILD files of a checkout that has them.

A new module gets a rule of its own, and each rule depends on what the change
makes its sources import. All else in a BUILD file stays as it is.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from graft.errors import CheckoutError
from graft.errors import OverlayError

# The libraries, by the name that they are imported under.
LIBRARIES = {
    "absl": "@pypi//absl_py",
    "h5py": "@pypi//h5py",
    "ml_dtypes": "@pypi//ml_dtypes",
    "numpy": "@pypi//numpy",
    "tensorflow": "//:tf_nightly_with_deps",
}
LIBRARY = "py_library"
TEST = "tf_py_test"

Attributes = Mapping[str, str]


@dataclass(frozen=True)
class Rule:
    """A target of a BUILD file.

    Args:
        package: The folder of the BUILD file.
        node: The call that declares it.
    """

    package: str
    node: ast.Call

    @property
    def label(self) -> str:
        return f"//{self.package}:{self.attribute('name')}"

    def keyword(self, name: str) -> ast.expr | None:
        found = (k.value for k in self.node.keywords if k.arg == name)
        return next(found, None)

    def attribute(self, name: str) -> str | int | None:
        value = self.keyword(name)
        return value.value if isinstance(value, ast.Constant) else None

    def strings(self, name: str) -> list[str]:
        value = self.keyword(name)
        elements = value.elts if isinstance(value, ast.List) else []
        return [x.value for x in elements if isinstance(x, ast.Constant)]

    @property
    def files(self) -> list[str]:
        names = self.strings("srcs")
        return [f"{self.package}/{x}" for x in names if x.endswith(".py")]

    @property
    def edges(self) -> set[str]:
        """What it depends on; a source may be a target, too."""
        names = self.strings("deps") + self.strings("srcs")
        return {
            absolute(x, self.package) for x in names if not x.endswith(".py")
        }


def absolute(label: str, package: str) -> str:
    """Writes a label in full, so that equal ones compare equal."""
    if label.startswith(":"):
        return f"//{package}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rpartition('/')[2]}"
    return label


def relative(label: str, package: str) -> str:
    """Writes a full label as short as a BUILD file does."""
    folder, _, name = label.partition(":")
    if folder == f"//{package}":
        return f":{name}"
    return folder if folder.rpartition("/")[2] == name else label


def rules(text: str, package: str) -> Iterator[Rule]:
    for statement in ast.parse(text).body:
        node = getattr(statement, "value", None)
        if isinstance(node, ast.Call):
            rule = Rule(package, node)
            if rule.attribute("name"):
                yield rule


class BuildFiles:
    """The BUILD files of a checkout.

    Args:
        texts: Each file's text by its path.
        root: The package that holds the sources, for example `tf_keras`.
    """

    def __init__(self, texts: Mapping[str, str], root: str) -> None:
        self.texts = {
            str(PurePosixPath(path).parent): text
            for path, text in texts.items()
        }
        self.root = root
        self._read()

    def _read(self) -> None:
        found = [r for p, t in self.texts.items() for r in rules(t, p)]
        self.edges = {rule.label: rule.edges for rule in found}
        self.owners: dict[str, str] = {}
        for rule in found:
            for path in rule.files:
                self.owners.setdefault(path, rule.label)

    def declare(self, path: str, tests: Mapping[str, Attributes]) -> None:
        """Gives a source that no rule has a rule of its own."""
        if path in self.owners:
            return
        source = PurePosixPath(path)
        package = next(str(p) for p in source.parents if str(p) in self.texts)
        kind = TEST if path.endswith("_test.py") else LIBRARY
        if f'"{kind}"' not in self.texts[package]:
            raise CheckoutError(
                f"{package}/BUILD does not load the `{kind}` that {path} needs."
            )
        if kind == TEST and source.stem not in tests:
            raise OverlayError(
                f"Nothing says how large {source.stem} is.",
                remedy="declare it in the BUILD file of its overlay folder",
            )
        self.texts[package] += new_rule(
            kind,
            source.stem,
            source.relative_to(package).as_posix(),
            tests.get(source.stem, {}),
        )
        self._read()

    def depend(self, path: str, imported: set[tuple[str, str]]) -> None:
        """Lets the rule of a source depend on what the source imports."""
        owner = self.owners.get(path)
        if owner is None:
            raise CheckoutError(f"No BUILD file has a rule for {path}.")
        labels = {self.label(*names) for names in imported}
        package, _, name = owner[2:].partition(":")
        for label in sorted(self._needed(labels - {owner, ""})):
            if owner in self.reached(label):
                raise CheckoutError(
                    f"{path} imports what {label} has, which depends on it.",
                    remedy="import it where it is used, as upstream does",
                )
            entry = relative(label, package)
            self.texts[package] = with_dependency(
                self.texts[package], package, name, entry
            )
        self._read()

    def label(self, module: str, name: str) -> str:
        """Finds the rule of what `from module import name` imports."""
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            return ""
        if top in LIBRARIES:
            return LIBRARIES[top]
        for dotted in (f"{module}.{name}", module):
            path = dotted.replace(".", "/")
            for file in (f"{path}.py", f"{path}/__init__.py"):
                if file in self.owners:
                    return self.owners[file]
        raise CheckoutError(
            f"No BUILD file has a rule for {module}.",
            remedy="if it is a library, add it to graft/bazel.py",
        )

    def _needed(self, labels: set[str]) -> set[str]:
        """Drops what comes with the whole package, if that is there."""
        whole = f"//{self.root}:{self.root}"
        if whole not in labels:
            return labels
        covered = self.reached(whole) - set(LIBRARIES.values()) - {whole}
        return labels - covered

    def reached(self, label: str) -> set[str]:
        found: set[str] = set()
        waiting = [label]
        while waiting:
            label = waiting.pop()
            if label not in found:
                found.add(label)
                waiting += self.edges.get(label, ())
        return found


def new_rule(kind: str, name: str, source: str, attributes: Attributes) -> str:
    """Writes a rule without dependencies, in the order of `buildifier`."""
    values = {
        "name": f'"{name}"',
        "size": attributes.get("size"),
        "srcs": f'["{source}"]',
        "shard_count": attributes.get("shard_count"),
    }
    lines = [f"    {k} = {v},\n" for k, v in values.items() if v]
    return f"\n{kind}(\n{''.join(lines)})\n"


def sizes(text: str) -> dict[str, Attributes]:
    """Reads size and number of shards of the tests of the overlay."""
    return {
        rule.attribute("name"): {
            name: ast.unparse(rule.keyword(name)).replace("'", '"')
            for name in ("size", "shard_count")
            if rule.keyword(name)
        }
        for rule in rules(text, "")
        if rule.attribute("size")
    }


def with_dependency(text: str, package: str, name: str, entry: str) -> str:
    """Adds an entry to the `deps` of a rule, in the order of `buildifier`."""
    (rule,) = (r for r in rules(text, package) if r.attribute("name") == name)
    present = [absolute(x, package) for x in rule.strings("deps")]
    if absolute(entry, package) in present:
        return text
    lines = text.splitlines(keepends=True)
    _insert(lines, rule, _line(text, entry), sort_key(entry))
    return "".join(lines)


def _insert(
    lines: list[str], rule: Rule, line: str, key: tuple[int, list[str]]
) -> None:
    node = rule.keyword("deps")
    if node is None:
        lines.insert(rule.node.end_lineno - 1, f"    deps = [\n{line}    ],\n")
        return
    if not isinstance(node, ast.List) or node.lineno == node.end_lineno:
        raise CheckoutError(
            f"The `deps` of {rule.label} are not a list of one entry a line."
        )
    later = [x.lineno for x in node.elts if sort_key(x.value) > key]
    lines.insert(min(later, default=node.end_lineno) - 1, line)


def _line(text: str, entry: str) -> str:
    """Writes an entry as the file does elsewhere, with the comment there."""
    same = re.search(rf'(?m)^ {{8}}"{re.escape(entry)}",.*\n', text)
    return same[0] if same else f'        "{entry}",\n'


def sort_key(label: str) -> tuple[int, list[str]]:
    """Orders labels as `buildifier` does."""
    kinds = (":", "//", "@")
    kind = next((i for i, x in enumerate(kinds) if label.startswith(x)), -1)
    return kind, re.split("[.:]", label)


def imports(source: str) -> set[tuple[str, str]]:
    """Returns what a module imports when it is imported itself."""
    found = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "", alias.name) for alias in node.names}
        elif not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)
    return found


def build_changes(
    changes: Mapping[str, bytes],
    read: Callable[[str], "bytes | None"],
    texts: Mapping[str, str],
    root: str,
    tests: Mapping[str, Attributes],
) -> dict[str, bytes]:
    """Returns the BUILD files that a change needs.

    Args:
        changes: The Python files of the change.
        read: Returns a file of the checkout as it was, or None.
        texts: The BUILD files below the root, by path.
        root: The package that holds the sources.
        tests: Size and number of shards of new tests.
    """
    if not texts:
        return {}
    files = BuildFiles(texts, root)
    for path in sorted(changes):
        files.declare(path, tests)
    # Tests come last, when it is known what the whole package has.
    for path in sorted(changes, key=lambda x: (x.endswith("_test.py"), x)):
        before = imports((read(path) or b"").decode())
        files.depend(path, imports(changes[path].decode()) - before)
    after = {f"{package}/BUILD": t for package, t in files.texts.items()}
    return {p: t.encode() for p, t in after.items() if t != texts[p]}
