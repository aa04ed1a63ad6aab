"""Import large libraries with the garbage collector off, and Gradio without the files that it writes for editors: it loads in half the time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


@contextmanager
def pausing_collector() -> Iterator[None]:
    """Pause it for a while. What was made meanwhile stays for the process's life and is never walked over again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()


@contextmanager
def skipping_stubs() -> Iterator[None]:
    """Takes a third off the import of gradio: for each of its components it parses the source, and brings a .pyi file beside it up to date."""
    sys.meta_path.insert(0, _ComponentFinder)
    try:
        yield
    finally:
        sys.meta_path.remove(_ComponentFinder)


class _ComponentFinder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "gradio.component_meta" else None
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = _WithoutStubs(spec.loader.name, spec.loader.path)
        return spec


class _WithoutStubs(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.create_or_modify_pyi = lambda *_: None  # type: ignore[attr-defined]
