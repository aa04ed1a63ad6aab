"""Make an environment in an empty slot: choose the build of torch, install all packages, prove that torch computes correctly."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.base.sentence import Sentence, say
from app.launcher import machine_facts, slot_lock, slots, torch_build
from app.launcher.console import Halted, Refused, tell
from app.launcher.pip_command import pip_install, run
from app.launcher.proof import describe_remark, describe_trouble, prove_torch
from app.launcher.slots import TOP, Requirements, python_of
from app.launcher.torch_build import torch_version

PLAIN_BYTES, CUDA_BYTES, CUDA_DOWNLOAD_BYTES = 3 << 30, 9 << 30, 3 << 30
SPACE = {"cu": CUDA_BYTES, "ro": 20 << 30}  # by a build's first letters; ROCm brings kernels for all cards


def write_pins(slot: Path, version: str, build: str) -> None:
    """Write the slot's own constraints, by which later packages keep this torch too, and a cuDNN that drives old cards."""
    pins = (TOP / "constraints.txt").read_text("utf-8")
    pins = re.sub(r"^torch==.*$", f"torch=={version}", pins, flags=re.MULTILINE)
    (slot / "constraints.txt").write_text(pins + ("nvidia-cudnn-cu12<9.11\n" if build == "cu126" else ""), "utf-8")


