"""Install an environment in a slot with pip, prove that its torch computes correctly, and add extras."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from app.duration import word_duration
from app.languages import word_for
from app.launcher import machine_facts, slots, torch_build
from app.launcher.console import Halted, Refused, fit_line, tell
from app.launcher.proof import describe_remark, describe_trouble, prove_torch
from app.launcher.slots import TOP, Requirements, python_of
from app.launcher.torch_build import torch_version
from app.sentence import Sentence, say

PLAIN_BYTES, CUDA_BYTES, CUDA_DOWNLOAD_BYTES = 3 << 30, 9 << 30, 3 << 30
SPACE = {"cu": CUDA_BYTES, "ro": 20 << 30}  # by a build's first letters; ROCm brings kernels for all cards
BY_ITSELF = frozenset({"window"})
"""Extras that every environment gets. They are no dependencies: where one cannot be installed, Hearth works without it."""
TIME_WIDTH = len("9 min 59 s")  # so that what stands behind it keeps its place
REASONS = (
    (r"No space left|not enough space|Errno 28", say("pip.disk", "The disk is full. Free some space and start again; downloads are kept.")),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        say(
            "pip.certificate",
            "A secure connection could not be verified. A virus scanner or company proxy may be intercepting it; switch that off or try another network.",
        ),
    ),
    (
        r"Temporary failure in name resolution|getaddrinfo|NewConnectionError|ConnectTimeout|Network is unreachable|ProxyError|Read timed out",
        say("pip.network", "There is no network connection. Check it and start again; downloads are kept."),
    ),
    (
        r"WinError 206|Long Path support",
        say("pip.path", "A path is longer than Windows allows. Move Hearth to a shorter folder, such as C:\\Hearth, and start again."),
    ),
    (r"No matching distribution found for torch", say("pip.python", "torch does not support this Python. Use Python 3.11 to 3.14.")),
)


def run(command: Sequence[str | Path], log: Path, what: Sentence) -> None:
    """Run a command with its output in the log and one line of progress on the terminal; raise Refused with the reason if it fails."""
    astray = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONHOME")
    keep = {name: value for name, value in os.environ.items() if name not in astray}
    began = shown = time.monotonic()
    width = max(0, os.get_terminal_size(sys.stderr.fileno()).columns - 1) if sys.stderr.isatty() else 0
    with log.open("ab") as noise:
        start = noise.tell()
        child = subprocess.Popen(
            [str(each) for each in command], stdout=noise, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=keep
        )
        try:
            while child.poll() is None:
                time.sleep(0.1)
                now = time.monotonic()
                if now - shown >= (0.5 if width else 20):
                    shown = now
                    words = (word_for(sys.stderr, each) for each in (word_duration(now - began), what, *describe_progress(log)))
                    line = f"  {fit_line(next(words), TIME_WIDTH)}  " + "  ".join(words)
                    sys.stderr.write(f"\r{fit_line(line, width)}" if width else f"{line}\n")
                    sys.stderr.flush()
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            if width:
                sys.stderr.write("\r" + " " * width + "\r")
    if child.returncode:
        with log.open("rb") as read:
            read.seek(start)
            text = read.read().decode("utf-8", "replace")
        lines = [each for each in text.splitlines() if each.strip()]
        last = next(
            (each for each in reversed(lines) if each.startswith("ERROR") and "Impossible" not in each),
            lines[-1] if lines else "No message.",
        )
        why = next((reason for pattern, reason in REASONS if re.search(pattern, text)), last)
        raise Refused(say("start.failed", "{what} failed. {why} Full log: {log}", what=what, why=why, log=str(log)))


def describe_progress(log: Path) -> tuple[Sentence, ...]:
    """Word pip's last meaningful line of output for a person, if there is one."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        text = file.read().decode("utf-8", "replace")
    found = re.findall(r"(?:Collecting|Downloading|Using cached|Building wheel for) (\S+)|(Installing collected packages)", text)
    if not found:
        return ()
    if found[-1][1]:
        return (say("pip.installs", "installing packages"),)
    file = found[-1][0].rsplit("/", 1)[-1]
    count = re.findall(r"^Progress (\d+) of (\d+)", text, re.MULTILINE)
    done, total = (int(each) >> 20 for each in count[-1]) if count else (0, 0)
    if not total:
        return (say("pip.file", "downloading {file}", file=file),)
    return (say("pip.progress", "downloading {file}, {done} of {total} MB", file=file, done=done, total=total),)


