"""Ask this machine for the facts by which a build of torch is chosen, and torch's index for the builds it has."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from dataclasses import replace
from pathlib import Path

from app.base import graphics_cards
from app.base.macos_version import read_macos_version
from app.base.sentence import say
from app.launcher.console import WINDOWS, Refused
from app.launcher.torch_build import MACOS, Card, ComputerFacts

WHEELS = "https://download.pytorch.org/whl"
REACH_S = 4.0
KFD = Path("/dev/kfd")


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
        seen = graphics_cards.find_names() if machine == "x86_64" else ()
        return ComputerFacts(system, machine, seen=seen, macos=int((read_macos_version() or str(MACOS)).split(".")[0]))
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
    facts = ask_nvidia(ComputerFacts(system, machine))
    if facts.cards:
        return facts
    targets = graphics_cards.read_gfx_targets()
    return replace(facts, seen=graphics_cards.find_names(), gfx_targets=targets, kfd_opens=os.access(KFD, os.R_OK | os.W_OK))


def ask_nvidia(facts: ComputerFacts) -> ComputerFacts:
    """Add the cards that nvidia-smi lists, or why it lists none."""
    places = (r"C:\Windows\System32", r"C:\Program Files\NVIDIA Corporation\NVSMI") if WINDOWS else ("/usr/lib/wsl/lib", "/usr/bin")
    tool = shutil.which("nvidia-smi", path=os.pathsep.join((os.environ.get("PATH", ""), *places)))
    if not tool:
        return facts
    text = ""
    for fields in ("name,driver_version,compute_cap", "name,driver_version"):  # old drivers lack the third field
        try:
            done = subprocess.run(
                [tool, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, errors="replace", timeout=30
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return replace(facts, nvidia_smi_error=type(fault).__name__)
        text = done.stdout.strip() or done.stderr.strip()
        if done.returncode == 0 and parse_cards(text):
            return replace(facts, cards=parse_cards(text))
    return replace(facts, nvidia_smi_error=(text.splitlines() or ["no message"])[0][:120])


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
    wheel = rf"torch-{re.escape(version)}(?:%2B|\+){re.escape(build)}-{cpython}-{cpython}-[^\"'<>]*{platform.machine()}"
    return bool(page) and re.search(wheel, page[0], re.IGNORECASE) is not None
