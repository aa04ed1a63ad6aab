"""Which torch for which machine: its facts -> the builds tried, and why; and the last torch that has a build."""

from __future__ import annotations

import re

import pytest
import torch

from app.base.start_command import name_command
from app.launcher import console, slots
from app.launcher.machine_facts import parse_cards
from app.launcher.torch_build import CUDA_BUILDS, Card, ComputerFacts, choose_build, torch_version

GARBLED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
NVIDIA = [
    ("GTX 1060", "NVIDIA GeForce GTX 1060 6GB, 535.183.01, 6.1", "cu126", "before 7.5"),
    ("GTX 1060, newest driver", "NVIDIA GeForce GTX 1060 6GB, 580.95.05, 6.1", "cu126", "before 7.5"),
    (
        "GTX 1060, old driver",
        "GeForce GTX 1060 6GB, 470.223.02, 6.1",
        "",
        r"1060 6GB: its driver 470 is older than 525.*update its driver to 580",
    ),
    ("GTX 1060, too old to tell", "GeForce GTX 1060 6GB, 418.39", "", "driver 418 is older than 525"),
    ("GTX 750", "NVIDIA GeForce GTX 750, 535.1, 5.0", "cu126", "before 7.5"),
    ("capability not told", "NVIDIA Graphics Device, 535.10, [N/A]", "cu126", "unknown"),
    ("GTX 680", "GeForce GTX 680, 525.60, 3.0", "", "GTX 680: .*no CUDA build supports less than 5.0, so Hearth computes on the processor"),
    ("GTX 680, its last driver", "GeForce GTX 680, 470.256, 3.0", "", "no CUDA build supports less than 5.0"),
    ("V100", "Tesla V100-SXM2-16GB, 550.54.15, 7.0", "cu126", "before 7.5"),
    ("Tesla T4", "Tesla T4, 550.54.15, 7.5", "cu126", "cu126 build, because CUDA 13 needs driver 580"),
    ("Tesla T4, new driver", "Tesla T4, 580.65.06, 7.5", "cu130 cu126", "CUDA 13.0"),
    ("RTX 3060", "NVIDIA GeForce RTX 3060, 551.86, 8.6", "cu126", "13 needs driver 580"),
    ("RTX 4090", "NVIDIA GeForce RTX 4090, 581.15, 8.9", "cu130 cu126", "CUDA 13.0"),
    ("1060 beside 3090", "GTX 1060, 580.1, 6.1\nRTX 3090, 580.1, 8.6", "cu126", "capability 6.1"),
    ("a warning before the card", "WARNING: infoROM is corrupted\nTesla T4, 580.65.06, 7.5", "cu130 cu126", "Tesla T4"),
]
BLACKWELL = [
    ("Linux", "NVIDIA GeForce RTX 5090, 580.65.06, 12.0", "cu130 cu129 cpu", "CUDA 13.0"),
    ("Linux", "GTX 1060, 580.1, 6.1\nNVIDIA GeForce RTX 5090, 580.1, 12.0", "cu130 cu129 cpu", "RTX 5090"),
    ("Linux", "NVIDIA GeForce RTX 5070, 570.86, 12.0", "cu129 cpu", "cu129 build, because CUDA 13 needs driver 580"),
    ("Linux", "NVIDIA GeForce RTX 5070, 566.36, 12.0", "cpu", "5070: its driver 566 is older than 570.*update its driver to 580 or newer"),
    ("Windows", "NVIDIA GeForce RTX 5090, 580.88, 12.0", "cu130", "CUDA 13.0"),
    ("Windows", "NVIDIA GeForce RTX 5070, 572.16, 12.0", "", "5070: its driver 572 is older than 580.*update its driver to 580 or newer"),
    ("Windows", "NVIDIA GeForce RTX 5070, 579.99, 12.0", "", "5070: its driver 579 is older than 580"),
]
ARM = [
    ("NVIDIA GH200, 550.54, 9.0", "cu126", "13 needs driver 580"),
    ("NVIDIA GB10, 580.95, 12.1", "cu130 cu129", "CUDA 13.0"),
    ("NVIDIA T4G, 580.95, 7.5", "", "T4G: .*no CUDA build supports less than 8.0"),
]


