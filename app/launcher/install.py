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

from app.launcher import slots, torch_build
from app.launcher.console import Halted, Refused, clock, tell
from app.launcher.slots import TOP, Requirements, python_of

PLAIN_BYTES, CUDA_BYTES, CUDA_DOWNLOAD_BYTES = 3 << 30, 9 << 30, 3 << 30
PROOF = """
import json, torch
def product(device):
    x = torch.arange(4096, dtype=torch.float32).reshape(64, 64) / 4096
    y = x.to(device)
    return (y @ y.T).softmax(-1).cpu()
kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
name, trouble = kind, ""
try:
    if kind == "cuda":
        name = torch.cuda.get_device_name()
    if not torch.allclose(product(kind), product("cpu"), atol=1e-4):
        trouble = "a matrix product is wrong"
except Exception as fault:
    trouble = str(fault).strip().splitlines()[0]
print(json.dumps({"kind": kind, "name": name, "torch": torch.__version__, "trouble": trouble}))
"""
REASONS = (
    (
        r"No space left|not enough space|Errno 28",
        "The disk is full. Free some space and start again; downloads are kept.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "A secure connection could not be verified. A virus scanner or company proxy may be intercepting it; switch that off or try another network.",
    ),
    (
        r"Temporary failure in name resolution|getaddrinfo|NewConnectionError|ConnectTimeout|Network is unreachable|ProxyError|Read timed out",
        "There is no network connection. Check it and start again; downloads are kept.",
    ),
    (
        r"WinError 206|Long Path support",
        r"A path is longer than Windows allows. Move Hearth to a shorter folder, such as C:\Hearth, and start again.",
    ),
    (r"No matching distribution found for torch", "torch does not support this Python. Use Python 3.11 to 3.14."),
)


def run(command: Sequence[str | Path], log: Path, what: str) -> None:
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
                    line = f"  {clock(now - began)}  {what}{describe_progress(log)}"
                    sys.stderr.write(f"\r{line[:width]:<{width}}" if width else f"{line}\n")
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
        raise Refused(f"{what[0].upper()}{what[1:]} failed. {why} Full log: {log}")


