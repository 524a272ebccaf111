"""Maps the overlay's imports to a release, and adds them to a module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Union

import libcst as cst
from libcst.helpers import get_full_name_for_node

from graft.errors import OverlayError
from graft.releases import Target

Statement = Union[cst.SimpleStatementLine, cst.BaseCompoundStatement]
ImportNode = Union[cst.Import, cst.ImportFrom]


def dotted(name: str) -> cst.Attribute | cst.Name:
    """Builds the node of a dotted name."""
    node = cst.parse_expression(name)
    assert isinstance(node, (cst.Attribute, cst.Name))
    return node


def module_of(node: cst.ImportFrom) -> str:
    dots = "." * len(node.relative)
    return dots + (get_full_name_for_node(node.module or "") or "")


def relative_path(module: str) -> str | None:
    """Returns the path below the root of one of Keras's own modules."""
    for root in ("keras.src", "keras"):
        if module == root:
            return ""
        if module.startswith(root + "."):
            return module[len(root) + 1 :].replace(".", "/") + ".py"
    return None


def map_module(module: str, target: Target) -> str:
    """Maps a dotted module name of the overlay to the target's."""
    relative = relative_path(module)
    if relative is None:
        return module
    if not relative:
        return target.root
    return target.path(relative)[: -len(".py")].replace("/", ".")


def map_member(module: str, name: str, target: Target) -> tuple[str, str]:
    """Maps `from module import name`; `name` may be a moved module."""
    if relative_path(f"{module}.{name}") in target.moves:
        parent, _, last = map_module(f"{module}.{name}", target).rpartition(".")
        return parent, last
    return map_module(module, target), target.renames.get(name, name)


def bound_name(alias: cst.ImportAlias) -> str:
    if alias.asname:
        return cst.ensure_type(alias.asname.name, cst.Name).value
    return get_full_name_for_node(alias.name).split(".")[0]


def with_name(alias: cst.ImportAlias, name: str, bound: str) -> cst.ImportAlias:
    """Gives an alias another imported name and keeps the name it binds."""
    asname = None if name == bound else cst.AsName(name=cst.Name(bound))
    return alias.with_changes(name=dotted(name), asname=asname)


class ImportMapper(cst.CSTTransformer):
    """Rewrites imports of `keras` to the target's package and paths."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import:
        return updated_node.with_changes(
            names=[self._mapped(alias) for alias in updated_node.names]
        )

    def _mapped(self, alias: cst.ImportAlias) -> cst.ImportAlias:
        name = get_full_name_for_node(alias.name)
        if relative_path(name) is None:
            return alias
        if name == "keras":
            return with_name(alias, self.target.api, bound_name(alias))
        if alias.asname is None:
            raise OverlayError(
                f"`import {name}` binds the name of a package that differs "
                "between releases.",
                remedy="write `from PACKAGE import MODULE`",
            )
        return with_name(
            alias, map_module(name, self.target), bound_name(alias)
        )

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom:
        module = module_of(updated_node)
        if relative_path(module) is None:
            return updated_node
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node.with_changes(
                module=dotted(map_module(module, self.target))
            )
        pairs = [
            (alias, *map_member(module, alias.name.value, self.target))
            for alias in updated_node.names
        ]
        parents = {parent for _, parent, _ in pairs}
        if len(parents) > 1:
            raise OverlayError(
                f"One import from {module} maps to several modules.",
                received=", ".join(sorted(parents)),
                remedy="import one name a line",
            )
        return updated_node.with_changes(
            module=dotted(parents.pop()),
            names=[
                with_name(alias, name, bound_name(alias))
                for alias, _, name in pairs
            ],
        )


def import_in(statement: cst.CSTNode) -> ImportNode | None:
    """Returns the import that a statement consists of, if it is one."""
    if isinstance(statement, cst.SimpleStatementLine):
        node = statement.body[0]
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            return node
    return None


def bindings(node: ImportNode) -> Iterator[tuple[str, str]]:
    """Yields each name that an import binds, and what it binds it to."""
    if isinstance(node.names, cst.ImportStar):
        return
    for alias in node.names:
        name = get_full_name_for_node(alias.name)
        if isinstance(node, cst.ImportFrom):
            name = f"{module_of(node)}.{name}"
        elif alias.asname is None:
            name = name.split(".")[0]
        yield bound_name(alias), name


class _Bindings(cst.CSTVisitor):
    """Collects what a module's top level binds, also inside try and if."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.found.setdefault(node.name.value, "a definition")
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self.found.setdefault(node.name.value, "a definition")
        return False

    def visit_Import(self, node: cst.Import) -> None:
        self.found.update(bindings(node))

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        self.found.update(bindings(node))