@pytest.mark.parametrize(("told", "builds", "why"), [row[1:] for row in NVIDIA], ids=[row[0] for row in NVIDIA])
@pytest.mark.parametrize(("system", "machine", "plain"), [("Linux", "x86_64", ["cpu", ""]), ("Windows", "AMD64", [""])])
def test_nvidia(told: str, builds: str, why: str, system: str, machine: str, plain: list[str]) -> None:
    picked = choose_build(ComputerFacts(system, machine, parse_cards(told)))
    assert [*picked.builds] == builds.split() + plain
    assert re.search(why, str(picked.because)), picked.because


@pytest.mark.parametrize(("system", "told", "builds", "why"), BLACKWELL)
def test_blackwell_between_drivers_is_told_to_update(system: str, told: str, builds: str, why: str) -> None:
    """torch 2.13 has no cu128, and cu129 on Linux only."""
    picked = choose_build(ComputerFacts(system, "x86_64" if system == "Linux" else "AMD64", parse_cards(told)))
    assert [*picked.builds] == [*builds.split(), ""]
    assert re.search(why, str(picked.because)), picked.because


@pytest.mark.parametrize(("told", "builds", "why"), ARM)
def test_wheels_for_arm_begin_with_newer_cards(told: str, builds: str, why: str) -> None:
    picked = choose_build(ComputerFacts("Linux", "aarch64", parse_cards(told)))
    assert [*picked.builds] == [*builds.split(), "cpu", ""]
    assert re.search(why, str(picked.because)), picked.because


def test_where_no_build_for_the_card_works_the_driver_is_the_advice() -> None:
    for driver, advice in ((572, f"driver to 580 or newer, then run {name_command()} repair"), (580, "start.py repair tries again")):
        picked = choose_build(ComputerFacts("Linux", "x86_64", (Card("RTX 5070", driver, 12.0),)))
        assert picked.card == "RTX 5070" and advice in str(picked.advice)
    assert not choose_build(ComputerFacts("Linux", "x86_64", (Card("GTX 680", 470, 3.0),))).card, "no driver helps this one"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_builds_are_those_that_this_torch_was_released_with(machine: str) -> None:
    """With a torch that drops a build, or a build that drops a card, this fails: CUDA_BUILDS and LAST_TORCH need a look."""
    released = torch.cuda.PYTORCH_RELEASES_CODE_CC

    def runs(build: str, capability: float) -> bool:
        codes = released[f"{build[2:4]}.{build[4:]}"][machine]
        return any(torch.cuda._code_compatible_with_device(round(capability * 10), code) for code in codes)

    known = [5.0, 5.2, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 10.3, 12.0, 12.1]
    for build in CUDA_BUILDS:
        taken = [each for each in known if build.lowest[machine] <= each < build.end]
        assert taken and all(runs(build.name, each) for each in taken), build
    served = [each for each in known if any(build.lowest[machine] <= each < build.end for build in CUDA_BUILDS)]
    assert served == [each for each in known if any(runs(f"cu{name.replace('.', '')}", each) for name in released)], "no card is left out"


def test_a_build_that_ends_keeps_its_last_torch() -> None:
    wanted = slots.read_requirements().torch
    assert torch_version("cu126", wanted) == torch_version("cu130", wanted) == wanted, "as long as there is one"
    assert [torch_version("cu126", each) for each in ("2.9.1", "2.14.0", "2.15.0", "2.15.1", "3.0.0")] == [
        "2.9.1",
        "2.14.0",
        *["2.14.1"] * 3,
    ]
    assert torch_version("cu130", "2.15.0") == torch_version("", "2.15.0") == "2.15.0"


RX_6600, RX_7900, ARC = "AMD Radeon RX 6600/6600 XT/6600M", "AMD Radeon RX 7900 XT/7900 XTX", "Intel Arc A770"
NAVI_31, NAVI_23 = ("gfx1100",), ("gfx1032",)


