"""Parse Python source with no garbage collected meanwhile: Python 3.11 counts the depth of all trees in one number, so that a finaliser whose
fault is printed (which parses, too) or that lets another thread run would end it with a SystemError (python/cpython#106905)."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from app.base.fast_import import pausing_collector


def parse_source(source: str | bytes, feature_version: tuple[int, int] | None = None) -> ast.Module:
    """Parse it as ast.parse would."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source, feature_version=feature_version)
    finally:
        if collects:
            gc.enable()


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's tree, parsed once for all tests of a process. Collections of garbage never walk over it: those of all files are a million objects,
    a third of a second each time, and whichever test came after them in this process paid for it."""
    _collect_once()
    with pausing_collector():
        return parse_source(path.read_text("utf-8"))


def walk(node: ast.AST) -> Iterable[ast.AST]:
    """As ast.walk, which takes most of a second for all files of app/: the nodes of a whole file, which a dozen tests look at, are listed once."""
    return _list_nodes(node) if isinstance(node, ast.Module) else ast.walk(node)


@cache
def _list_nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    _collect_once()
    with pausing_collector():
        nodes: list[ast.AST] = [tree]
        for node in nodes:  # it grows meanwhile; in the order of ast.walk, whose generators take twice as long
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    nodes.append(value)
                elif isinstance(value, list):
                    nodes += [each for each in value if isinstance(each, ast.AST)]
        return tuple(nodes)


@cache
def _collect_once() -> None:
    """What is garbage when the pause ends would stay for good, with whatever an earlier test left in it."""
    gc.collect()
