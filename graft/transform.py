"""Puts the overlay's definitions into an upstream module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

import libcst as cst

from graft.errors import MissingTargetError
from graft.errors import OverlappingRangesError
from graft.errors import OverlayError
from graft.errors import ParseError
from graft.imports import ImportMapper
from graft.imports import ImportNode
from graft.imports import Statement
from graft.imports import add_imports
from graft.imports import bindings
from graft.imports import import_in
from graft.imports import is_docstring
from graft.imports import section
from graft.overlay import MARK
from graft.overlay import OverlayFile
from graft.releases import Range
from graft.releases import Target
from graft.releases import With
from graft.releases import parse_mark

Definition = Union[cst.FunctionDef, cst.ClassDef]
Guard = Callable[[str, cst.FunctionDef, cst.FunctionDef], None]


@dataclass(frozen=True)
class Replacement:
    """A function of the overlay, under its qualified name there."""

    qualname: str
    node: cst.FunctionDef


# Nodes are immutable, and most files are the same in many releases.
@functools.lru_cache(maxsize=64)
def parse(source: str | bytes, path: str) -> cst.Module:
    try:
        return cst.parse_module(source)
    except (cst.ParserSyntaxError, UnicodeDecodeError) as error:
        raise ParseError(
            f"{path} cannot be parsed.", received=str(error)
        ) from error


def overlay_module(file: OverlayFile, target: Target) -> cst.Module:
    """Parses an overlay file as it reads for one target."""
    module = parse(file.source, file.path).visit(ImportMapper(target))
    body = _serving(module.body, target, file.path)
    return without_unused_imports(module.with_changes(body=body), module)


def _serving(
    body: Iterable[Statement], target: Target, where: str
) -> list[Statement]:
    """Keeps the statements that serve a target, without their marks."""
    kept: list[Statement] = []
    names: set[str] = set()
    blanks = 0
    for statement in body:
        marks, lines = _split_marks(statement.leading_lines)
        blanks = max(blanks, _blank_count(lines))
        if not all(mark.admits(target) for mark in marks):
            continue
        statement = _spaced(statement, lines, blanks, kept, target)
        blanks = 0
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            qualname = f"{where}: {statement.name.value}"
            _check_once(statement, names, qualname, target)
            statement = _serving_in_class(statement, target, qualname)
        kept.append(statement)
    return kept


def _blank_count(lines: Sequence[cst.EmptyLine]) -> int:
    return next((i for i, x in enumerate(lines) if x.comment), len(lines))


def _spaced(
    statement: Statement,
    lines: Sequence[cst.EmptyLine],
    blanks: int,
    before: Sequence[Statement],
    target: Target,
) -> Statement:
    """Leaves as many blank lines above as if no mark had been there."""
    nodes = [import_in(x) for x in (*before[-1:], statement)]
    if not before:
        blanks = 0
    elif all(nodes):
        blanks = int(section(nodes[0], target) != section(nodes[1], target))
    above = [cst.EmptyLine(indent=False)] * blanks
    return statement.with_changes(
        leading_lines=[*above, *lines[_blank_count(lines) :]]
    )


def _serving_in_class(
    node: Definition, target: Target, where: str
) -> Definition:
    if isinstance(node, cst.FunctionDef):
        return node
    if not isinstance(node.body, cst.IndentedBlock):
        return node
    body = _serving(node.body.body, target, where)
    return node.with_changes(body=node.body.with_changes(body=body))


def _check_once(
    node: Definition, names: set[str], qualname: str, target: Target
) -> None:
    """Rejects a second body; decorated ones may be a property's setter."""
    if node.name.value in names and not node.decorators:
        raise OverlappingRangesError(
            f"{qualname} has two bodies for {target}.",
            expected="disjoint ranges in the `# graft:` comments above them",
        )
    names.add(node.name.value)


def _split_marks(
    lines: Sequence[cst.EmptyLine],
) -> tuple[list[Range | With], list[cst.EmptyLine]]:
    marks, rest = [], []
    for line in lines:
        if line.comment and line.comment.value.startswith(MARK):
            marks.append(parse_mark(line.comment.value[len(MARK) :]))
        else:
            rest.append(line)
    return marks, rest


def replacements(
    module: cst.Module, target: Target, path: str
) -> tuple[dict[str, Replacement], list[ImportNode]]:
    """Sorts an overlay module into functions, by upstream name, and imports."""
    found: dict[str, Replacement] = {}
    imports: list[ImportNode] = []
    for index, statement in enumerate(module.body):
        node = import_in(statement)
        if node is not None:
            imports.append(node)
        elif isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            _collect(statement, target, path, "", "", found)
        elif index or not is_docstring(statement):
            raise _not_a_definition(module, statement, path)
    return found, imports


def _collect(
    node: Statement,
    target: Target,
    path: str,
    scope: str,
    upstream_scope: str,
    found: dict[str, Replacement],
) -> None:
    if not isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        raise _not_a_definition(cst.Module([]), node, path)
    qualname = scope + node.name.value
    if node.decorators:
        raise OverlayError(
            f"{path}: {qualname} has decorators.",
            expected="none, since upstream's are kept",
        )
    if isinstance(node, cst.FunctionDef):
        found[upstream_scope + node.name.value] = Replacement(qualname, node)
        return
    name = target.renames.get(node.name.value, node.name.value)
    for statement in node.body.body:
        _collect(
            statement,
            target,
            path,
            f"{qualname}.",
            f"{upstream_scope}{name}.",
            found,
        )


