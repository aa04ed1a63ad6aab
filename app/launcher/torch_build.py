"""Choose the build of torch that suits this machine's processor, card and driver."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass

from app.launcher.console import WINDOWS, Refused

WHEELS = "https://download.pytorch.org/whl"
REACH_S = 4.0


@dataclass(frozen=True, slots=True)
class Card:
    name: str
    driver: int
    capability: float | None  # compute capability; None where nvidia-smi does not tell


@dataclass(frozen=True, slots=True)
class Facts:
    system: str  # as platform.system() says: Linux, Windows, Darwin
    machine: str  # as platform.machine() says
    cards: tuple[Card, ...] = ()
    nvidia_smi_error: str = ""  # why nvidia-smi, although it is there, told of no card


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """`builds` are tried in order until one is installed and proven; "" is the default index."""

    builds: tuple[str, ...]
    because: str


def parse_cards(told: str) -> tuple[Card, ...]:
    """From `nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader`; other lines are no cards."""
    found = []
    for line in told.splitlines():
        part = [each.strip() for each in line.split(",")]
        driver = re.match(r"(\d+)\.\d", part[1]) if len(part) in (2, 3) else None
        if driver:
            known = len(part) == 3 and re.fullmatch(r"\d+\.\d", part[2])
            found.append(Card(part[0], int(driver[1]), float(part[2]) if known else None))
    return tuple(found)


UNTIL = "Until the driver is updated (then: start.py repair), the plain build, for the processor"
NVIDIA: tuple[tuple[Callable[[Card, float], bool], tuple[str, ...], str], ...] = (
    # the newest card and the oldest capability of the machine -> CUDA builds, why; the first row that holds. From 2.12
    # on only cu126 carries 5.0 to 7.0 (and ends at 9.0); CUDA 12 needs driver 525, Blackwell 570, CUDA 13 needs 580.
    (lambda c, oldest: c.driver < 525, (), "driver {c.driver} is older than 525, which every build needs. " + UNTIL),
    (
        lambda c, oldest: c.capability is None,
        ("cu126",),
        "compute capability not told, so the build for the most cards",
    ),
    (
        lambda c, oldest: (c.capability or 0) < 5.0,
        (),
        "compute capability {c.capability}: no build goes below 5.0, so the plain one",
    ),
    (
        lambda c, oldest: oldest < 7.5 and (c.capability or 0) < 10.0,
        ("cu126",),
        "compute capability {oldest}: only the cu126 builds still carry cards before 7.5",
    ),
    (
        lambda c, oldest: c.driver >= 580,
        ("cu130", "cu126"),
        "compute capability {c.capability}, driver {c.driver}: CUDA 13.0",
    ),
    (
        lambda c, oldest: (c.capability or 0) < 10.0,
        ("cu126",),
        "compute capability {c.capability}, driver {c.driver}: CUDA 12.6, because 13 needs driver 580",
    ),
    (
        lambda c, oldest: c.driver >= 570,
        ("cu129", "cu128"),
        "compute capability {c.capability}, driver {c.driver}: the last CUDA 12 that knows it, because 13 needs driver 580. "
        "With a newer driver, start.py repair finds a better one",
    ),
    (lambda c, oldest: True, (), "compute capability {c.capability} needs driver 570 and has {c.driver}. " + UNTIL),
)


def choose_build(facts: Facts) -> BuildChoice:
    """Which build of torch suits this machine, and why. Pure."""
    machine = facts.machine.lower()
    arm = machine in ("arm64", "aarch64")
    asked = "Hearth was asked to start "
    if not arm and machine not in ("x86_64", "amd64"):
        raise Refused(
            f"{asked}on a {machine} processor, for which there is no torch. It needs 64-bit Intel, AMD or ARM."
        )
    if facts.system == "Darwin" and not arm:
        raise Refused(
            f"{asked}on an Intel Mac, for which torch is not built since 2.2. It needs Apple silicon, or a PC with Linux or Windows."
        )
    if facts.system == "Windows" and arm:
        raise Refused(
            f"{asked}with a Python made for ARM, for which Windows has not all that it needs. Install the 64-bit edition for "
            "Intel and AMD, which Windows runs on ARM as well, and start again with it."
        )
    if facts.system == "Darwin":
        return BuildChoice(("",), "Apple silicon, whose graphics the plain build drives through Metal")
    plain = ("cpu", "") if facts.system == "Linux" else ("",)
    if not facts.cards:
        why = (
            f"nvidia-smi is there but tells of no card ({facts.nvidia_smi_error})"
            if facts.nvidia_smi_error
            else "no NVIDIA card found"
        )
        return BuildChoice(plain, f"{why}, so the plain build, for the processor")
    card = max(facts.cards, key=lambda each: each.capability or 0.0)
    oldest = min(each.capability or card.capability or 0.0 for each in facts.cards)
    builds, why = next((builds, why) for holds, builds, why in NVIDIA if holds(card, oldest))
    return BuildChoice((*builds, *plain), f"{card.name}: {why.format(c=card, oldest=oldest)}")


def detect_facts() -> Facts:
    system, machine = platform.system(), platform.machine()
    if system == "Darwin":
        # A Python made for Intel says x86_64 on Apple silicon too.
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "hw.optional.arm64"], capture_output=True, text=True)
        if machine == "x86_64" and asked.stdout.strip() == "1":
            raise Refused(
                "This Mac has Apple silicon, but this Python was made for Intel Macs. Install Python from python.org (or with "
                "Homebrew under /opt/homebrew) and start again with it."
            )
        return Facts(system, machine)
    if WINDOWS and "WindowsApps" in sys.base_prefix:
        raise Refused(
            "This Python came from the Microsoft Store, and Windows keeps what it writes for the user in a copy that no other "
            "program sees. Open Hearth.bat, which finds or brings another one; or start again with one from python.org."
        )
    if WINDOWS:  # this Python's kind, not the machine's: Windows runs either on ARM
        machine = "ARM64" if sysconfig.get_platform() == "win-arm64" else "AMD64" if sys.maxsize > 1 << 32 else "x86"
    places = (
        (r"C:\Windows\System32", r"C:\Program Files\NVIDIA Corporation\NVSMI")
        if WINDOWS
        else ("/usr/lib/wsl/lib", "/usr/bin")
    )
    tool = shutil.which("nvidia-smi", path=os.pathsep.join((os.environ.get("PATH", ""), *places)))
    if not tool:
        return Facts(system, machine)
    told = ""
    for fields in ("name,driver_version,compute_cap", "name,driver_version"):  # old drivers do not know the third
        try:
            done = subprocess.run(
                [tool, f"--query-gpu={fields}", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return Facts(system, machine, (), type(fault).__name__)
        told = done.stdout.strip() or done.stderr.strip()
        if done.returncode == 0 and parse_cards(told):
            return Facts(system, machine, parse_cards(told))
    return Facts(system, machine, (), (told.splitlines() or ["it said nothing"])[0][:120])


def is_offered(build: str, version: str) -> bool:
    """Whether this build's index can be reached, within seconds, and has this torch for this Python and machine."""
    import http.client  # both take longer to import than the rest of a start, and are needed once
    import urllib.request

    page: list[str] = []

    def look() -> None:
        try:
            with urllib.request.urlopen(f"{WHEELS}/{build}/torch/", timeout=REACH_S) as answer:
                page.append(answer.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):  # the caller says that it could not be reached
            return

    asking = threading.Thread(target=look, daemon=True)  # a name server that is silent heeds no timeout
    asking.start()
    asking.join(2 * REACH_S)
    cpython = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    wheel = rf"torch-{re.escape(version)}(?:%2B|\+){build}-{cpython}-{cpython}-[^\"'<>]*{platform.machine()}"
    return bool(page) and re.search(wheel, page[0], re.IGNORECASE) is not None
