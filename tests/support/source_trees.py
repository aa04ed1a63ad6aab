"""Parse Python source with no garbage collected meanwhile: Python 3.11 counts the depth of all trees in one number, so that a finaliser whose
fault is printed (which parses, too) or that lets another thread run would end it with a SystemError (python/cpython#106905)."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


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
    """A file's tree, parsed once for all tests of a process."""
    return parse_source(path.read_text("utf-8"))
