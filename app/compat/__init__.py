"""Detect what this machine can do and run attention on it. Torch is imported only when needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.compat.attention.seam import applied
    from app.compat.machine.hardware import Hardware, probe
    from app.compat.planning.public_face import Choice, decide
    from app.compat.planning.types import Need, Plan

__all__ = ["Choice", "Hardware", "Need", "Plan", "applied", "decide", "probe"]

_HOME = {
    "Hardware": "machine.hardware",
    "probe": "machine.hardware",
    "Choice": "planning.public_face",
    "Need": "planning.types",
    "Plan": "planning.types",
    "decide": "planning.public_face",
    "applied": "attention.seam",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"app.compat.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