def pip_install(slot: Path, log: Path, what: Sentence, *arguments: str) -> None:
    # modules are compiled when first imported
    flags = ["--no-input", "--disable-pip-version-check", "--no-compile", "-c"]
    pins = slot / "constraints.txt" if (slot / "constraints.txt").is_file() else TOP / "constraints.txt"
    run([python_of(slot), "-I", "-m", "pip", "install", *flags, pins, *arguments], log, what)


def write_pins(slot: Path, version: str, build: str) -> None:
    """Write the slot's own constraints, by which later packages keep this torch too, and a cuDNN that drives old cards."""
    pins = (TOP / "constraints.txt").read_text("utf-8")
    pins = re.sub(r"^torch==.*$", f"torch=={version}", pins, flags=re.MULTILINE)
    (slot / "constraints.txt").write_text(pins + ("nvidia-cudnn-cu12<9.11\n" if build == "cu126" else ""), "utf-8")


def make_environment(slot: Path, want: Requirements) -> None:
    """Make the environment in this slot, emptied first; write the stamp last."""
    began = time.monotonic()
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
        slot, digest=want.digest, extras={}, build=build, because=str(chosen.because), proof=proof, commit=slots.current_commit(),
        made=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )  # fmt: skip
    took = word_duration(time.monotonic() - began)
    tell(say("start.ready", "Ready after {time}. To add Hearth to your apps: start.py install-app", time=took))
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
    if slot.exists():
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
        run([python_of(slot), "-I", "-m", "pip", "uninstall", "--yes", "torch", "triton", "triton-rocm"], log, removing)
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
                free=f"{free / (1 << 30):.1f}",
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


def renew(folder: Path, want: Requirements, check: Callable[[Path], None] | None = None) -> Path:
    """Make a new environment in the other slot, check it, then swap. Call under the lock; the old slot stays."""
    old = slots.current_slot(folder)
    new = slots.other_slot(old) if slots.read_stamp(old) else old
    if new == old and old.exists():
        tell(say("start.interrupted", "An earlier installation was interrupted; starting it again."))
    make_environment(new, want)
    for name in sorted((slots.read_extras(slots.read_stamp(old)).keys() | BY_ITSELF) & want.extras.keys() - {"test"}):
        try:
            add(new, want, name)
        except Refused as fault:
            tell(
                say("start.without", "{fault} Continuing without {name}; start.py add {name} tries again.", fault=fault.sentence, name=name)
            )
    if check:
        check(new)
    slots.replace_text(folder / "current", new.name)
    return new


def add(slot: Path, want: Requirements, name: str) -> None:
    pip_install(slot, slot.parent / "install.log", say("start.adds", "Adding {name}", name=name), *want.extras[name])
    said = slots.read_stamp(slot)
    slots.write_stamp(slot, **{**said, "extras": {**slots.read_extras(said), name: list(want.extras[name])}})


def ensure_ready(folder: Path, want: Requirements, *extras: str) -> Path:
    """Return the slot to run from, made or renewed if needed, with these extras in it."""
    slot = slots.current_slot(folder)
    said = slots.read_stamp(slot)

    def lacks() -> list[str]:
        return [each for each in extras if slots.read_extras(said).get(each) != list(want.extras.get(each, ()))]

    if slots.serves(said, want) and said.get("top") == str(TOP) and not lacks():
        return slot
    with slots.lock(folder):
        slot = slots.current_slot(folder)
        said = slots.read_stamp(slot)
        if not slots.serves(said, want):
            try:
                slot = renew(folder, want)
            except Refused as fault:
                if not said or extras:
                    raise
                tell(fault.sentence)
                tell(say("start.old", "This version of Hearth needs a newer environment; continuing with the old one, which may not work."))
                return slot
        said = slots.read_stamp(slot)
        for each in lacks():
            add(slot, want, each)
        slots.write_stamp(slot, **slots.read_stamp(slot))
    return slot
