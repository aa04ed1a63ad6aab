"""Ask macOS for its own version. Programs built before macOS 26 are told 16, whatever it is, so such numbers are not believed."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from typing import Final

_ASKS: Final = ("/usr/sbin/sysctl", "-n", "kern.osproductversion")


def read_macos_version() -> str:
    """Return the version, such as "14.5" or "26.1"; empty if nothing credible names one."""
    return next(filter(_exists, (_ask_system(), platform.mac_ver()[0])), "")


def _ask_system() -> str:
    """Ask a program of the system's own, as Python may have been built before it; SYSTEM_VERSION_COMPAT=1 could make even that one say 16."""
    try:
        done = subprocess.run(
            _ASKS, capture_output=True, text=True, timeout=5, check=False, env={**os.environ, "SYSTEM_VERSION_COMPAT": "0"}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _exists(version: str) -> bool:
    """Return whether there is such a macOS: after 15 came 26."""
    found = re.match(r"\d+", version)
    return found is not None and not 15 < int(found.group()) < 26
