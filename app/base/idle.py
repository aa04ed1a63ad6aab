"""How long nobody has touched this computer, where its system tells: Windows, macOS, X11 and GNOME; and whether it runs on its battery."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from typing import Any, Final

import psutil

ASK_S: Final = 5.0
GNOME: Final = (
    "gdbus", "call", "--session", "--dest", "org.gnome.Mutter.IdleMonitor", "--object-path", "/org/gnome/Mutter/IdleMonitor/Core",
    "--method", "org.gnome.Mutter.IdleMonitor.GetIdletime",
)  # fmt: skip
X11: Final = """
import ctypes
class Info(ctypes.Structure):
    _fields_ = [("window", ctypes.c_ulong), ("state", ctypes.c_int), ("kind", ctypes.c_int), ("since", ctypes.c_ulong), ("idle", ctypes.c_ulong),
                ("mask", ctypes.c_ulong)]
x, xss = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXss.so.1")
x.XOpenDisplay.restype, x.XDefaultRootWindow.restype = ctypes.c_void_p, ctypes.c_ulong
display, info = ctypes.c_void_p(x.XOpenDisplay(None)), Info()
assert display and xss.XScreenSaverQueryInfo(display, ctypes.c_ulong(x.XDefaultRootWindow(display)), ctypes.byref(info))
print(info.idle)
"""
"""It runs in a process of its own: Xlib ends the process that it is in when its server goes, as at the end of a session."""


class _LastInput(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("tick_ms", ctypes.c_uint)]


def measure_idle_s() -> float | None:
    """Return how long neither keyboard nor mouse was touched; None where the system does not tell."""
    try:
        if sys.platform == "win32":
            return _ask_windows()
        return _ask_mac() if sys.platform == "darwin" else _ask_linux()
    except (OSError, AttributeError, ValueError, subprocess.SubprocessError):
        return None


def _ask_windows() -> float | None:
    system: Any = ctypes.windll  # type: ignore[attr-defined,unused-ignore]
    last = _LastInput(ctypes.sizeof(_LastInput))
    if not system.user32.GetLastInputInfo(ctypes.byref(last)):
        return None
    return float((system.kernel32.GetTickCount() - last.tick_ms) & 0xFFFFFFFF) / 1000


def _ask_mac() -> float:
    graphics = ctypes.CDLL("/System/Library/Frameworks/ApplicationServices.framework/ApplicationServices")
    ask = graphics.CGEventSourceSecondsSinceLastEventType
    ask.restype, ask.argtypes = ctypes.c_double, [ctypes.c_int32, ctypes.c_uint32]
    return float(ask(1, 0xFFFFFFFF))  # of the hardware, any event


def _ask_linux() -> float | None:
    """Ask GNOME under Wayland, where X11 sees the input of some windows only; else X11."""
    wayland = bool(os.environ.get("WAYLAND_DISPLAY"))
    if not wayland and not os.environ.get("DISPLAY"):
        return None
    command = GNOME if wayland else (sys.executable, "-I", "-S", "-c", X11)
    answer = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S)
    return read_answer(answer.stdout) if answer.returncode == 0 else None


def read_answer(words: str) -> float | None:
    """Read milliseconds: a bare number, or "(uint64 1234,)" of gdbus."""
    found = re.fullmatch(r"\(?(?:uint64 )?(\d+),?\)?", words.strip())
    return int(found[1]) / 1000 if found else None


def is_on_battery() -> bool:
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, ValueError):
        return False
    return battery is not None and battery.power_plugged is False