def add_imports(
    module: cst.Module, nodes: Sequence[ImportNode], target: Target
) -> cst.Module:
    """Adds the imports that a module does not have yet."""
    visitor = _Bindings()
    module.visit(visitor)
    body = list(module.body)
    for node in nodes:
        for name, meaning in bindings(node):
            present = visitor.found.get(name)
            if present is None:
                _insert(body, node, target)
            elif present != meaning:
                raise OverlayError(
                    f"The overlay imports `{name}`, which upstream binds to "
                    "something else.",
                    expected=meaning,
                    received=present,
                    remedy="import it under another name",
                )
    return module.with_changes(body=body)


def section(node: ImportNode, target: Target) -> int:
    """Orders isort's sections."""
    package = _sort_key(node)[1].split(".")[0]
    if package == "__future__":
        return 0
    if package in sys.stdlib_module_names:
        return 1
    return 3 if package in ("keras", target.root.split(".")[0]) else 2


def _sort_key(node: ImportNode) -> tuple[bool, str, int, str]:
    """Orders a section: `import x` first; in a module, classes first."""
    name = ""
    if not isinstance(node.names, cst.ImportStar):
        name = get_full_name_for_node(node.names[0].name)
    if isinstance(node, cst.Import):
        return False, name.lower(), 0, ""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return True, module_of(node).lower(), kind, name.lower()


def _insert(body: list[Statement], node: ImportNode, target: Target) -> None:
    """Puts one import where isort would."""
    places = list(_import_places(body))
    rank = (section(node, target), _sort_key(node))
    same = [p for p in places if section(p[1], target) == rank[0]]
    before = [i for i, n in same if _sort_key(n) < rank[1]]
    line = cst.SimpleStatementLine(body=[node])
    if before:
        body.insert(before[-1] + 1, line)
    elif same:
        _insert_before(body, same[0][0], line, blank_between=False)
    else:
        _insert_section(body, places, line, rank[0], target)


def _insert_section(
    body: list[Statement],
    places: list[tuple[int, ImportNode]],
    line: cst.SimpleStatementLine,
    rank: int,
    target: Target,
) -> None:
    """Opens a section that the module does not have."""
    earlier = [i for i, n in places if section(n, target) < rank]
    if earlier:
        blank = cst.EmptyLine(indent=False)
        body.insert(earlier[-1] + 1, line.with_changes(leading_lines=[blank]))
        return
    first = places[0][0] if places else int(_starts_with_docstring(body))
    if first == len(body):
        body.append(line)
    else:
        _insert_before(body, first, line, blank_between=True)


def _insert_before(
    body: list[Statement],
    index: int,
    line: cst.SimpleStatementLine,
    blank_between: bool,
) -> None:
    """Inserts above a statement, below the blank lines that precede it."""
    lines = list(body[index].leading_lines)
    count = next((i for i, x in enumerate(lines) if x.comment), len(lines))
    blank = [cst.EmptyLine(indent=False)] if blank_between else []
    body[index] = body[index].with_changes(leading_lines=blank + lines[count:])
    body.insert(index, line.with_changes(leading_lines=lines[:count]))


def _starts_with_docstring(body: Sequence[Statement]) -> bool:
    return bool(body) and is_docstring(body[0])


def is_docstring(statement: cst.CSTNode) -> bool:
    """Tells whether a statement is a string and nothing else."""
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(
            statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString)
        )
    )


def _import_places(
    body: Sequence[Statement],
) -> Iterator[tuple[int, ImportNode]]:
    """Yields the imports that isort orders, with their positions."""
    for index, statement in enumerate(body):
        lines = statement.leading_lines
        if any(x.comment and "isort: off" in x.comment.value for x in lines):
            return
        node = import_in(statement)
        if node is not None:
            yield index, node
        elif index or not is_docstring(statement):
            return
