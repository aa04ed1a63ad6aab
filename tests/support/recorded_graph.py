"""Stand in for torch.cuda's graphs on a processor: record every operation while capturing, and do the same ones again at each replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class RecordedGraph(TorchDispatchMode):
    """Holds operations with the tensors that they took and gave, as a captured graph holds addresses: no Python runs again."""

    made: ClassVar[list[RecordedGraph]] = []

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, ...]] = []
        self.replays = 0
        self.made.append(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, out))
        return out

    def replay(self) -> None:
        self.replays += 1
        for func, args, kwargs, out in self.done:
            again = func(*args, **kwargs)
            for new, old in zip(*((each if isinstance(each, tuple | list) else (each,)) for each in (again, out)), strict=True):
                if isinstance(old, torch.Tensor) and new.data_ptr() != old.data_ptr():
                    old.copy_(new)


class Stream:
    def wait_stream(self, _other: Stream) -> None: ...


@contextmanager
def capturing(graph: RecordedGraph, pool: object, stream: object, mode: str) -> Iterator[None]:
    with graph:
        yield
    graph.done[-1][-1].fill_(torch.nan)  # a capture computes nothing


def put(patch: pytest.MonkeyPatch) -> list[RecordedGraph]:
    """Put it in torch.cuda's place; return the graphs that will be captured."""
    RecordedGraph.made = []
    for name, value in {
        "CUDAGraph": RecordedGraph,
        "graph": capturing,
        "graph_pool_handle": object,
        "Stream": Stream,
        "current_stream": Stream,
        "stream": lambda _: nullcontext(),
    }.items():
        patch.setattr(torch.cuda, name, value)
    return RecordedGraph.made