def describe_progress(log: Path) -> str:
    """Word pip's last meaningful line of output for a person."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        text = file.read().decode("utf-8", "replace")
    found = re.findall(
        r"(?:Collecting|Downloading|Using cached|Building wheel for) (\S+)|(Installing collected packages)", text
    )
    if not found:
        return ""
    if found[-1][1]:
        return ": installing packages"
    count = re.findall(r"^Progress (\d+) of (\d+)", text, re.MULTILINE)
    size = f", {int(count[-1][0]) >> 20} of {int(count[-1][1]) >> 20} MB" if count and int(count[-1][1]) >> 20 else ""
    return f": {found[-1][0].rsplit('/', 1)[-1]}{size}"


def pip_install(slot: Path, log: Path, what: str, *arguments: str) -> None:
    # modules are compiled when first imported
    flags = ["--no-input", "--disable-pip-version-check", "--no-compile", "-c"]
    run([python_of(slot), "-I", "-m", "pip", "install", *flags, TOP / "constraints.txt", *arguments], log, what)


def prove_torch(slot: Path) -> dict[str, str]:
    done = subprocess.run([python_of(slot), "-I", "-c", PROOF], capture_output=True, text=True)
    if done.returncode and "Visual C++ Redistributable" in done.stdout:
        raise Halted(
            "torch was installed but cannot be loaded, because Microsoft's Visual C++ Redistributable is missing. Install it from "
            "https://aka.ms/vs/17/release/vc_redist.x64.exe and start again."
        )
    if done.returncode:
        raise Refused(
            f"torch was installed but cannot be loaded: {(done.stderr.strip().splitlines() or ['the process ended'])[-1]}"
        )
    said: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def make_environment(slot: Path, want: Requirements) -> None:
    """Make the environment in this slot, emptied first; write the stamp last."""
    began = time.monotonic()
    if importlib.util.find_spec("ensurepip") is None:
        raise Refused(
            "This Python cannot make environments because ensurepip is missing. On Debian and Ubuntu, run `sudo apt install python3-venv`, "
            "then start again."
        )
    chosen = torch_build.choose_build(torch_build.detect_facts())
    builds = [each for each in chosen.builds if not each or torch_build.is_offered(each, want.torch)]
    require_space(CUDA_BYTES if builds[0].startswith("cu") else PLAIN_BYTES, slot)
    tell(f"Making Hearth's environment in {slot}. This happens once; later starts take a second.")
    tell(f"torch {want.torch}: {chosen.because}.")
    if builds[0] != chosen.builds[0]:
        tell(
            f"The index of the {chosen.builds[0]} builds cannot be reached, or lacks one for this Python; "
            f"continuing with {builds[0] or 'the default index'}."
        )
    log = slot.parent / "install.log"
    flags = make_empty(slot, log)
    build, proof = install_first_proven(slot, log, want, builds, flags)
    only = f"on the processor only, because of an error on {proof['name']}: {proof['trouble']}"
    where = only if proof["trouble"] else f"on {proof['name']}"
    tell(f"Tested {where}: torch {proof['torch']} works and computes correctly.")
    slots.write_stamp(
        slot, digest=want.digest, extras={}, build=build, because=chosen.because, proof=proof, commit=slots.current_commit(),
        made=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )  # fmt: skip
    tell(f"Ready after {clock(time.monotonic() - began)}. To add Hearth to your apps: start.py install-app")


def make_empty(slot: Path, log: Path) -> tuple[str, ...]:
    """Make an environment with nothing but pip in it, and return pip's options for showing progress."""
    if slot.exists():
        shutil.rmtree(slot, ignore_errors=True)
    if slot.exists():
        raise Refused(f"The files left in {slot} cannot be removed. Close Hearth if it is open, and start again.")
    log.write_bytes(b"")
    run([sys.executable, "-m", "venv", slot], log, "making an empty environment")
    installer = re.search(r"^pip==\S+", (TOP / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    if not installer:
        return ()
    # the newest pip shows progress and resumes broken downloads
    pip_install(slot, log, "downloading the installer", installer[0])
    return ("--progress-bar", "raw")


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
            tell(f"The {build} build: {fault} Trying the next build.")
            continue
        if last or (not proof["trouble"] and (proof["kind"] == "cuda" or not build.startswith("cu"))):
            return build, proof
        tell(
            f"The {build} build does not work with this card: {proof['trouble'] or 'it finds no card'}. Trying the next one."
        )
        run([python_of(slot), "-I", "-m", "pip", "uninstall", "--yes", "torch"], log, "removing that build")
    raise Refused("There is no build of torch for this machine. Hearth cannot run here.")


def install_build(slot: Path, log: Path, want: Requirements, build: str, flags: Sequence[str]) -> dict[str, str]:
    """Install all packages with this build of torch, and test it."""
    index = ("--extra-index-url", f"{torch_build.WHEELS}/{build}") if build else ()
    torch = f"torch=={want.torch}" + (f"+{build}" if build else "")
    if not build and brings_cuda(slot, torch):
        require_space(CUDA_BYTES, slot)
        tell(
            f"The build from the default index includes NVIDIA's CUDA, even if this machine cannot use it: {CUDA_DOWNLOAD_BYTES >> 30} GB to "
            f"download and {CUDA_BYTES >> 30} GB on disk. If {torch_build.WHEELS} can be reached later, a smaller build may be available: stop with "
            "Ctrl+C and start again then."
        )
    pip_install(slot, log, "installing", *flags, *index, torch, *want.core)
    return prove_torch(slot)


def require_space(need: int, slot: Path) -> None:
    free = shutil.disk_usage(slot.parent).free
    if free < need:
        raise Refused(
            f"Hearth's environment needs about {need >> 30} GB in {slot.parent}, but only {free / (1 << 30):.1f} GB are free. "
            "Free some space and start again."
        )


def brings_cuda(slot: Path, torch: str) -> bool:
    """Ask pip whether the default index's torch depends on CUDA; a mirror's may not. The install reports errors
    later."""
    flags = ["--quiet", "--dry-run", "--no-deps", "--no-input", "--disable-pip-version-check", "--report", "-"]
    reply = subprocess.run(
        [python_of(slot), "-I", "-m", "pip", "install", *flags, torch], capture_output=True, text=True
    )
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
        tell("An earlier installation was interrupted; starting it again.")
    make_environment(new, want)
    for name in sorted(slots.read_extras(slots.read_stamp(old)).keys() & want.extras.keys() - {"test"}):
        try:
            add(new, want, name)
        except Refused as fault:
            tell(f"{fault} Continuing without {name}; start.py add {name} tries again.")
    if check:
        check(new)
    slots.replace_text(folder / "current", new.name)
    return new


def add(slot: Path, want: Requirements, name: str) -> None:
    pip_install(slot, slot.parent / "install.log", f"adding {name}", *want.extras[name])
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
                tell(
                    f"{fault}\nThis version of Hearth needs a newer environment; continuing with the old one, which may not work."
                )
                return slot
        said = slots.read_stamp(slot)
        for each in lacks():
            add(slot, want, each)
        slots.write_stamp(slot, **slots.read_stamp(slot))
    return slot
