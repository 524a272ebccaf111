"""Fingerprints of function bodies, the same on every Python."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator

import libcst as cst

from graft.imports import is_docstring

# What a formatter may change. Brackets and commas go too, since the nodes
# themselves say what belongs together; only `x[a,]` needs its comma.
_IGNORED = (
    cst.BaseParenthesizableWhitespace,
    cst.Comma,
    cst.Comment,
    cst.Decorator,
    cst.EmptyLine,
    cst.LeftParen,
    cst.Newline,
    cst.RightParen,
    cst.Semicolon,
    cst.TrailingWhitespace,
)
_LAYOUT_FIELDS = ("end", "indent")
_ROOT = re.compile(r"\b(tf_keras|keras)(\.src)?\b")


def fingerprint(node: cst.FunctionDef) -> str:
    """Returns 16 hexadecimal digits that stand for what a function does.

    Decorators, docstring, comments, layout, quotes and the name of the root
    package do not count.
    """
    body = list(node.body.body)
    if body and is_docstring(body[0]):
        body = body[1:]
    bare = node.with_changes(body=node.body.with_changes(body=body))
    dump = "".join(_dump(bare))
    return hashlib.sha256(dump.encode()).hexdigest()[:16]


def _dump(node: cst.CSTNode) -> Iterator[str]:
    node = _without_source_package(node)
    yield f"{type(node).__name__}("
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if field.name not in _LAYOUT_FIELDS:
            parts = "".join(_dump_value(node, value))
            if parts:
                yield f"{field.name}={parts};"
    yield ")"


def _dump_value(node: cst.CSTNode, value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield ascii(_normalised(node, value))
    elif isinstance(value, cst.Comma) and isinstance(
        node, cst.SubscriptElement
    ):
        yield ","
    elif isinstance(value, cst.CSTNode) and not isinstance(value, _IGNORED):
        yield from _dump(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _dump_value(node, item)


def _without_source_package(node: cst.CSTNode) -> cst.CSTNode:
    """Turns `keras.src` and `tf_keras.src` into their first part."""
    if isinstance(node, cst.Attribute) and node.attr.value == "src":
        if isinstance(node.value, cst.Name):
            if node.value.value in ("keras", "tf_keras"):
                return node.value
    return node


def _normalised(node: cst.CSTNode, text: str) -> str:
    if isinstance(node, cst.SimpleString):
        text = f"{node.prefix.lower()}:{node.raw_value}"
    elif isinstance(node, cst.FormattedString):
        text = text.rstrip("\"'").lower()
    text = text.replace("\\'", "'").replace('\\"', '"')
    return _ROOT.sub("keras", text).replace("TF-Keras", "Keras")
