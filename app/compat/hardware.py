"""Hardware: facts about a machine, no opinions; probe() is the only place that asks torch or the system about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["cpu", "cuda", "mps", "rocm", "directml"]


@dataclass(frozen=True, slots=True)
class Hardware:
    kind: Kind = "cpu"
    name: str = "CPU"
    capability: tuple[int, int] | None = None
    """CUDA compute capability, None elsewhere."""
    memory_bytes: int = 0
    """What the device has: the card's own memory, or the memory it shares with everything else."""
    free_bytes: int = 0
    unified: bool = True
    """True where the device and the processor share one memory."""
    ram_bytes: int = 0
    system: Literal["linux", "macos", "windows"] = "linux"
    system_version: str = ""
    """On a Mac the version quirks ask for: "14.5"."""
    processor: str = ""
    """The processor's architecture: arm64, x86_64."""
    cores: int = 1
    driver: str = ""
    torch: str = ""
    arch_list: tuple[str, ...] = ()
    """What this torch was compiled for: sm_75, sm_80..."""
    pretended: str = ""
    """The name of the pretended machine, empty on the real one."""
