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
from dataclasses import dataclass, replace

from app.launcher.console import WINDOWS, Refused
from app.sentence import Sentence, Value, say

WHEELS = "https://download.pytorch.org/whl"
REACH_S = 4.0


@dataclass(frozen=True, slots=True)
class Card:
    name: str
    driver: int
    capability: float | None  # compute capability; None if nvidia-smi does not report it


@dataclass(frozen=True, slots=True)
class ComputerFacts:
    system: str  # as in platform.system(): Linux, Windows, Darwin
    machine: str  # as in platform.machine()
    cards: tuple[Card, ...] = ()
    nvidia_smi_error: str = ""  # why nvidia-smi, although installed, listed no card


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """`builds` are tried in order until one is installed and proven; "" is the default index."""

    builds: tuple[str, ...]
    because: Sentence


def parse_cards(text: str) -> tuple[Card, ...]:
    """Parse `nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader`; other lines are no
    cards."""
    found = []
    for line in text.splitlines():
        part = [each.strip() for each in line.split(",")]
        driver = re.match(r"(\d+)\.\d", part[1]) if len(part) in (2, 3) else None
        if driver:
            reported = len(part) == 3 and re.fullmatch(r"\d+\.\d", part[2])
            found.append(Card(part[0], int(driver[1]), float(part[2]) if reported else None))
    return tuple(found)


UNTIL = say("torch.until", "Using the build for the processor; after updating the driver, run start.py repair")
NVIDIA: tuple[tuple[Callable[[Card, float], bool], tuple[str, ...], Sentence], ...] = (
    # Each row: condition on the newest card and the machine's oldest capability, CUDA builds, reason; the first match
    # counts. From 2.12 on only cu126 supports 5.0 to 7.0 (and ends at 9.0); CUDA 12 needs driver 525, Blackwell 570,
    # CUDA 13 needs 580.
    (
        lambda c, oldest: c.driver < 525,
        (),
        say("torch.driver-old", "{card}: driver {driver} is older than 525, which every build needs. {until}"),
    ),
    (
        lambda c, oldest: c.capability is None,
        ("cu126",),
        say("torch.unknown", "{card}: compute capability unknown, so the build for most cards"),
    ),
    (
        lambda c, oldest: (c.capability or 0) < 5.0,
        (),
        say(
            "torch.too-old", "{card}: compute capability {capability}: no CUDA build supports less than 5.0, so the build for the processor"
        ),
    ),
    (
        lambda c, oldest: oldest < 7.5 and (c.capability or 0) < 10.0,
        ("cu126",),
        say("torch.old", "{card}: compute capability {oldest}: only cu126 builds still support cards before 7.5"),
    ),
    (
        lambda c, oldest: c.driver >= 580,
        ("cu130", "cu126"),
        say("torch.cuda-13", "{card}: compute capability {capability}, driver {driver}, so CUDA 13.0"),
    ),
    (
        lambda c, oldest: (c.capability or 0) < 10.0,
        ("cu126",),
        say("torch.cuda-12", "{card}: compute capability {capability}, driver {driver}, so CUDA 12.6, because 13 needs driver 580"),
    ),
    (
        lambda c, oldest: c.driver >= 570,
        ("cu129", "cu128"),
        say(
            "torch.blackwell-12",
            "{card}: compute capability {capability}, driver {driver}, so the last CUDA 12 that supports it, because 13 needs driver 580. "
            "After updating the driver, run start.py repair",
        ),
    ),
    (
        lambda c, oldest: True,
        (),
        say("torch.blackwell-old", "{card}: compute capability {capability} needs driver 570 and has {driver}. {until}"),
    ),
)


