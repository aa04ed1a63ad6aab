"""Choose the build of torch that suits this machine's system, processor, card and driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.base import graphics_cards
from app.base.sentence import Sentence, Value, say
from app.launcher.console import Refused

MACOS = 14  # torch's wheels from 2.12 on are for macOS 14 and newer
NEWEST_DRIVER = 580  # which every build works with, and the last one for cards before compute capability 7.5
ROCM = "rocm7.2"
ROCM_TARGETS = frozenset({
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950",
    "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201",
})  # fmt: skip
"""The ROCm wheels of torch 2.13 have kernels for these AMD cards: its .ci/docker/manywheel/build.sh."""
LAST_TORCH: Mapping[str, str] = {"cu126": "2.14.1"}
"""These builds end with the torch named (pytorch #190385): where Hearth asks for a newer one, cards that need such a build keep it."""


@dataclass(frozen=True, slots=True)
class CudaBuild:
    """A build of torch for NVIDIA cards, and the compute capabilities that Hearth takes it for: from the lowest to below `end`."""

    name: str
    driver: int
    lowest: Mapping[str, float]  # by machine
    end: float = 99.0
    systems: tuple[str, ...] = ("Linux", "Windows")


CUDA_BUILDS = (
    # Best first. torch.cuda.PYTORCH_RELEASES_CODE_CC lists what a torch was built for: a test compares. CUDA 13 needs driver 580,
    # CUDA 12 needs 525, Blackwell (10.0 and newer) 570. 2.13 has no cu128, and cu129 on Linux only (pytorch/test-infra PR 8215).
    CudaBuild("cu130", 580, {"x86_64": 7.5, "aarch64": 8.0}),
    CudaBuild("cu129", 570, {"x86_64": 10.0, "aarch64": 10.0}, systems=("Linux",)),
    CudaBuild("cu126", 525, {"x86_64": 5.0, "aarch64": 8.0}, end=10.0),
)


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
    seen: tuple[str, ...] = ()  # names of the cards that the system sees, asked where nvidia-smi lists none
    gfx_targets: tuple[str, ...] = ()  # of AMD cards
    kfd_opens: bool = True  # whether this user may compute on AMD cards
    macos: int = MACOS


AGAIN = say("torch.again", "{hearth} repair tries again.")


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """`builds` are tried in order until one is installed and proven; "" is the default index."""

    builds: tuple[str, ...]
    because: Sentence
    card: str = ""  # the card that there are builds for
    advice: Sentence = AGAIN  # what to do where none of them could be used


def is_for_card(build: str) -> bool:
    return build.startswith(("cu", "rocm"))


def torch_version(build: str, wanted: str) -> str:
    """Return the version of torch to install with this build: the one wanted, or the last one that has this build."""
    last = LAST_TORCH.get(build, wanted)
    return min(wanted, last, key=lambda each: [int(number) for number in re.findall(r"\d+", each)[:3]])


def choose_build(facts: ComputerFacts) -> BuildChoice:
    """Choose the build of torch for this machine, with the reason, or raise Refused where there is none. Pure."""
    refuse_unsupported(facts)
    if facts.system == "Darwin":
        return BuildChoice(("",), say("torch.metal", "Apple silicon, so the default build, which uses Metal"))
    plain = ("cpu", "") if facts.system == "Linux" else ("",)
    if facts.cards:
        return choose_for_nvidia(facts, plain)
    vendors = {graphics_cards.find_vendor(each): each for each in reversed(facts.seen)}
    if "NVIDIA" in vendors or (facts.nvidia_smi_error and "AMD" not in vendors):
        return BuildChoice(plain, explain_missing_driver(vendors.get("NVIDIA", ""), facts.nvidia_smi_error))
    if "AMD" in vendors and facts.system == "Linux":
        return choose_for_amd(facts, vendors["AMD"], plain)
    if facts.seen:
        why = say(
            "torch.other-card",
            "Hearth cannot compute on your {card}, only on NVIDIA cards, some Radeons under Linux and Apple silicon, so it computes on the processor",
            card=facts.seen[0],
        )
        return BuildChoice(plain, why)
    return BuildChoice(plain, say("torch.no-card", "no graphics card found, so the build for the processor"))


def refuse_unsupported(facts: ComputerFacts) -> None:
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
                "Hearth cannot start on an Intel Mac ({card}), because torch dropped Intel Macs after 2.2. "
                "Use a Mac with Apple silicon, or a PC with Linux or Windows.",
                card=tuple(facts.seen) or machine,
            )
        )
    if facts.system == "Darwin" and facts.macos < MACOS:
        raise Refused(
            say(
                "torch.macos",
                "This Mac runs macOS {macos}, and torch, which computes for Hearth, needs macOS {needed}. Every Mac with Apple silicon can be "
                "updated: open System Settings, General, Software Update, then start Hearth again.",
                macos=facts.macos,
                needed=MACOS,
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


def choose_for_nvidia(facts: ComputerFacts, plain: tuple[str, ...]) -> BuildChoice:
    """Choose by the newest card, but for a build that also supports the oldest one where there is such a build."""
    kind = "aarch64" if facts.machine.lower() in ("arm64", "aarch64") else "x86_64"
    card = max(facts.cards, key=lambda each: each.capability or 0.0)
    oldest = min(each.capability or card.capability or 0.0 for each in facts.cards)

    def pick(capability: float | None, until: int) -> tuple[CudaBuild, ...]:
        return tuple(
            each
            for each in CUDA_BUILDS
            if facts.system in each.systems
            and each.driver <= until
            and (each.name == "cu126" if capability is None else each.lowest[kind] <= capability < each.end)
        )

    fit = pick(card.capability, NEWEST_DRIVER)
    ready = pick(card.capability, card.driver)
    for_all = tuple(each for each in ready if each.lowest[kind] <= oldest) or ready
    values: dict[str, Value] = {
        "card": card.name,
        "driver": card.driver,
        "capability": card.capability or 0.0,
        "oldest": oldest,
        "newest": NEWEST_DRIVER,
        "needed": min((each.driver for each in fit), default=NEWEST_DRIVER),
        "lowest": min(each.lowest[kind] for each in CUDA_BUILDS),
    }
    if not fit:
        why = say(
            "torch.too-old",
            "{card}: compute capability {capability}: no CUDA build supports less than {lowest}, so Hearth computes on the processor",
            **values,
        )
    elif not ready:
        why = say(
            "torch.driver-old",
            "{card}: its driver {driver} is older than {needed}, which the builds for it need, so Hearth computes on the processor. "
            "To use the card, update its driver to {newest} or newer, then run {hearth} repair",
            **values,
        )
    elif card.capability is None:
        why = say("torch.unknown", "{card}: compute capability unknown, so the build for most cards", **values)
    elif for_all[0].name == "cu130":
        why = say("torch.cuda-13", "{card}: compute capability {capability}, driver {driver}, so CUDA 13.0", **values)
    elif oldest < CUDA_BUILDS[0].lowest[kind]:
        why = say("torch.old", "{card}: compute capability {oldest}: only cu126 builds still support cards before 7.5", **values)
    else:
        why = say(
            "torch.cuda-12",
            "{card}: compute capability {capability}, driver {driver}, so the {build} build, because CUDA 13 needs driver 580. "
            "For CUDA 13, update the driver, then run {hearth} repair",
            **values,
            build=for_all[0].name,
        )
    builds = (*(each.name for each in for_all), *plain)
    if not fit:
        return BuildChoice(builds, why)
    if card.driver >= NEWEST_DRIVER:
        return BuildChoice(builds, why, card.name)
    advice = say("torch.update", "Update the card's driver to {newest} or newer, then run {hearth} repair.", newest=NEWEST_DRIVER)
    return BuildChoice(builds, why, card.name, advice)


def choose_for_amd(facts: ComputerFacts, card: str, plain: tuple[str, ...]) -> BuildChoice:
    """Choose the ROCm build where it has kernels for the card and this user may use it."""
    targets = tuple(facts.gfx_targets)
    if not facts.gfx_targets or facts.machine.lower() not in ("x86_64", "amd64"):
        why = say(
            "torch.amd-no-kernel",
            "Your {card} cannot be used, because Linux offers no computing on it here (/dev/kfd), so Hearth computes on the processor",
            card=card,
        )
    elif not ROCM_TARGETS.intersection(facts.gfx_targets):
        why = say(
            "torch.amd-unsupported",
            "Your {card} ({target}) is not supported by torch's builds for AMD cards, so Hearth computes on the processor",
            card=card,
            target=targets,
        )
    elif not facts.kfd_opens:
        why = say(
            "torch.amd-forbidden",
            "Your {card} is supported, but you may not open /dev/kfd, so Hearth computes on the processor. To use the card, run "
            "`sudo usermod -aG render,video $USER`, sign out and in again, then run {hearth} repair",
            card=card,
        )
    else:
        why = say("torch.rocm", "{card} ({target}), so the build for AMD cards, {build}", card=card, target=targets, build=ROCM)
        return BuildChoice((ROCM, *plain), why, card)
    return BuildChoice(plain, why)


def explain_missing_driver(card: str, fault: str) -> Sentence:
    if card and not fault:
        return say(
            "torch.no-driver",
            "Your {card} has no driver from NVIDIA (nvidia-smi is missing), so Hearth computes on the processor. To use the card, install "
            "the driver, {newest} or newer, then run {hearth} repair",
            card=card,
            newest=NEWEST_DRIVER,
        )
    if card:
        return say(
            "torch.silent-card",
            "NVIDIA's driver does not reach your {card} ({fault}), so Hearth computes on the processor. To use the card, install the driver "
            "anew, {newest} or newer, restart the computer, then run {hearth} repair",
            card=card,
            fault=fault,
            newest=NEWEST_DRIVER,
        )
    return say("torch.no-answer", "nvidia-smi is installed but lists no card ({fault}), so the build for the processor", fault=fault)
