"""Facts of the machines that Hearth pretends, to plan without owning them: of its list, or of a report's file. How those of the
list fail stands in selftest/failures.py."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware, probe
from app.compat.machine.report import name_of_file, read_machine

_GIB: Final = 1 << 30
_CU126: Final = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
_CU130: Final = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def _mac(name: str, chip: str, gib: int, cores: int, system_version: str, torch: str, free_gib: float | None = None) -> Hardware:
    # Metal recommends two thirds of memory, three quarters from 64 GB on; other programs use some of it: half, if nothing else is said.
    limit_bytes = gib * _GIB * 3 // 4 if gib >= 64 else gib * _GIB * 2 // 3
    free_bytes = gib * _GIB // 2 if free_gib is None else int(free_gib * _GIB)
    return Hardware(
        kind="mps",
        name=chip,
        memory_bytes=gib * _GIB,
        free_bytes=free_bytes,
        unified=True,
        ram_bytes=gib * _GIB,
        system="macos",
        system_version=system_version,
        processor="arm64",
        cores=cores,
        torch=torch,
        pretended=name,
        limit_bytes=limit_bytes,
    )


def _card(
    name: str, card: str, capability: tuple[int, int], mib: int, torch: str, arch_list: tuple[str, ...], driver: str, linux: bool = False
) -> Hardware:
    # A desktop and the CUDA context use some 0.6 GiB of the card before anything runs.
    return Hardware(
        kind="cuda",
        name=card,
        capability=capability,
        memory_bytes=mib << 20,
        free_bytes=(mib - 600) << 20,
        unified=False,
        ram_bytes=16 * _GIB,
        system="linux" if linux else "windows",
        system_version="6.8" if linux else "10.0.19045",
        processor="x86_64",
        cores=4 if linux else 6,
        driver=driver,
        torch=torch,
        arch_list=arch_list,
        pretended=name,
    )


MACHINES: Final[MappingProxyType[str, Hardware]] = MappingProxyType({
    each.pretended: each for each in (
        _mac("m1-8gb", "Apple M1", 8, 8, "14.5", "2.6.0"),
        _mac("m1-8gb-browser", "Apple M1", 8, 8, "15.5", "2.13.0", free_gib=2.5),
        _mac("m1-8gb-full", "Apple M1", 8, 8, "15.5", "2.13.0", free_gib=2.0),
        _mac("m2-16gb", "Apple M2", 16, 8, "15.0", "2.8.0"),
        _mac("m3-max-64gb", "Apple M3 Max", 64, 16, "26.0", "2.13.0"),
        _card("gtx-1060", "NVIDIA GeForce GTX 1060 6GB", (6, 1), 6144, "2.13.0+cu126", _CU126, "566.36"),
        _card("gtx-1660", "NVIDIA GeForce GTX 1660", (7, 5), 6144, "2.13.0+cu126", _CU126, "566.36"),
        _card("t4", "Tesla T4", (7, 5), 15095, "2.13.0+cu126", _CU126, "550.127.05", linux=True),
        _card("rtx-3060", "NVIDIA GeForce RTX 3060", (8, 6), 12288, "2.13.0+cu130", _CU130, "581.57"),
        Hardware(
            kind="cpu", name="CPU", memory_bytes=16 * _GIB, free_bytes=10 * _GIB, unified=True, ram_bytes=16 * _GIB,
            system="linux", system_version="6.8", processor="x86_64", cores=4, torch="2.13.0+cpu", pretended="cpu",
        ),
    )
})  # fmt: skip


def find_machine(pretended: str) -> Hardware:
    """Return the facts of this computer, or of the machine that it pretends to be: one of the list, or a report's file."""
    if not pretended:
        return probe()
    return read_machine(pretended) if is_file(pretended) else machine(pretended)


def is_file(pretended: str) -> bool:
    """Tell whether a report's file is meant, not a machine of the list."""
    return pretended not in MACHINES and (any(sign in pretended for sign in "/\\.") or os.path.exists(pretended))  # noqa: PTH110 - never raises


def name_given(pretended: str) -> str:
    """Return the name of the machine whose file is pretended; empty for those of the list."""
    return name_of_file(pretended) if is_file(pretended) else ""


def machine(name: str) -> Hardware:
    """Return the facts of a pretended machine, or raise a Trouble that lists the names."""
    try:
        return MACHINES[name]
    except KeyError:
        raise Trouble(
            say(
                "pretend.unknown",
                "There is no pretended machine named {name}. Choose one of: {names}. Or give the file of a machine's report, as {hearth} doctor "
                "--selftest --json prints it.",
                name=name,
                names=tuple(MACHINES),
            )
        ) from None
