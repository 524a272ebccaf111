"""Grafts the whole overlay onto a source tree."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable

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

Read = Callable[[str], "bytes | None"]
GuardFor = Callable[[OverlayFile, Target], "Guard | None"]
NOTICE = "# This file was {} by the bfloat16 fork of Keras.\n"


def graft_tree(
    read: Read,
    target: Target,
    overlay: Iterable[OverlayFile],
    guard_for: GuardFor | None = None,
    tests_upstream: bool = False,
    notice: bool = True,
) -> dict[str, bytes]:
    """Returns the files that the overlay changes or adds.

    Args:
        read: Returns an upstream file's bytes, or None.
        target: What `read` reads from.
        overlay: The overlay's files.
        guard_for: Makes the guard of an overlay file.
        tests_upstream: Whether upstream's tests are there. Wheels lack them,
            and then the overlay's changes to them have nowhere to go.
        notice: Whether each file says that it was changed.
    """
    changes: dict[str, bytes] = {}
    for file in overlay:
        if not file.serves(target):
            continue
        path = target.path(file.relative)
        source = read(path)
        if file.is_test and not file.new and source is None:
            if not tests_upstream:
                continue
        text = _grafted(file, source, path, target, guard_for)
        if text is None:
            continue
        if notice:
            text = with_notice(text, "added" if file.new else "changed")
        changes[path] = text.encode()
    return changes


def _grafted(
    file: OverlayFile,
    source: bytes | None,
    path: str,
    target: Target,
    guard_for: GuardFor | None,
) -> str | None:
    """Returns the text of a grafted file, or None if nothing is grafted."""
    overlay = overlay_module(file, target)
    if file.new:
        code = overlay.code
        _check_new(file, source, code, path, target)
    elif not replacements(overlay, target, file.path)[0]:
        return None
    elif source is None:
        raise _no_module(file, path, target)
    else:
        guard = guard_for(file, target) if guard_for else None
        upstream = parse(source, f"{target}: {path}")
        code = graft(upstream, overlay, target, file.path, guard).code
    if MARK in code:
        raise OverlayError(
            f"{file.path} holds a `{MARK}` comment that limits nothing.",
            expected="one directly above a definition, or in the first line",
        )
    return code


def _check_new(
    file: OverlayFile,
    source: bytes | None,
    code: str,
    path: str,
    target: Target,
) -> None:
    if source is not None and source != code.encode():
        raise OverlayError(
            f"{file.path} is listed as new, but {target} has {path}.",
            remedy="rename it; or take it off `new` in graft/releases.toml "
            "if it replaces definitions",
        )


def _no_module(
    file: OverlayFile, path: str, target: Target
) -> MissingTargetError:
    return MissingTargetError(
        f"{file.path} has no upstream module in {target}.",
        expected=path,
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
