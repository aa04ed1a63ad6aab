"""Name the graphics cards that the operating system sees; the standard library only, without torch or a driver's tool."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

WAIT_S: Final = 10.0
VENDORS: Final = (
    ("AMD", "0x1002", r"^(Advanced Micro Devices|AMD|ATI)\b|\bRadeon\b"),
    ("Intel", "0x8086", r"^Intel\b"),
    ("NVIDIA", "0x10de", r"^NVIDIA\b|\b(GeForce|Quadro|Tesla)\b"),
)
"""A row holds the name people know, the PCI number, and what the vendor is called in a name. Others make no card that computes."""
SEPARATE: Final = re.compile(r"NVIDIA|\bArc\b|Instinct|FirePro|Radeon ?(?:\(TM\) )?(?:RX|Pro|VII|HD|R[579])\b", re.IGNORECASE)
DRM: Final = Path("/sys/class/drm")
KFD: Final = Path("/sys/class/kfd/kfd/topology/nodes")


def find_names() -> tuple[str, ...]:
    """Return the names of the cards, separate ones before those inside of a processor; empty if the system names none."""
    ask = {"Linux": _ask_linux, "Windows": _ask_windows, "Darwin": _ask_mac}.get(platform.system())
    names = dict.fromkeys(ask() if ask else ())
    return tuple(sorted(names, key=is_separate, reverse=True))


def is_separate(name: str) -> bool:
    """Return whether a name is that of a card of its own, as far as names tell."""
    return SEPARATE.search(name) is not None


def find_vendor(name: str) -> str:
    return next((vendor for vendor, _, pattern in VENDORS if re.search(pattern, name, re.IGNORECASE)), "")


def read_gfx_targets() -> tuple[str, ...]:
    """Return the targets of the AMD cards that Linux offers for computing, such as gfx1030, in the driver's order."""
    found = []
    for file in sorted(KFD.glob("*/properties"), key=lambda each: each.parent.name.zfill(4)):
        try:
            version = re.search(r"^gfx_target_version (\d+)$", file.read_text("utf-8"), re.MULTILINE)
        except OSError:
            continue
        if version and int(version[1]):  # 0 is a processor
            major, minor, step = int(version[1]) // 10000, int(version[1]) // 100 % 100, int(version[1]) % 100
            found.append(f"gfx{major}{minor:x}{step:x}")
    return tuple(found)


def parse_lspci(text: str) -> tuple[str, ...]:
    """Parse `lspci -mm`: slot, class, vendor, device; the device's name for people is in brackets where there is one."""
    found = []
    for line in text.splitlines():
        try:
            part = shlex.split(line)
        except ValueError:
            continue
        vendor = find_vendor(part[2]) if len(part) > 3 and re.match(r"VGA|3D|Display", part[1]) else ""
        if vendor:
            named = part[3].partition("[")[2].rpartition("]")[0]
            found.append(f"{vendor} {named or part[3]}")
    return tuple(found)


def parse_profiler(text: str) -> tuple[str, ...]:
    """Parse `system_profiler -json SPDisplaysDataType`."""
    try:
        return tuple(str(each["sppci_model"]) for each in json.loads(text)["SPDisplaysDataType"])
    except (ValueError, LookupError, TypeError):
        return ()


def _ask_linux() -> Iterable[str]:
    tool = shutil.which("lspci", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin", "/usr/sbin", "/sbin")))
    return (tool and parse_lspci(_run(tool, "-mm"))) or _read_drm()


def _read_drm() -> Iterable[str]:
    """Return the vendors only, for a Linux without lspci."""
    for file in sorted(DRM.glob("card*/device/vendor")):
        try:
            number = file.read_text("utf-8").strip()
        except OSError:
            continue
        yield from (f"{vendor} graphics card" for vendor, its, _ in VENDORS if its == number)


def _ask_windows() -> Iterable[str]:
    """Follow the list of the adapters in use, which Windows makes anew at each start, to their names."""
    import winreg

    machine = winreg.HKEY_LOCAL_MACHINE  # type: ignore[attr-defined, unused-ignore]
    found = []
    try:
        with winreg.OpenKey(machine, r"HARDWARE\DEVICEMAP\VIDEO") as devices:  # type: ignore[attr-defined, unused-ignore]
            count = winreg.QueryInfoKey(devices)[1]  # type: ignore[attr-defined, unused-ignore]
            paths = [str(winreg.EnumValue(devices, index)[1]) for index in range(count)]  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return ()
    for path in paths:
        try:
            with winreg.OpenKey(machine, re.sub(r"(?i)^\\Registry\\Machine\\", "", path)) as adapter:  # type: ignore[attr-defined, unused-ignore]
                name = str(winreg.QueryValueEx(adapter, "DriverDesc")[0])  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            continue
        if find_vendor(name):
            found.append(name)
    return found


def _ask_mac() -> Iterable[str]:
    return parse_profiler(_run("/usr/sbin/system_profiler", "-json", "SPDisplaysDataType"))


def _run(*command: str) -> str:
    """Return a command's output; empty if it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=WAIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
