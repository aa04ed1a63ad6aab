"""probe(): facts of this machine as torch and the system tell them, and of machines that are not here, told by stand-ins."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from app.base import graphics_cards
from app.base.trouble import Trouble
from app.compat.machine import hardware
from app.compat.machine.hardware import Hardware, probe
from app.compat.machine.verdicts import verdict_file
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import list_quirks
from tests.support.other_functions import set_in
from tests.support.places import TOP

GIB = 1 << 30


def test_this_machine_is_described_as_it_is() -> None:
    found = probe()
    assert found.torch == torch.__version__ and not found.pretended
    assert found.ram_bytes == psutil.virtual_memory().total
    assert 0 < found.free_bytes <= found.memory_bytes
    assert found.cores >= 1 and found.name and found.system_version
    assert found.packages is not None and ("gguf" in found.packages) == (importlib.util.find_spec("gguf") is not None)
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        assert found.kind == "cpu" and found.memory_bytes == found.ram_bytes and found.unified
    assert decide(found).device in ("cpu", "cuda", "mps")


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, ...], str]:
    """What programs of the system answer; those not named are not installed."""
    answers: dict[tuple[str, ...], str] = {}

    def run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        for known, answer in answers.items():
            if tuple(command[: len(known)]) == known:
                return subprocess.CompletedProcess(command, 0, answer, "")
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "run", run)
    return answers


def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def card(monkeypatch: pytest.MonkeyPatch, name: str, capability: tuple[int, int], arches: list[str]) -> None:
    properties = SimpleNamespace(name=name, major=capability[0], minor=capability[1], is_integrated=0)
    for asked, answer in (
        ("is_available", True),
        ("get_device_properties", properties),
        ("mem_get_info", (5 * GIB, 6 * GIB)),
        ("get_arch_list", arches),
    ):
        monkeypatch.setattr(torch.cuda, asked, lambda *_, answer=answer: answer)


def test_a_card_is_asked_for_its_own_memory(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    card(monkeypatch, "NVIDIA GeForce GTX 1660", (7, 5), ["sm_75", "sm_80"])
    system["nvidia-smi", "--query-gpu=driver_version"] = "566.36\n566.36\n"
    found = probe()
    assert (found.kind, found.name, found.capability, found.driver) == ("cuda", "NVIDIA GeForce GTX 1660", (7, 5), "566.36")
    assert (found.memory_bytes, found.free_bytes, found.unified) == (6 * GIB, 5 * GIB, False)
    assert found.ram_bytes == psutil.virtual_memory().total and found.arch_list == ("sm_75", "sm_80")


def test_an_old_card_under_a_new_torch_gets_a_sentence_not_a_kernel_image(
    monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]
) -> None:
    card(monkeypatch, "NVIDIA GeForce GTX 1060 6GB", (6, 1), ["sm_75", "sm_80", "sm_90"])
    with pytest.raises(Trouble, match=r"GTX 1060.*cu126"):
        decide(probe())


def test_an_amd_card_is_rocm_and_has_no_capability(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    card(monkeypatch, "AMD Radeon RX 7900 XTX", (11, 0), [])
    monkeypatch.setattr(torch.version, "hip", "7.0")
    found = probe()
    assert (found.kind, found.capability, found.arch_list) == ("rocm", None, ())
    assert decide(found).device == "cuda"  # torch's name for it


@pytest.mark.parametrize(
    ("gfx", "dtype"), [("gfx1030", "float16"), ("gfx1032", "float16"), ("gfx1100", "bfloat16"), ("gfx90a:sramecc+:xnack-", "bfloat16")]
)
def test_a_radeon_without_bfloat16_takes_float16(
    gfx: str, dtype: str, monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]
) -> None:
    card(monkeypatch, "AMD Radeon", (10, 3), [])
    torch.cuda.get_device_properties(0).gcnArchName = gfx
    monkeypatch.setattr(torch.version, "hip", "7.2")
    found = probe()
    assert found.gfx == gfx.partition(":")[0] and decide(found).dtype == dtype


@pytest.mark.parametrize(("number", "refuses", "version"), [(91002, False, "9.10"), (91300, True, "9.13"), (None, False, "")])
def test_the_loaded_cudnn_is_known_even_if_it_does_not_drive_the_card(
    number: int | None, refuses: bool, version: str, monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]
) -> None:
    """torch raises at the first question, as it does for a cuDNN that has no code for the card, and answers at the second."""
    card(monkeypatch, "NVIDIA GeForce GTX 1060 6GB", (6, 1), ["sm_60"])
    faults = [RuntimeError("cuDNN version 91300 is not compatible with devices with SM < 7.5.")] if refuses else []

    def answer() -> int | None:
        if faults:
            raise faults.pop()
        return number

    monkeypatch.setattr(torch.backends.cudnn, "version", answer)
    assert probe().cudnn == version


def test_a_mac_is_asked_for_what_metal_recommends(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 5 * GIB)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1 * GIB)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    system["/usr/sbin/sysctl", "-n", "kern.osproductversion"] = "14.5\n"
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    system["sysctl", "-n", "machdep.cpu.brand_string"] = "Apple M1\n"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=8 * GIB, available=7 * GIB))
    found = probe()
    assert (found.kind, found.name, found.system, found.system_version) == ("mps", "Apple M1", "macos", "14.5")
    assert (found.memory_bytes, found.limit_bytes, found.free_bytes, found.unified) == (8 * GIB, 5 * GIB, 4 * GIB, True)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=8 * GIB, available=2 * GIB))
    assert probe().free_bytes == 2 * GIB  # other programs hold the rest


@pytest.mark.parametrize(
    ("told", "version", "row"), [("26.2", "26.2", "mps-graph-26"), ("27.0", "27.0", "mps-graph-27"), ("15.6", "15.6", "")]
)
def test_a_mac_is_judged_by_its_own_version(
    told: str, version: str, row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]
) -> None:
    """A Python built for an older macOS says 16.0 on each: neither row would apply, and verdicts would outlive a new macOS."""
    no_device(monkeypatch)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("16.0", ("", "", ""), "arm64"))
    system["/usr/sbin/sysctl", "-n", "kern.osproductversion"] = told
    found = replace(probe(), kind="mps", torch="2.12.0")
    assert found.system_version == version and version in verdict_file(tmp_path, found).name
    assert {each.id for each in list_quirks(found, {})} & {"mps-graph-26", "mps-graph-27"} == {row} - {""}


def test_an_intel_mac_is_told_so(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("12.7", ("", "", ""), "x86_64"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(Trouble, match="Intel Macs"):
        decide(probe())


def test_directml_is_told_so(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    really = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "torch_directml" else really(name))
    with pytest.raises(Trouble, match=r"DirectML.*start\.py repair"):
        decide(probe())


def test_a_card_that_this_torch_cannot_see_is_named(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    system["nvidia-smi", "--query-gpu=name"] = "NVIDIA GeForce GTX 1060 6GB\n"
    found = probe()
    assert found.kind == "cpu" and found.unseen_card == "NVIDIA GeForce GTX 1060 6GB"
    assert decide(found).warnings


LSPCI = """\
00:02.0 "VGA compatible controller" "Intel Corporation" "AlderLake-S GT1 [UHD Graphics 770]"
03:00.0 "VGA compatible controller" "Advanced Micro Devices, Inc. [AMD/ATI]" "Navi 23 [Radeon RX 6600/6600 XT/6600M]" -rc7
"""


@pytest.mark.parametrize(
    ("said", "unseen"),
    [
        (LSPCI, "AMD Radeon RX 6600/6600 XT/6600M"),
        (LSPCI.splitlines()[0], ""),  # inside of the processor: nothing that a person would miss
        ('05:00.0 "Display controller" "Intel Corporation" "DG2 [Arc A770]"', "Intel Arc A770"),
        ("", ""),
    ],
)
def test_other_cards_are_named_too(said: str, unseen: str, monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    set_in(monkeypatch, graphics_cards, "shutil", which=lambda *_, **__: "lspci")
    monkeypatch.setattr(graphics_cards, "DRM", TOP / "nowhere")
    system["lspci", "-mm"] = said
    found = probe()
    assert found.unseen_card == unseen
    assert [str(each.sentence).partition(",")[0] for each in decide(found).warnings] == [f"This machine has a {unseen}"] * bool(unseen)


def test_a_radeon_that_its_driver_does_not_name_takes_the_systems_name(
    monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]
) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.2")
    monkeypatch.setattr(hardware, "find_names", lambda: ("AMD Radeon RX 7900 XT/7900 XTX", "AMD Raphael"))
    for told, name in (("AMD Radeon Graphics", "AMD Radeon RX 7900 XT/7900 XTX"), ("AMD Radeon RX 7800 XT", "AMD Radeon RX 7800 XT")):
        card(monkeypatch, told, (11, 0), ["gfx1100"])
        assert probe().name == name


def test_a_strange_machine_does_not_stop_it(monkeypatch: pytest.MonkeyPatch, system: dict[tuple[str, ...], str]) -> None:
    no_device(monkeypatch)
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    monkeypatch.setattr(platform, "machine", lambda: "")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "release", lambda: "")
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: None)
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    found = probe()
    assert (found.kind, found.name, found.cores, found.fast_bf16) == ("cpu", "CPU", 1, False)
    assert decide(found)


def test_a_program_that_hangs_or_fails_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: Sequence[str], **told: Any) -> None:
        raise subprocess.TimeoutExpired(command, told["timeout"])

    monkeypatch.setattr(subprocess, "run", hang)
    assert hardware._nvidia("name") == ""
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 9, "NVIDIA-SMI has failed", ""))
    assert hardware._nvidia("name") == ""


def test_looking_changes_nothing() -> None:
    before = dict(os.environ)
    assert probe().torch and dict(os.environ) == before
    done = subprocess.run(
        [sys.executable, "-c", "import sys, app.compat.machine.hardware, app.compat.planning.decide; assert 'torch' not in sys.modules"],
        capture_output=True,
        text=True,
        cwd=TOP,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # an emulated interpreter finds no packages by itself
    )
    assert done.returncode == 0, done.stderr
    assert Hardware().kind == "cpu"
