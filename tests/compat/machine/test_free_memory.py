"""What macOS gives back at once counts as free: files that it caches, memory that programs offered."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from app.compat.machine import free_memory
from app.compat.machine.free_memory import parse_vm_stat, read_available_bytes
from tests.support.other_functions import set_in

GIB = 1 << 30
BROWSER = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                                3891.
Pages active:                            141037.
Pages inactive:                          138560.
Pages speculative:                         1422.
Pages throttled:                              0.
Pages wired down:                         98211.
Pages purgeable:                          10240.
"Translation faults":                 512345678.
Pages copy-on-write:                   12345678.
Pages zero filled:                    345678901.
Pages reactivated:                      9876543.
Pages purged:                           1234567.
File-backed pages:                       151552.
Anonymous pages:                         129467.
Pages stored in compressor:              301234.
Pages occupied by compressor:            128745.
Decompressions:                         4567890.
Compressions:                           6789012.
Pageins:                                8901234.
Pageouts:                                 98765.
Swapins:                                      0.
Swapouts:                                     0.
"""
"""An M1 with 8 GB and a browser would say so, in the form of Apple's vm_stat; the numbers are made up."""


def test_files_and_offered_memory_count() -> None:
    assert parse_vm_stat(BROWSER) == (3891 + 10240 + 151552) * 16384
    assert parse_vm_stat(BROWSER.replace("16384", "4096")) == (3891 + 10240 + 151552) * 4096, "an Intel Mac has small pages"
    assert parse_vm_stat("") == 0 and parse_vm_stat("vm_stat: illegal option") == 0


@pytest.mark.parametrize(
    ("platform", "psutils", "said", "bytes_free"),
    [
        ("darwin", 2 * GIB, BROWSER, (3891 + 10240 + 151552) * 16384),
        ("darwin", 5 * GIB, BROWSER, 5 * GIB),
        ("darwin", 2 * GIB, "", 2 * GIB),
        ("linux", 2 * GIB, BROWSER, 2 * GIB),
    ],
    ids=["more than psutil says", "less: what is inactive counts too", "no answer", "no Mac"],
)
def test_a_mac_has_what_it_gives_back(
    platform: str, psutils: int, said: str, bytes_free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "vm_stat.py"
    program.write_text(f"open({str(asked)!r}, 'a').write('x'); print({said!r})", "utf-8")
    monkeypatch.setattr(free_memory, "_ASKS", (sys.executable, str(program)))
    monkeypatch.setattr(free_memory, "_latest", (0.0, 0))
    monkeypatch.setattr(free_memory, "_HOLDS_S", 60.0)
    set_in(monkeypatch, free_memory, "sys", platform=platform)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=psutils))
    assert [read_available_bytes() for _ in range(3)] == [bytes_free] * 3
    assert (asked.read_text() if asked.exists() else "") == "x" * (platform == "darwin"), (
        "asked once a while, as a program is started for it"
    )


def test_without_vm_stat_psutil_alone_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "_ASKS", ("/nowhere/vm_stat",))
    monkeypatch.setattr(free_memory, "_latest", (0.0, 0))
    set_in(monkeypatch, free_memory, "sys", platform="darwin")
    assert read_available_bytes() > 0


@pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="no system without it has vm_stat")
def test_the_engine_is_not_forked_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2 GiB in use, fork() took 421 ms here and posix_spawn() 2.5, once a second."""
    spawn, started = os.posix_spawn, []

    def note(*given: Any, **named: Any) -> int:
        started.append(given[0])
        return spawn(*given, **named)

    monkeypatch.setattr(free_memory, "_ASKS", (sys.executable, "-c", f"print({BROWSER!r})"))
    monkeypatch.setattr(os, "posix_spawn", note)
    assert parse_vm_stat(free_memory._run()) > 0 and started == [sys.executable]