@pytest.mark.parametrize(
    ("facts", "builds", "why"),
    [
        (ComputerFacts("Darwin", "arm64"), "", "Metal"),
        (ComputerFacts("Linux", "x86_64"), "cpu", "no graphics card found"),
        (ComputerFacts("Linux", "aarch64"), "cpu", "no graphics card found"),
        (ComputerFacts("Windows", "AMD64"), "", "no graphics card found"),
        (ComputerFacts("Linux", "x86_64", nvidia_smi_error=GARBLED), "cpu", GARBLED),
        (
            ComputerFacts("Linux", "x86_64", nvidia_smi_error=GARBLED, seen=("NVIDIA GeForce GTX 1660", "Intel UHD Graphics 630")),
            "cpu", "your NVIDIA GeForce GTX 1660 .*couldn't communicate.*install the driver anew, 580",
        ),
        (
            ComputerFacts("Linux", "x86_64", seen=("NVIDIA GeForce GTX 1660",)),
            "cpu", rf"Your NVIDIA GeForce GTX 1660 has no driver from NVIDIA.*then run {name_command()} repair",
        ),
        (ComputerFacts("Linux", "x86_64", seen=(RX_7900,), gfx_targets=NAVI_31), "rocm7.2 cpu", "7900 XTX .gfx1100.*rocm7.2"),
        (ComputerFacts("Linux", "x86_64", seen=(RX_7900, "AMD Raphael"), gfx_targets=("gfx1100", "gfx1036")), "rocm7.2 cpu", RX_7900),
        (ComputerFacts("Linux", "x86_64", nvidia_smi_error=GARBLED, seen=(RX_7900,), gfx_targets=NAVI_31), "rocm7.2 cpu", RX_7900),
        (
            ComputerFacts("Linux", "x86_64", seen=(RX_7900,), gfx_targets=NAVI_31, kfd_opens=False),
            "cpu", "Your AMD Radeon RX 7900 XT/7900 XTX is supported, but you may not open /dev/kfd.*usermod",
        ),
        (
            ComputerFacts("Linux", "x86_64", seen=(RX_6600,), gfx_targets=NAVI_23),
            "cpu", "Your AMD Radeon RX 6600/6600 XT/6600M .gfx1032. is not supported by torch's builds for AMD cards, so Hearth computes on the processor",
        ),
        (ComputerFacts("Linux", "x86_64", seen=(RX_7900,)), "cpu", "Your AMD Radeon RX 7900.*no computing on it here"),
        (ComputerFacts("Linux", "aarch64", seen=(RX_7900,), gfx_targets=NAVI_31), "cpu", "Your AMD Radeon RX 7900"),
        (ComputerFacts("Windows", "AMD64", seen=("AMD Radeon RX 6600",)), "", "your AMD Radeon RX 6600, only on NVIDIA"),
        (ComputerFacts("Linux", "x86_64", seen=(ARC, "Intel UHD Graphics 770")), "cpu", "your Intel Arc A770, only on NVIDIA.*on the processor"),
        (ComputerFacts("Windows", "AMD64", seen=("Intel(R) Arc(TM) A770 Graphics",)), "", r"your Intel\(R\) Arc\(TM\) A770"),
    ],
)  # fmt: skip
def test_without_a_card_of_nvidia(facts: ComputerFacts, builds: str, why: str) -> None:
    picked = choose_build(facts)
    assert [*picked.builds] == [*builds.split(), ""]
    assert re.search(why, str(picked.because)), picked.because
    assert "no graphics card" in str(picked.because) or any(each in str(picked.because) for each in (*facts.seen, GARBLED, "Metal"))


@pytest.mark.parametrize(
    ("facts", "why", "cure"),
    [
        (ComputerFacts("Darwin", "x86_64", seen=("AMD Radeon Pro 5500M",)), r"Intel Mac \(AMD Radeon Pro 5500M\)", "Apple silicon"),
        (ComputerFacts("Darwin", "x86_64"), r"Intel Mac \(x86_64\)", "Apple silicon"),
        (ComputerFacts("Darwin", "arm64", macos=13), "runs macOS 13, and torch, .* needs macOS 14", "Software Update"),
        (ComputerFacts("Linux", "armv7l"), "armv7l", "64-bit"),
        (ComputerFacts("Windows", "x86"), "x86", "64-bit"),
        (ComputerFacts("Windows", "ARM64"), "Python for ARM", "Intel and AMD"),
    ],
)
def test_refused_with_a_cure(facts: ComputerFacts, why: str, cure: str) -> None:
    with pytest.raises(console.Refused, match=why) as refused:
        choose_build(facts)
    assert cure in str(refused.value)