def _not_a_definition(
    module: cst.Module, statement: cst.CSTNode, path: str
) -> OverlayError:
    return OverlayError(
        f"{path} replaces upstream definitions but holds something else.",
        expected="functions, classes of methods, imports, a module docstring",
        received=module.code_for_node(statement).strip().split("\n")[0],
        remedy="put new code into a module that graft/releases.toml lists "
        "under `new`",
    )


def graft(
    upstream: cst.Module,
    overlay: cst.Module,
    target: Target,
    path: str,
    guard: Guard | None = None,
) -> cst.Module:
    """Returns the upstream module with the overlay's definitions in it.

    Args:
        upstream: The module to change.
        overlay: What `overlay_module` returns.
        target: What the upstream module belongs to.
        path: The overlay file's path, for messages.
        guard: Called with each definition's name, upstream node and overlay
            node before it is replaced.
    """
    found, imports = replacements(overlay, target, path)
    targets = definitions(upstream.body, found)
    _check_targets(targets, found, target, path)
    if guard:
        for name, replacement in found.items():
            guard(replacement.qualname, targets[name][0], replacement.node)
    body = _replaced(upstream.body, found, "")
    used = _names(replacement.node for replacement in found.values())
    needed = [n for n in imports if any(b in used for b, _ in bindings(n))]
    return add_imports(upstream.with_changes(body=body), needed, target)


def definitions(
    body: Sequence[Statement], names: Iterable[str], scope: str = ""
) -> dict[str, list[cst.FunctionDef]]:
    """Finds functions and methods by qualified name."""
    found: dict[str, list[cst.FunctionDef]] = {}
    for statement in body:
        if isinstance(statement, cst.FunctionDef):
            name = scope + statement.name.value
            if name in names:
                found.setdefault(name, []).append(statement)
        elif isinstance(statement, cst.ClassDef):
            inner = f"{scope}{statement.name.value}."
            if any(name.startswith(inner) for name in names):
                nested = definitions(statement.body.body, names, inner)
                for name, nodes in nested.items():
                    found.setdefault(name, []).extend(nodes)
    return found


def _check_targets(
    targets: Mapping[str, Sequence[cst.FunctionDef]],
    found: Mapping[str, Replacement],
    target: Target,
    path: str,
) -> None:
    for name, replacement in found.items():
        count = len(targets.get(name, ()))
        if count != 1:
            raise MissingTargetError(
                f"{path}: {replacement.qualname} has no upstream definition "
                f"of its own in {target}.",
                expected=f"one `{name}` in {target.path(relative_of(path))}",
                received=str(count),
                remedy="limit it with a `# graft: RANGE` comment above it, "
                "or add a rename to graft/releases.toml",
            )


def relative_of(path: str) -> str:
    return OverlayFile(path, "", False).relative


def _replaced(
    body: Sequence[Statement], found: Mapping[str, Replacement], scope: str
) -> list[Statement]:
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, cst.FunctionDef):
            replacement = found.get(scope + statement.name.value)
            if replacement:
                statement = merged(statement, replacement.node)
        elif isinstance(statement, cst.ClassDef):
            inner = f"{scope}{statement.name.value}."
            if any(name.startswith(inner) for name in found):
                nested = _replaced(statement.body.body, found, inner)
                statement = statement.with_changes(
                    body=statement.body.with_changes(body=nested)
                )
        result.append(statement)
    return result


def merged(
    upstream: cst.FunctionDef, replacement: cst.FunctionDef
) -> cst.FunctionDef:
    """Keeps upstream's decorators, the comments above, and its docstring."""
    body = replacement.body
    kept = [s for s in upstream.body.body[:1] if is_docstring(s)]
    if kept and not is_docstring(body.body[0]):
        body = body.with_changes(body=[*kept, *body.body])
    return replacement.with_changes(
        decorators=upstream.decorators,
        leading_lines=upstream.leading_lines,
        lines_after_decorators=upstream.lines_after_decorators,
        body=body,
    )


def without_unused_imports(
    module: cst.Module, before: cst.Module
) -> cst.Module:
    """Drops the imports that only what is no longer there needed."""
    unused = _names(before.body) - _names(module.body)
    body: list[Statement] = []
    orphaned: list[cst.EmptyLine] = []
    for statement in module.body:
        node = import_in(statement)
        if node and all(name in unused for name, _ in bindings(node)):
            orphaned += statement.leading_lines
            continue
        lines = _joined(orphaned, statement.leading_lines)
        body.append(statement.with_changes(leading_lines=lines))
        orphaned = []
    return module.with_changes(body=body)


def _joined(
    orphaned: Sequence[cst.EmptyLine], lines: Sequence[cst.EmptyLine]
) -> list[cst.EmptyLine]:
    """Keeps the comments above what is gone, but not its blank lines twice."""
    starts_blank = bool(lines) and lines[0].comment is None
    if starts_blank and not any(line.comment for line in orphaned):
        return list(lines)
    return [*orphaned, *lines]


def _names(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """Returns the names that are used, other than by imports."""
    visitor = _UsedNames()
    for node in nodes:
        node.visit(visitor)
    return visitor.found


class _UsedNames(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False
