"""macOS is asked for its own version, and what it tells programs built before macOS 26 is not believed."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from app.base import macos_version
from app.base.macos_version import read_macos_version


def answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sysctl: str | None, python: str) -> None:
    """Let the system's program say this, and "16.0" where the variable asks for what old programs are told; None: it fails."""
    program = f"import os; print({sysctl!r} if os.environ.get('SYSTEM_VERSION_COMPAT') == '0' else '16.0')"
    file = tmp_path / "sysctl.py"
    file.write_text("raise SystemExit(1)" if sysctl is None else program, "utf-8")
    monkeypatch.setattr(macos_version, "_ASKS", (sys.executable, str(file)))
    monkeypatch.setattr(platform, "mac_ver", lambda: (python, ("", "", ""), "arm64"))


@pytest.mark.parametrize(
    ("sysctl", "python", "version"),
    [
        ("14.5", "14.5", "14.5"),
        ("26.1", "16.0", "26.1"),
        ("27.0", "16.0", "27.0"),
        ("26.1", "26.1", "26.1"),
        (None, "15.6.1", "15.6.1"),
        (None, "16.0", ""),
        ("16.1", "25.9", ""),
        ("", "", ""),
    ],
)
def test_versions_that_never_were_are_not_believed(
    sysctl: str | None, python: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, tmp_path, sysctl, python)
    monkeypatch.setenv("SYSTEM_VERSION_COMPAT", "1")
    assert read_macos_version() == version


def test_without_the_program_python_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(macos_version, "_ASKS", (str(tmp_path / "missing"),))
    monkeypatch.setattr(platform, "mac_ver", lambda: ("14.5", ("", "", ""), "arm64"))
    assert read_macos_version() == "14.5"
