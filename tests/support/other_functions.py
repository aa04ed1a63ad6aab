"""Another function of a library for one module: all other threads see the library as it is."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest


def set_in(monkeypatch: pytest.MonkeyPatch, module: ModuleType, library: str, **functions: object) -> None:
    """Let a module that has `import library` see these functions in it, until the test ends; what was set before stays."""
    monkeypatch.setattr(module, library, SimpleNamespace(**{**vars(getattr(module, library)), **functions}))
