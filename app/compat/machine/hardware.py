"""Hardware: facts about a machine, without judgement; only probe() asks torch or the system for them."""

from __future__ import annotations

import contextlib
import importlib.util
import platform
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal

from app.base.graphics_cards import find_names, is_separate
from app.base.macos_version import read_macos_version
from app.compat.machine.free_memory import read_available_bytes
from app.compat.machine.processor import multiplies_bfloat16

if TYPE_CHECKING:
    from app.compat.machine.meter import Reading

Kind = Literal["cpu", "cuda", "mps", "rocm", "directml"]
System = Literal["linux", "macos", "windows"]
PACKAGES: Final = ("bitsandbytes", "torchao", "gptqmodel", "gguf")
"""These optional packages read quantised weights."""


@dataclass(frozen=True, slots=True)
class Hardware:
    kind: Kind = "cpu"
    name: str = "CPU"
    capability: tuple[int, int] | None = None
    """Only CUDA cards have a compute capability; it is None elsewhere."""
    memory_bytes: int = 0
    """It counts the card's own memory, or the memory that the device shares with everything else."""
    free_bytes: int = 0
    unified: bool = True
    """True: the device and the processor share one memory."""
    ram_bytes: int = 0
    system: System = "linux"
    system_version: str = ""
    """On a Mac it is the version that quirks compare, such as "14.5"."""
    processor: str = ""
    """The processor's architecture is named so, such as arm64 or x86_64."""
    cores: int = 1
    driver: str = ""
    torch: str = ""
    arch_list: tuple[str, ...] = ()
    """This torch was compiled for these architectures, such as sm_75 and sm_80."""
    cudnn: str = ""
    """This version of cuDNN is loaded, such as 9.10, which may not be torch's own."""
    gfx: str = ""
    """An AMD card has this architecture, such as gfx1030."""
    pretended: str = ""
    """A pretended machine has this name; it is empty on the real one."""
    report: str = ""
    """A pretended machine's facts and verdicts came from this file; it is empty for those of the list."""
    fast_bf16: bool = False
    """True: the CPU multiplies bfloat16 in hardware (AVX-512 BF16, AMX). It says nothing about a GPU."""
    limit_bytes: int = 0
    """Past this the device swaps or fails: it is Metal's recommended working set; 0: all of memory_bytes is usable."""
    unseen_card: str = ""
    """This torch cannot use this GPU, though it is in the machine."""
    packages: tuple[str, ...] | None = None
    """Of bitsandbytes, torchao, gptqmodel and gguf these are installed; None: that was not checked."""


def probe() -> Hardware:
    """Read the facts of this machine. Never fails: unavailable facts stay unknown, and check_machine() judges them."""
    import psutil
    import torch

    memory = psutil.virtual_memory()
    system: System = {"Darwin": "macos", "Windows": "windows"}.get(platform.system(), "linux")  # type: ignore[assignment]
    facts = Hardware(
        name=_processor_name(system),
        memory_bytes=memory.total,
        free_bytes=read_available_bytes(),
        ram_bytes=memory.total,
        system=system,
        system_version=read_macos_version() if system == "macos" else platform.release(),
        processor={"AMD64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        torch=str(torch.__version__),
        fast_bf16=multiplies_bfloat16(),
        packages=tuple(name for name in PACKAGES if importlib.util.find_spec(name) is not None),
    )
    if torch.cuda.is_available():
        return _card(facts, torch)
    if torch.backends.mps.is_available():
        return _metal(facts, torch)
    if importlib.util.find_spec("torch_directml") is not None:
        return replace(facts, kind="directml", name="DirectML", unified=False)
    return replace(facts, unseen_card=_unseen_card())


def with_room(hardware: Hardware, reading: Reading, held_bytes: int) -> Hardware:
    """Return the machine with the memory free now. `held_bytes`: memory that Hearth holds and would release."""
    # Before a GPU is in use, the reading is of the computer's memory.
    of_device = (reading.device_bytes is None) == (hardware.kind == "cpu")
    if hardware.pretended or not (of_device and reading.free_bytes):
        return hardware
    return replace(hardware, free_bytes=min(hardware.memory_bytes, reading.free_bytes + held_bytes))


def as_processor(hardware: Hardware) -> Hardware:
    """Return the machine as if it had no graphics device."""
    free_bytes = hardware.free_bytes if hardware.unified else hardware.ram_bytes // 2  # the rest may be other programs'
    return replace(
        hardware,
        kind="cpu",
        capability=None,
        memory_bytes=hardware.ram_bytes or hardware.memory_bytes,
        free_bytes=free_bytes,
        unified=True,
        arch_list=(),
        limit_bytes=0,
    )


def _card(facts: Hardware, torch: ModuleType) -> Hardware:
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info(0)
    rocm = getattr(torch.version, "hip", None) is not None
    return replace(
        facts,
        kind="rocm" if rocm else "cuda",
        name=_radeon_name(properties.name) if rocm else properties.name,
        capability=None if rocm else (properties.major, properties.minor),
        memory_bytes=total,
        free_bytes=free,
        unified=bool(getattr(properties, "is_integrated", False)),
        driver="" if rocm else _nvidia("driver_version"),
        arch_list=() if rocm else tuple(torch.cuda.get_arch_list()),
        cudnn="" if rocm else _cudnn(torch),
        gfx=str(getattr(properties, "gcnArchName", "")).partition(":")[0] if rocm else "",
    )


def _cudnn(torch: ModuleType) -> str:
    """Return the version of the loaded cuDNN; empty if there is none. Where it does not drive the card, torch raises once, then answers."""
    number = 0
    for _ in range(2):
        with contextlib.suppress(RuntimeError):
            number = torch.backends.cudnn.version() or 0
    return f"{number // 10000}.{number // 100 % 100}" if number else ""


def _metal(facts: Hardware, torch: ModuleType) -> Hardware:
    # Metal's count of free memory leaves out other programs, the system's leaves out Metal's limit.
    limit = torch.mps.recommended_max_memory()
    free = min(max(0, limit - torch.mps.driver_allocated_memory()), facts.free_bytes)
    return replace(facts, kind="mps", free_bytes=free, limit_bytes=limit)


def _processor_name(system: System) -> str:
    if system == "macos":
        return _said("sysctl", "-n", "machdep.cpu.brand_string") or "Apple"
    if system == "linux" and Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
        named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
        if named:
            return named
    return platform.processor() or platform.machine() or "CPU"


def _unseen_card() -> str:
    return _nvidia("name") or next(filter(is_separate, find_names()), "")


def _radeon_name(name: str) -> str:
    """Return the name from the system's list where the driver says only "AMD Radeon Graphics", as it does of many cards."""
    named = [each for each in find_names() if each.startswith("AMD") and is_separate(each)]
    return name if any(each.isdigit() for each in name) or len(named) != 1 else named[0]


def _nvidia(field: str) -> str:
    return _said("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader").partition("\n")[0].strip()


def _said(*command: str) -> str:
    """Return a command's output; empty if it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
