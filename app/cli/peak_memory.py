"""Measure peak memory from outside torch, so that scratch memory of any library counts; needs a process of its own."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import psutil


class Peak:
    """Peak memory since construction: on a CPU from the system's record of this process, else from the allocator."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._done = threading.Event()
        self._highest = 0
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
        self._before = self._now()
        if device == "mps":
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    def extra(self) -> int:
        """Return the peak, and end watching."""
        self._done.set()
        if self.device == "mps":
            self._watcher.join()
        return self.so_far()

    def so_far(self) -> int:
        if self.device == "cuda":
            import torch

            return int(torch.cuda.max_memory_allocated()) - self._before
        if self.device == "mps":
            return max(self._highest, self._now()) - self._before
        return highest_bytes() - self._before

    def _now(self) -> int:
        import torch

        if self.device == "cuda":
            return int(torch.cuda.memory_allocated())
        if self.device == "mps":
            return int(torch.mps.driver_allocated_memory())
        return int(psutil.Process().memory_info().rss)

    def _watch(self) -> None:
        """Sample Metal's memory, because Metal records no peak."""
        while not self._done.wait(0.001):
            self._highest = max(self._highest, self._now())


def own_bytes() -> int:
    """Return the memory that is this process's alone, without the pages of files, which the system takes back when it needs them."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text("ascii", "replace")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")) * 1024
    return int(psutil.Process().memory_full_info().uss)


def highest_bytes() -> int:
    """Return the peak memory of this process, as recorded by the system."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    if sys.platform == "linux":
        # getrusage would include the parent's peak, which a child inherits through fork and exec.
        status = Path("/proc/self/status").read_text("ascii", "replace")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