def make_environment(slot: Path, want: Requirements) -> None:
    """Make the environment in this slot, emptied first; write the stamp last."""
    if importlib.util.find_spec("ensurepip") is None:
        raise Refused(
            say(
                "start.no-venv",
                "This Python cannot make environments because ensurepip is missing. "
                "On Debian and Ubuntu, run `sudo apt install python3-venv`, then start again.",
            )
        )
    chosen = torch_build.choose_build(machine_facts.detect_facts())
    builds = [each for each in chosen.builds if not each or machine_facts.is_offered(each, torch_version(each, want.torch))]
    require_space(SPACE.get(builds[0][:2], PLAIN_BYTES), slot)
    tell(say("start.makes", "Making Hearth's environment in {slot}. This happens once; later starts take a second.", slot=str(slot)))
    tell(say("start.torch", "Build of torch {version}: {why}.", version=torch_version(builds[0], want.torch), why=chosen.because))
    if builds[0] != chosen.builds[0]:
        tell(
            say(
                "start.no-index",
                "The index of the {build} builds cannot be reached, or lacks one for this Python; continuing with {next}.",
                build=chosen.builds[0],
                next=name_build(builds[0]),
            )
        )
    log = slot.parent / "install.log"
    flags = make_empty(slot, log)
    build, proof = install_first_proven(slot, log, want, builds, flags)
    if proof["trouble"]:
        tell(
            say(
                "start.tested-processor",
                "Tested on the processor only, because of an error on {name}: {trouble}. torch {version} works and computes correctly there.",
                name=proof["name"],
                trouble=describe_trouble(proof),
                version=proof["torch"],
            )
        )
    else:
        tell(
            say(
                "start.tested",
                "Tested on {name}: torch {version} works and computes correctly.",
                name=proof["name"],
                version=proof["torch"],
            )
        )
    if (remark := describe_remark(proof)) is not None:
        tell(remark)
    slots.write_stamp(
        slot,
        digest=want.digest,
        extras={},
        build=build,
        because=str(chosen.because),
        proof=proof,
        commit=slots.current_commit(),
        made=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    if chosen.card and proof["kind"] == "cpu":
        tell(
            say(
                "start.card-unused",
                "Your {card} is not used: no build of torch for it could be installed here and pass the test, so Hearth computes on the "
                "processor. {advice}",
                card=chosen.card,
                advice=chosen.advice,
            )
        )


def make_empty(slot: Path, log: Path) -> tuple[str, ...]:
    """Make an environment with nothing but pip in it, and return pip's options for showing progress."""
    with slot_lock.emptied(slot):
        shutil.rmtree(slot, ignore_errors=True)
    if slot.exists():
        raise Refused(
            say("start.in-use", "The files left in {slot} cannot be removed. Close Hearth if it is open, and start again.", slot=str(slot))
        )
    log.write_bytes(b"")
    run([sys.executable, "-m", "venv", slot], log, say("start.empties", "Making an empty environment"))
    installer = re.search(r"^pip==\S+", (TOP / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    if not installer:
        return ()
    # the newest pip shows progress and resumes broken downloads
    pip_install(slot, log, say("start.installer", "Downloading the installer"), installer[0])
    return ("--progress-bar", "raw")


def name_build(build: str) -> str | Sentence:
    return build or say("start.default-index", "the default index")


def install_first_proven(
    slot: Path, log: Path, want: Requirements, builds: Sequence[str], flags: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Install the first build of torch that works with the card; keep the last one regardless."""
    for build in builds:
        last = build == builds[-1]
        try:
            proof = install_build(slot, log, want, build, flags)
        except Halted:
            raise
        except Refused as fault:
            if last:
                raise
            tell(say("start.build-failed", "{build}: {fault} Trying the next build.", build=name_build(build), fault=fault.sentence))
            continue
        if last or (not proof["trouble"] and (proof["kind"] == "cuda" or not torch_build.is_for_card(build))):
            return build, proof
        why = describe_trouble(proof) if proof["trouble"] else say("start.no-card", "it finds no card")
        tell(say("start.build-wrong", "The {build} build does not work with this card: {why}. Trying the next one.", build=build, why=why))
        removing = say("start.removes", "Removing that build")
        run([python_of(slot), "-I", "-X", "utf8", "-m", "pip", "uninstall", "--yes", "torch", "triton", "triton-rocm"], log, removing)
    raise Refused(say("start.no-build", "There is no build of torch for this machine. Hearth cannot run here."))


def install_build(slot: Path, log: Path, want: Requirements, build: str, flags: Sequence[str]) -> dict[str, str]:
    """Install all packages with this build of torch, and test it."""
    index = ("--extra-index-url", f"{machine_facts.WHEELS}/{build}") if build else ()
    version = torch_version(build, want.torch)
    torch = f"torch=={version}" + (f"+{build}" if build else "")
    write_pins(slot, version, build)
    if not build and brings_cuda(slot, torch):
        require_space(CUDA_BYTES, slot)
        tell(
            say(
                "start.cuda-along",
                "The build from the default index includes NVIDIA's CUDA, even if this machine cannot use it: {download} GB to download and "
                "{disk} GB on disk. If {index} can be reached later, a smaller build may be available: stop with Ctrl+C and start again then.",
                download=CUDA_DOWNLOAD_BYTES >> 30,
                disk=CUDA_BYTES >> 30,
                index=machine_facts.WHEELS,
            )
        )
    pip_install(slot, log, say("start.installs", "Installing"), *flags, *index, torch, *want.core)
    return prove_torch(slot)


def require_space(need: int, slot: Path) -> None:
    free = shutil.disk_usage(slot.parent).free
    if free < need:
        raise Refused(
            say(
                "start.no-room",
                "Hearth's environment needs about {need} GB in {folder}, but only {free} GB are free. Free some space and start again.",
                need=need >> 30,
                folder=str(slot.parent),
                free=round(free / (1 << 30), 1),
            )
        )


def brings_cuda(slot: Path, torch: str) -> bool:
    """Ask pip whether the default index's torch depends on CUDA; a mirror's may not. The install reports errors
    later."""
    flags = ["--quiet", "--dry-run", "--no-deps", "--no-input", "--disable-pip-version-check", "--report", "-"]
    reply = subprocess.run([python_of(slot), "-I", "-m", "pip", "install", *flags, torch], capture_output=True, text=True)
    try:
        needed = json.loads(reply.stdout)["install"][0]["metadata"].get("requires_dist", [])
    except (ValueError, LookupError):
        return False
    elsewhere = "x86_64" if platform.machine() != "x86_64" else "aarch64"
    return platform.system() == "Linux" and any(each.startswith("nvidia-") and elsewhere not in each for each in needed)
