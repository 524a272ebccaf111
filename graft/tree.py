"""Grafts the whole overlay onto a source tree."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterable

import libcst as cst

from graft.errors import MissingTargetError
from graft.errors import OverlayError
from graft.overlay import MARK
from graft.overlay import OverlayFile
from graft.releases import Target
from graft.transform import Guard
from graft.transform import graft
from graft.transform import overlay_module
from graft.transform import parse
from graft.transform import replacements
from graft.transform import without_unused_imports

Read = Callable[[str], "bytes | None"]
GuardFor = Callable[[OverlayFile, Target], "Guard | None"]
NOTICE = "# This file was {} by the bfloat16 fork of Keras.\n"


def graft_tree(
    read: Read,
    target: Target,
    overlay: Iterable[OverlayFile],
    guard_for: GuardFor | None = None,
    pull_request: bool = False,
) -> dict[str, bytes]:
    """Returns the files that the overlay changes or adds.

    Args:
        read: Returns an upstream file's bytes, or None.
        target: What `read` reads from.
        overlay: The overlay's files.
        guard_for: Makes the guard of an overlay file.
        pull_request: Whether the result goes to upstream: then upstream's
            tests are there, its linter runs, and no file says that it was
            changed.
    """
    changes: dict[str, bytes] = {}
    for file in overlay:
        # Few wheels have upstream's tests, and those do not matter there.
        unwanted = file.is_test and not file.new and not pull_request
        if unwanted or not file.serves(target):
            continue
        path = target.path(file.relative)
        source = read(path)
        module = grafted(file, source, target, guard_for)
        if module is None:
            continue
        if pull_request and source is not None:
            module = without_unused_imports(module, parse(source, path))
        code = module.code
        _check_marks(file, code)
        if not pull_request:
            code = with_notice(code, "added" if file.new else "changed")
        elif file.new:
            code = _licence(read, target) + code
        changes[path] = code.encode()
        if file.new and source is not None:
            _check_new(file, source.decode(), target)
    return changes


def grafted(
    file: OverlayFile,
    source: bytes | None,
    target: Target,
    guard_for: GuardFor | None,
) -> cst.Module | None:
    """Returns a grafted module, or None if nothing is grafted there."""
    overlay = overlay_module(file, target)
    if file.new:
        return overlay
    if not replacements(overlay, target, file.path)[0]:
        return None
    if source is None:
        raise _no_module(file, target)
    guard = guard_for(file, target) if guard_for else None
    upstream = parse(source, f"{target}: {target.path(file.relative)}")
    return graft(upstream, overlay, target, file.path, guard)


def _check_marks(file: OverlayFile, code: str) -> None:
    if MARK in code:
        raise OverlayError(
            f"{file.path} holds a `{MARK}` comment that limits nothing.",
            expected="one directly above a definition, or in the first line",
        )


def _licence(read: Read, target: Target) -> str:
    """Returns the comment that upstream's own files begin with, if any."""
    text = (read(target.path("__init__.py")) or b"").decode()
    lines = text.splitlines(keepends=True)
    comment = "".join(itertools.takewhile(lambda x: x.startswith("#"), lines))
    return comment if "License" in comment else ""


def _check_new(file: OverlayFile, source: str, target: Target) -> None:
    """Accepts a file that has no other parts than those to be grafted."""
    chosen = [name for name, is_chosen in target.parts.items() if is_chosen]
    for some in itertools.product((False, True), repeat=len(chosen)):
        parts = {
            **dict.fromkeys(target.parts, False),
            **dict(zip(chosen, some)),
        }
        module = overlay_module(file, dataclasses.replace(target, parts=parts))
        if source.endswith(module.code):
            return
    raise OverlayError(
        f"{file.path} is listed as new, but {target} has another one: "
        f"{target.path(file.relative)}.",
        remedy="if another part of this change is there already, name it with "
        "`--only` as well; else rename the file, or take it off `new` in "
        "graft/releases.toml if it replaces definitions",
    )


def _no_module(file: OverlayFile, target: Target) -> MissingTargetError:
    return MissingTargetError(
        f"{file.path} has no upstream module in {target}.",
        expected=target.path(file.relative),
        remedy="in graft/releases.toml add a move, or list a new module under "
        "`new`; or limit the file with `# graft: RANGE` in its first line",
    )


def with_notice(text: str, verb: str) -> str:
    """Adds the line that Apache-2.0 section 4b asks for."""
    lines = text.splitlines(keepends=True)
    count = next(
        (i for i, x in enumerate(lines) if not x.startswith("#")), len(lines)
    )
    rules = [i for i in range(count) if lines[i].startswith("# =====")]
    position = rules[0] + 1 if rules else count
    lines.insert(position, NOTICE.format(verb))
    return "".join(lines)
