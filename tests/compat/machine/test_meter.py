"""The meter: cheap, resets nothing, brings no torch, and its highest is its own. CUDA and Metal are pretended."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from statistics import median
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from app.compat.machine import meter
from app.compat.machine.meter import Meter, Reading, read, read_beside
from tests.support.places import TOP

MIB = 1 << 20


def test_a_reading_costs_under_a_millisecond() -> None:
    own = Meter()
    own.read()
    costs_s = []
    for _ in range(200):
        began_s = time.thread_time()
        own.read()
        costs_s.append(time.thread_time() - began_s)
    assert median(costs_s) < 1e-3


def test_it_brings_no_torch_and_no_thread() -> None:
    code = (
        "import sys, threading; from app.compat.machine.meter import read; reading = read()\n"
        "assert 'torch' not in sys.modules and threading.active_count() == 1\n"
        "assert reading.device_bytes is None and reading.process_bytes > 1 << 20 and reading.limit_bytes > reading.process_bytes\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_highest_stays_when_memory_is_given_back() -> None:
    own = Meter()
    before = own.read()
    held = bytearray(b"x" * (512 * MIB))  # other threads of the tests give back some tens meanwhile
    during = own.read()
    del held
    after = own.read()
    assert during.process_bytes - before.process_bytes > 256 * MIB
    assert after.process_bytes < during.process_bytes - 128 * MIB
    assert after.highest_bytes == during.highest_bytes
    assert Meter().read().highest_bytes < after.highest_bytes, "another meter's highest is its own"


def test_swap_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(psutil, "swap_memory", lambda: asked.append(1) or SimpleNamespace(used=5 * MIB))
    own = Meter()
    assert [own.read().swap_bytes for _ in range(20)] == [5 * MIB] * 20
    assert len(asked) == 1
    monkeypatch.setattr(meter, "SWAP_EVERY_S", 0.0)
    own.read()
    assert len(asked) == 2


def test_a_system_that_does_not_tell_of_swap_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows with broken performance counters; the engine's beat reads every second."""

    def broken() -> None:
        raise RuntimeError("PdhAddEnglishCounterW failed. Performance counters may be disabled.")

    monkeypatch.setattr(psutil, "swap_memory", broken)
    reading = Meter().read()
    assert reading.swap_bytes == 0 and reading.process_bytes > MIB


class Counted:
    """Stands for torch.cuda or torch.mps: answers what was put in, and raises on everything else, so a reset would show."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def __getattr__(self, name: str) -> object:
        return lambda *_: self.answers[name]


def stand_in(monkeypatch: pytest.MonkeyPatch, cuda: Counted, mps: Counted, metal: bool) -> None:
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    torch.cuda, torch.mps = cuda, mps  # type: ignore[attr-defined]
    torch.backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: metal))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)


def test_a_card_counts_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {"reserved_bytes": {"all": {"current": 700 * MIB}}, "allocated_bytes": {"all": {"current": 600 * MIB}}}
    cuda = Counted(is_initialized=True, memory_stats_as_nested_dict=stats, mem_get_info=(5000 * MIB, 6144 * MIB))
    stand_in(monkeypatch, cuda, Counted(), metal=False)
    reading = read()
    assert (reading.device_bytes, reading.allocated_bytes) == (700 * MIB, 600 * MIB)
    assert reading.highest_bytes == 700 * MIB
    assert reading.limit_bytes == 5700 * MIB


def test_a_card_nobody_has_woken_is_left_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, Counted(is_initialized=False), Counted(), metal=False)
    assert read().device_bytes is None


@pytest.mark.parametrize("driver_mib", [1, 900])
def test_a_mac_counts_the_larger_of_process_and_metal(monkeypatch: pytest.MonkeyPatch, driver_mib: int) -> None:
    mps = Counted(driver_allocated_memory=driver_mib * MIB, current_allocated_memory=MIB // 2, recommended_max_memory=5461 * MIB)
    stand_in(monkeypatch, Counted(is_initialized=False), mps, metal=True)
    monkeypatch.setattr(psutil.Process, "memory_info", lambda _: SimpleNamespace(rss=300 * MIB))
    reading = read()
    assert (reading.device_bytes, reading.allocated_bytes) == (driver_mib * MIB, MIB // 2)
    assert reading.highest_bytes == max(300, driver_mib) * MIB
    assert reading.limit_bytes == 5461 * MIB


def test_beside_its_owner_the_device_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    mps = Counted(driver_allocated_memory=900 * MIB, current_allocated_memory=MIB, recommended_max_memory=5461 * MIB)
    stand_in(monkeypatch, Counted(is_initialized=False), mps, metal=True)
    owners = read()
    mps.answers.clear()
    monkeypatch.setattr(psutil.Process, "memory_info", lambda _: SimpleNamespace(rss=7 * MIB))
    beside = read_beside(owners)
    assert (beside.process_bytes, beside.device_bytes, beside.allocated_bytes) == (7 * MIB, 900 * MIB, MIB)
    assert (beside.limit_bytes, beside.free_bytes) == (owners.limit_bytes, owners.free_bytes)
    assert read_beside(Reading()).device_bytes is None and read_beside(Reading()).free_bytes > 0


@pytest.mark.parametrize(
    ("limit_mib", "live_mib", "held_mib", "available_mib", "free_mib"),
    [(5461, 500, 700, 1000, 1200), (5461, 5000, 5200, 1000, 461), (5461, 500, 400, 1000, 1000), (5461, 6000, 6000, 1000, 0)],
)
def test_a_mac_may_take_what_neither_metal_nor_other_programs_hold(
    monkeypatch: pytest.MonkeyPatch, limit_mib: int, live_mib: int, held_mib: int, available_mib: int, free_mib: int
) -> None:
    mps = Counted(driver_allocated_memory=held_mib * MIB, current_allocated_memory=live_mib * MIB, recommended_max_memory=limit_mib * MIB)
    stand_in(monkeypatch, Counted(is_initialized=False), mps, metal=True)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available_mib * MIB, total=8192 * MIB))
    assert read().free_bytes == free_mib * MIB


def test_a_torch_still_being_imported_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    torch.__spec__._initializing = True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert isinstance(read(), Reading)