def choose_build(facts: ComputerFacts) -> BuildChoice:
    """Choose the build of torch for this machine, with the reason. Pure."""
    machine = facts.machine.lower()
    arm = machine in ("arm64", "aarch64")
    if not arm and machine not in ("x86_64", "amd64"):
        raise Refused(
            say(
                "torch.processor",
                "Hearth cannot start on this processor ({machine}), because torch does not support it. Use a 64-bit Intel, AMD or ARM processor.",
                machine=machine,
            )
        )
    if facts.system == "Darwin" and not arm:
        raise Refused(
            say(
                "torch.intel-mac",
                "Hearth cannot start on an Intel Mac, because torch dropped Intel Macs after 2.2. "
                "Use a Mac with Apple silicon, or a PC with Linux or Windows.",
            )
        )
    if facts.system == "Windows" and arm:
        raise Refused(
            say(
                "torch.windows-arm",
                "Hearth cannot start with Python for ARM, because some packages are missing for it on Windows. "
                "Install 64-bit Python for Intel and AMD, which also runs on ARM, and start again with it.",
            )
        )
    if facts.system == "Darwin":
        return BuildChoice(("",), say("torch.metal", "Apple silicon, so the default build, which uses Metal"))
    plain = ("cpu", "") if facts.system == "Linux" else ("",)
    if not facts.cards:
        if not facts.nvidia_smi_error:
            return BuildChoice(plain, say("torch.no-card", "no NVIDIA card found, so the build for the processor"))
        why = say(
            "torch.no-answer",
            "nvidia-smi is installed but lists no card ({fault}), so the build for the processor",
            fault=facts.nvidia_smi_error,
        )
        return BuildChoice(plain, why)
    card = max(facts.cards, key=lambda each: each.capability or 0.0)
    oldest = min(each.capability or card.capability or 0.0 for each in facts.cards)
    builds, why = next((builds, why) for holds, builds, why in NVIDIA if holds(card, oldest))
    known: dict[str, Value] = {
        "card": card.name, "driver": card.driver, "capability": card.capability or 0.0, "oldest": oldest, "until": UNTIL,
    }  # fmt: skip
    return BuildChoice((*builds, *plain), replace(why, values=tuple(known.items())))


def detect_facts() -> ComputerFacts:
    system, machine = platform.system(), platform.machine()
    if system == "Darwin":
        # Python for Intel reports x86_64 on Apple silicon too.
        reply = subprocess.run(["/usr/sbin/sysctl", "-n", "hw.optional.arm64"], capture_output=True, text=True)
        if machine == "x86_64" and reply.stdout.strip() == "1":
            raise Refused(
                say(
                    "torch.intel-python",
                    "This Mac has Apple silicon, but this Python is for Intel Macs. Install Python from python.org (or with "
                    "Homebrew under /opt/homebrew) and start again with it.",
                )
            )
        return ComputerFacts(system, machine)
    if WINDOWS and "WindowsApps" in sys.base_prefix:
        raise Refused(
            say(
                "torch.store-python",
                "This Python is from the Microsoft Store, and Windows hides the files it writes from other programs. "
                "Open Hearth.bat, which finds or installs another Python; or start again with one from python.org.",
            )
        )
    if WINDOWS:  # this is Python's architecture, not the machine's: Windows runs either on ARM
        machine = "ARM64" if sysconfig.get_platform() == "win-arm64" else "AMD64" if sys.maxsize > 1 << 32 else "x86"
    places = (r"C:\Windows\System32", r"C:\Program Files\NVIDIA Corporation\NVSMI") if WINDOWS else ("/usr/lib/wsl/lib", "/usr/bin")
    tool = shutil.which("nvidia-smi", path=os.pathsep.join((os.environ.get("PATH", ""), *places)))
    if not tool:
        return ComputerFacts(system, machine)
    text = ""
    for fields in ("name,driver_version,compute_cap", "name,driver_version"):  # old drivers lack the third field
        try:
            done = subprocess.run(
                [tool, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, errors="replace", timeout=30
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return ComputerFacts(system, machine, (), type(fault).__name__)
        text = done.stdout.strip() or done.stderr.strip()
        if done.returncode == 0 and parse_cards(text):
            return ComputerFacts(system, machine, parse_cards(text))
    return ComputerFacts(system, machine, (), (text.splitlines() or ["no message"])[0][:120])


def is_offered(build: str, version: str) -> bool:
    """Return whether this build's index answers within seconds and has this torch for this Python and machine."""
    import http.client  # both are slow to import and needed once
    import urllib.request

    page: list[str] = []

    def look() -> None:
        try:
            with urllib.request.urlopen(f"{WHEELS}/{build}/torch/", timeout=REACH_S) as answer:
                page.append(answer.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):  # the caller reports that it could not be reached
            return

    asking = threading.Thread(target=look, daemon=True)  # a silent name server ignores timeouts
    asking.start()
    asking.join(2 * REACH_S)
    cpython = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    wheel = rf"torch-{re.escape(version)}(?:%2B|\+){build}-{cpython}-{cpython}-[^\"'<>]*{platform.machine()}"
    return bool(page) and re.search(wheel, page[0], re.IGNORECASE) is not None
