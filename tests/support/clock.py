"""Another time for one module: the `time` of all threads stays as it is."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest


def set_clock(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: object) -> None:
    """Let a module that has `time` see these functions in it, until the test ends; what was set before stays."""
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(module.time), **functions}))
