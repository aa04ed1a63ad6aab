"""The one way in, standard library only: makes the environment (the right torch for this card), then runs Hearth.

    python3 start.py            open Hearth; where that fails, a page with the reason and Repair
    python3 start.py test ...   add what the tests need and run them; what follows goes to pytest
    python3 start.py add NAME   add an extra of pyproject.toml (aac, keyring, mcp, quantised); it stays over updates and repairs
    python3 start.py repair     make the environment anew
    python3 start.py update     newer code and its environment beside the old one, swapped in once proven
    python3 start.py back       one step back, to what was there before the last update
    python3 start.py speak ...  anything else is Hearth's own command line

Longer than a room of this house should be, because it must work before anything else does: facts, the choice of torch,
making, proving, and running stand here in that order. Two slots, `a` and `b`, and a file that names the current one:
an environment is never moved, and never replaced by one that has not proven itself.
"""

from __future__ import annotations

import sys

NEEDED = (3, 11)
if sys.version_info < NEEDED:
    sys.exit(
        f"Hearth needs Python {NEEDED[0]}.{NEEDED[1]} or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}. "
        "Install a newer one from python.org and start again with it."
    )

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent
WHEELS = "https://download.pytorch.org/whl"
REACH_S = 4.0
WINDOWS = os.name == "nt"
# How all tests run; a test that is asked for by name runs alone, and may print.
WHOLE = ("-n", "2", "--dist", "loadfile")
FORMAT = 1  # of an environment; a higher number makes every older one be made anew

# Windows makes no folder with a longer path, unless it was told to; and what the deepest of torch's adds to that of the slots.
LONGEST, DEEPEST = 247, 183
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
        trouble = "a matrix product comes out wrong"
except Exception as fault:
    trouble = str(fault).strip().splitlines()[0]
print(json.dumps({"kind": kind, "name": name, "torch": torch.__version__, "trouble": trouble}))
"""


class Refused(Exception):
    """What was asked, what stands in the way, what to do."""


class Halted(Refused):
    """No other build of torch would do better."""


# --- facts and the choice of torch -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Card:
    name: str
    driver: int
    able: float | None  # compute capability; None where nvidia-smi does not tell


@dataclass(frozen=True, slots=True)
class Facts:
    system: str  # as platform.system() says: Linux, Windows, Darwin
    machine: str  # as platform.machine() says
    cards: tuple[Card, ...] = ()
    silence: str = ""  # why nvidia-smi, although it is there, told of no card


@dataclass(frozen=True, slots=True)
class Pick:
    """`builds` are tried in order until one is installed and proven; "" is the default index."""

    builds: tuple[str, ...]
    because: str


def cards(told: str) -> tuple[Card, ...]:
    """From `nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader`; other lines are no cards."""
    found = []
    for line in told.splitlines():
        part = [each.strip() for each in line.split(",")]
        driver = re.match(r"(\d+)\.\d", part[1]) if len(part) in (2, 3) else None
        if driver:
            known = len(part) == 3 and re.fullmatch(r"\d+\.\d", part[2])
            found.append(Card(part[0], int(driver[1]), float(part[2]) if known else None))
    return tuple(found)


UNTIL = "Until the driver is updated (then: start.py repair), the plain build, for the processor"
NVIDIA: tuple[tuple[Callable[[Card, float], bool], tuple[str, ...], str], ...] = (
    # the newest card and the oldest capability of the machine -> CUDA builds, why; the first row that holds. From 2.12
    # on only cu126 carries 5.0 to 7.0 (and ends at 9.0); CUDA 12 needs driver 525, Blackwell 570, CUDA 13 needs 580.
    (lambda c, oldest: c.driver < 525, (), "driver {c.driver} is older than 525, which every build needs. " + UNTIL),
    (lambda c, oldest: c.able is None, ("cu126",), "compute capability not told, so the build for the most cards"),
    (
        lambda c, oldest: (c.able or 0) < 5.0,
        (),
        "compute capability {c.able}: no build goes below 5.0, so the plain one",
    ),
    (
        lambda c, oldest: oldest < 7.5 and (c.able or 0) < 10.0,
        ("cu126",),
        "compute capability {oldest}: only the cu126 builds still carry cards before 7.5",
    ),
    (
        lambda c, oldest: c.driver >= 580,
        ("cu130", "cu126"),
        "compute capability {c.able}, driver {c.driver}: CUDA 13.0",
    ),
    (
        lambda c, oldest: (c.able or 0) < 10.0,
        ("cu126",),
        "compute capability {c.able}, driver {c.driver}: CUDA 12.6, because 13 needs driver 580",
    ),
    (
        lambda c, oldest: c.driver >= 570,
        ("cu129", "cu128"),
        "compute capability {c.able}, driver {c.driver}: the last CUDA 12 that knows it, because 13 needs driver 580. "
        "With a newer driver, start.py repair finds a better one",
    ),
    (lambda c, oldest: True, (), "compute capability {c.able} needs driver 570 and has {c.driver}. " + UNTIL),
)


def pick(facts: Facts) -> Pick:
    """Which build of torch suits this machine, and why. Pure."""
    machine = facts.machine.lower()
    arm = machine in ("arm64", "aarch64")
    asked = "Hearth was asked to start "
    if not arm and machine not in ("x86_64", "amd64"):
        raise Refused(
            f"{asked}on a {machine} processor, for which there is no torch. It needs 64-bit Intel, AMD or ARM."
        )
    if facts.system == "Darwin" and not arm:
        raise Refused(
            f"{asked}on an Intel Mac, for which torch is not built since 2.2. It needs Apple silicon, or a PC with Linux or Windows."
        )
    if facts.system == "Windows" and arm:
        raise Refused(
            f"{asked}with a Python made for ARM, for which Windows has not all that it needs. Install the 64-bit edition for "
            "Intel and AMD, which Windows runs on ARM as well, and start again with it."
        )
    if facts.system == "Darwin":
        return Pick(("",), "Apple silicon, whose graphics the plain build drives through Metal")
    plain = ("cpu", "") if facts.system == "Linux" else ("",)
    if not facts.cards:
        why = f"nvidia-smi is there but tells of no card ({facts.silence})" if facts.silence else "no NVIDIA card found"
        return Pick(plain, f"{why}, so the plain build, for the processor")
    card = max(facts.cards, key=lambda each: each.able or 0.0)
    oldest = min(each.able or card.able or 0.0 for each in facts.cards)
    builds, why = next((builds, why) for holds, builds, why in NVIDIA if holds(card, oldest))
    return Pick((*builds, *plain), f"{card.name}: {why.format(c=card, oldest=oldest)}")


def facts() -> Facts:
    system, machine = platform.system(), platform.machine()
    if system == "Darwin":
        # A Python made for Intel says x86_64 on Apple silicon too.
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "hw.optional.arm64"], capture_output=True, text=True)
        if machine == "x86_64" and asked.stdout.strip() == "1":
            raise Refused(
                "This Mac has Apple silicon, but this Python was made for Intel Macs. Install Python from python.org (or with "
                "Homebrew under /opt/homebrew) and start again with it."
            )
        return Facts(system, machine)
    if WINDOWS and "WindowsApps" in sys.base_prefix:
        raise Refused(
            "This Python came from the Microsoft Store, and Windows keeps what it writes for the user in a copy that no other "
            "program sees. Open Hearth.bat, which finds or brings another one; or start again with one from python.org."
        )
    if WINDOWS:  # this Python's kind, not the machine's: Windows runs either on ARM
        machine = "ARM64" if sysconfig.get_platform() == "win-arm64" else "AMD64" if sys.maxsize > 1 << 32 else "x86"
    places = (
        (r"C:\Windows\System32", r"C:\Program Files\NVIDIA Corporation\NVSMI")
        if WINDOWS
        else ("/usr/lib/wsl/lib", "/usr/bin")
    )
    tool = shutil.which("nvidia-smi", path=os.pathsep.join((os.environ.get("PATH", ""), *places)))
    if not tool:
        return Facts(system, machine)
    told = ""
    for fields in ("name,driver_version,compute_cap", "name,driver_version"):  # old drivers do not know the third
        try:
            done = subprocess.run(
                [tool, f"--query-gpu={fields}", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return Facts(system, machine, (), type(fault).__name__)
        told = done.stdout.strip() or done.stderr.strip()
        if done.returncode == 0 and cards(told):
            return Facts(system, machine, cards(told))
    return Facts(system, machine, (), (told.splitlines() or ["it said nothing"])[0][:120])


def offered(build: str, version: str) -> bool:
    """Whether this build's index can be reached, within seconds, and has this torch for this Python and machine."""
    import http.client
    import threading
    import urllib.request

    page: list[str] = []

    def look() -> None:
        try:
            with urllib.request.urlopen(f"{WHEELS}/{build}/torch/", timeout=REACH_S) as answer:
                page.append(answer.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):  # the caller says that it could not be reached
            return

    asking = threading.Thread(target=look, daemon=True)  # a name server that is silent heeds no timeout
    asking.start()
    asking.join(2 * REACH_S)
    cpython = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    wheel = rf"torch-{re.escape(version)}(?:%2B|\+){build}-{cpython}-{cpython}-[^\"'<>]*{platform.machine()}"
    return bool(page) and re.search(wheel, page[0], re.IGNORECASE) is not None


# --- what is wanted, what is there -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    core: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    torch: str
    digest: str


def wanted(top: Path = TOP) -> Wanted:
    project = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["project"]
    pins = (top / "constraints.txt").read_text("utf-8")
    torch = re.search(r"^torch==(\S+)", pins, re.MULTILINE)
    core = tuple(project["dependencies"])
    extras = {name: tuple(packages) for name, packages in project["optional-dependencies"].items()}
    digest = hashlib.sha256(json.dumps([FORMAT, core, pins.splitlines()]).encode()).hexdigest()[:16]
    return Wanted(core, extras, torch[1] if torch else "", digest)


def python_of(slot: Path) -> Path:
    return slot / ("Scripts/python.exe" if WINDOWS else "bin/python")


def stamp(slot: Path) -> dict[str, object]:
    """What was written last when the environment was made; nothing where it is half made, or its Python is gone."""
    try:
        said = json.loads((slot / "hearth.json").read_text("utf-8"))
        base = re.search(r"^home = (.*)$", (slot / "pyvenv.cfg").read_text("utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return {}
    there = base and Path(base[1].strip()).is_dir() and python_of(slot).exists()
    return said if isinstance(said, dict) and there else {}


def put(file: Path, text: str) -> None:
    """Whole or not at all."""
    half = file.with_name(file.name + ".half")
    half.write_text(text, "utf-8")
    half.replace(file)


def data_folder() -> Path:
    """As app.paths has it, without its packages."""
    if os.environ.get("HEARTH_HOME"):
        return Path(os.environ["HEARTH_HOME"]).expanduser().resolve()
    if WINDOWS:
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "Hearth"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/Hearth"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "Hearth"


def long_paths() -> bool:
    """Whether this Windows was told to take them."""
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:  # type: ignore[attr-defined, unused-ignore]
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return False


def too_deep(folder: Path) -> bool:
    return WINDOWS and len(str(folder)) + DEEPEST > LONGEST and not long_paths()


def place(top: Path = TOP) -> Path:
    """The folder of the two slots: in the checkout, or in the user's data where the checkout is read-only or lies too deep."""
    if os.environ.get("HEARTH_ENV"):
        return Path(os.environ["HEARTH_ENV"]).expanduser().resolve()
    here = top / ".venv"
    there = data_folder() / f"environment-{hashlib.sha256(os.fsencode(top)).hexdigest()[:8]}"
    for folder in (here, there):
        if (folder / "current").is_file():
            return folder
    if too_deep(here):
        if too_deep(there):
            raise Refused(
                f"Hearth's environment would go to {here}, but with what belongs into it the path becomes longer than Windows takes. "
                r"Move Hearth to a shorter folder, such as C:\Hearth, and start again."
            )
        there.mkdir(parents=True, exist_ok=True)
        return there
    try:
        here.mkdir(exist_ok=True)
        (here / "lock").touch()  # never replaced: another start may hold it
    except OSError:
        there.mkdir(parents=True, exist_ok=True)
        return there
    return here


def current(folder: Path) -> Path:
    try:
        name = (folder / "current").read_text("utf-8").strip()
    except OSError:
        name = "a"
    return folder / ("b" if name == "b" else "a")


def other(slot: Path) -> Path:
    return slot.with_name("a" if slot.name == "b" else "b")


# --- making ----------------------------------------------------------------------------------------------------------


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:2d} s"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time makes an environment. The system lets go of the lock when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+b") as file:
        waited = False
        while True:
            try:
                if WINDOWS:
                    import msvcrt

                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
                else:
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not waited:
                    tell("Another start is making the environment; waiting for it.")
                waited = True
                time.sleep(0.3)
        yield


REASONS = (
    (r"No space left|not enough space|Errno 28", "The disk is full. Make room and start again; downloads are kept."),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "A secure connection could not be checked. Something between this machine and the network (a virus scanner, a company proxy) may be opening it.",
    ),
    (
        r"Temporary failure in name resolution|getaddrinfo|NewConnectionError|ConnectTimeout|Network is unreachable|ProxyError|Read timed out",
        "The network could not be reached. Check the connection and start again; downloads are kept.",
    ),
    (
        r"WinError 206|Long Path support",
        r"A path becomes longer than Windows takes. Move Hearth to a shorter folder, such as C:\Hearth, and start again.",
    ),
    (r"No matching distribution found for torch", "There is no torch for this Python. Use Python 3.11 to 3.14."),
)


def run(command: Sequence[str | Path], log: Path, what: str) -> None:
    """With pip's noise in the log, and one line of progress with the time; a failure tells the reason and where to read on."""
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
                    line = f"  {clock(now - began)}  {what}{doing(log)}"
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
            lines[-1] if lines else "nothing was said",
        )
        why = next((reason for pattern, reason in REASONS if re.search(pattern, text)), last)
        raise Refused(f"{what[0].upper()}{what[1:]} failed. {why} The whole log: {log}")


def doing(log: Path) -> str:
    """The last thing pip said that means something to a person."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        text = file.read().decode("utf-8", "replace")
    found = re.findall(
        r"(?:Collecting|Downloading|Using cached|Building wheel for) (\S+)|(Installing collected packages)", text
    )
    if not found:
        return ""
    if found[-1][1]:
        return ": putting everything in place"
    count = re.findall(r"^Progress (\d+) of (\d+)", text, re.MULTILINE)
    size = f", {int(count[-1][0]) >> 20} of {int(count[-1][1]) >> 20} MB" if count and int(count[-1][1]) >> 20 else ""
    return f": {found[-1][0].rsplit('/', 1)[-1]}{size}"


def pip(slot: Path, log: Path, what: str, *arguments: str) -> None:
    # What is imported is compiled then; the rest never.
    flags = ["--no-input", "--disable-pip-version-check", "--no-compile", "-c"]
    run([python_of(slot), "-I", "-m", "pip", "install", *flags, TOP / "constraints.txt", *arguments], log, what)


def prove(slot: Path) -> dict[str, str]:
    done = subprocess.run([python_of(slot), "-I", "-c", PROOF], capture_output=True, text=True)
    if done.returncode and "Visual C++ Redistributable" in done.stdout:
        raise Halted(
            "torch was installed but cannot be loaded, because Microsoft's Visual C++ Redistributable is missing. Install it from "
            "https://aka.ms/vs/17/release/vc_redist.x64.exe and start again."
        )
    if done.returncode:
        raise Refused(
            f"torch was installed but cannot be loaded: {(done.stderr.strip().splitlines() or ['it died'])[-1]}"
        )
    said: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def make(slot: Path, want: Wanted) -> None:
    """Into an empty slot; the stamp is written last."""
    began = time.monotonic()
    if importlib.util.find_spec("ensurepip") is None:
        raise Refused(
            "This Python cannot make environments: its ensurepip is missing. On Debian and Ubuntu, `sudo apt install python3-venv` "
            "brings it; then start again."
        )
    chosen = pick(facts())
    builds = [each for each in chosen.builds if not each or offered(each, want.torch)]
    room_for(CUDA_BYTES if builds[0].startswith("cu") else PLAIN_BYTES, slot)
    tell(f"Making Hearth's environment in {slot} (once; a start takes a second afterwards).")
    tell(f"torch {want.torch}: {chosen.because}.")
    if builds[0] != chosen.builds[0]:
        tell(
            f"The index of the {chosen.builds[0]} builds cannot be reached, or lacks one for this Python; "
            f"going on with {builds[0] or 'the default index'}."
        )
    if slot.exists():
        shutil.rmtree(slot, ignore_errors=True)
    if slot.exists():
        raise Refused(f"What is left in {slot} cannot be removed. Close Hearth if it is open, and start again.")
    log = slot.parent / "install.log"
    log.write_bytes(b"")
    run([sys.executable, "-m", "venv", slot], log, "making an empty environment")
    installer = re.search(r"^pip==\S+", (TOP / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    if installer:  # the newest one tells its progress and takes up a broken download
        pip(slot, log, "fetching the installer", installer[0])
    noise = ("--progress-bar", "raw") if installer else ()
    for build in builds:
        index = ("--extra-index-url", f"{WHEELS}/{build}") if build else ()
        torch = f"torch=={want.torch}" + (f"+{build}" if build else "")
        try:
            if not build and carries_cuda(slot, torch):
                room_for(CUDA_BYTES, slot)
                tell(
                    f"The build of the default index brings NVIDIA's CUDA with it, used here or not: about {CUDA_DOWNLOAD_BYTES >> 30} GB to "
                    f"download and {CUDA_BYTES >> 30} GB on the disk. If {WHEELS} can be reached later, a smaller one may do: stop with "
                    "Ctrl+C, and start again then."
                )
            pip(slot, log, "installing", *noise, *index, torch, *want.core)
            proof = prove(slot)
        except Halted:
            raise
        except Refused as fault:
            if build == builds[-1]:
                raise
            tell(f"The {build} build: {fault} Trying the next one.")
            continue
        if build == builds[-1] or (not proof["trouble"] and (proof["kind"] == "cuda" or not build.startswith("cu"))):
            break
        tell(f"The {build} build does not drive this card: {proof['trouble'] or 'it sees none'}. Trying the next one.")
        run([python_of(slot), "-I", "-m", "pip", "uninstall", "--yes", "torch"], log, "taking that build away")
    where = (
        f"only on the processor, because on {proof['name']}: {proof['trouble']}"
        if proof["trouble"]
        else f"on {proof['name']}"
    )
    tell(f"Proven {where}: torch {proof['torch']} computes, and what it computes is right.")
    write_stamp(
        slot,
        digest=want.digest,
        extras={},
        build=build,
        because=chosen.because,
        proof=proof,
        commit=commit(),
        made=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    tell(f"Ready after {clock(time.monotonic() - began)}. To have Hearth among your apps: start.py install-app")


def room_for(need: int, slot: Path) -> None:
    free = shutil.disk_usage(slot.parent).free
    if free < need:
        raise Refused(
            f"Hearth's environment needs about {need >> 30} GB in {slot.parent}, and {free / (1 << 30):.1f} GB are free. "
            "Make room and start again."
        )


def carries_cuda(slot: Path, torch: str) -> bool:
    """Of what pip would take from its own index, by what it asks for; a mirror may have a plain one. What fails here fails with a reason later."""
    flags = ["--quiet", "--dry-run", "--no-deps", "--no-input", "--disable-pip-version-check", "--report", "-"]
    asked = subprocess.run(
        [python_of(slot), "-I", "-m", "pip", "install", *flags, torch], capture_output=True, text=True
    )
    try:
        needed = json.loads(asked.stdout)["install"][0]["metadata"].get("requires_dist", [])
    except (ValueError, LookupError):
        return False
    elsewhere = "x86_64" if platform.machine() != "x86_64" else "aarch64"
    return platform.system() == "Linux" and any(each.startswith("nvidia-") and elsewhere not in each for each in needed)


def write_stamp(slot: Path, **what: object) -> None:
    """With the path to this checkout, in ASCII: a .pth is read in the system's encoding, and this folder's name is in any."""
    packages = next(slot.glob("Lib/site-packages" if WINDOWS else "lib/python*/site-packages"))
    put(packages / "hearth.pth", f"import sys; sys.path.insert(0, {str(TOP)!a})\n")
    put(slot / "hearth.json", json.dumps({**what, "top": str(TOP)}, indent=1))


def commit() -> str:
    """What is checked out, where this is a clone and git is there."""
    if not (TOP / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", "-C", str(TOP), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


# --- running ---------------------------------------------------------------------------------------------------------


def fits(said: Mapping[str, object], want: Wanted) -> bool:
    """`held` is the digest that an environment serves although it is not its own: a person went back to it."""
    return bool(said) and want.digest in (said.get("digest"), said.get("held"))


def renew(folder: Path, want: Wanted, check: Callable[[Path], None] | None = None) -> Path:
    """A new environment in the other slot, checked, then the swap. Called under the lock; the old slot stays."""
    old = current(folder)
    new = other(old) if stamp(old) else old
    if new == old and old.exists():
        tell("A half-made environment is there; making it anew.")
    make(new, want)
    for name in sorted(extras_of(stamp(old)).keys() & want.extras.keys() - {"test"}):
        try:
            add(new, want, name)
        except Refused as fault:
            tell(f"{fault} Going on without {name}; start.py add {name} tries again.")
    if check:
        check(new)
    put(folder / "current", new.name)
    return new


def extras_of(said: Mapping[str, object]) -> dict[str, list[str]]:
    """What was added to an environment, by name."""
    had = said.get("extras")
    return dict(had) if isinstance(had, dict) else {}


def add(slot: Path, want: Wanted, name: str) -> None:
    pip(slot, slot.parent / "install.log", f"adding {name}", *want.extras[name])
    said = stamp(slot)
    write_stamp(slot, **{**said, "extras": {**extras_of(said), name: list(want.extras[name])}})


def ready(folder: Path, want: Wanted, *extras: str) -> Path:
    """The slot to run from: made, finished or renewed where that is needed, with these extras in it."""
    slot = current(folder)
    said = stamp(slot)

    def lacks() -> list[str]:
        return [each for each in extras if extras_of(said).get(each) != list(want.extras.get(each, ()))]

    if fits(said, want) and said.get("top") == str(TOP) and not lacks():
        return slot
    with locked(folder):
        slot = current(folder)
        said = stamp(slot)
        if not fits(said, want):
            try:
                slot = renew(folder, want)
            except Refused as fault:
                if not said or extras:
                    raise
                tell(
                    f"{fault}\nThis version of Hearth asks for a newer environment; going on with the old one, which may not suffice."
                )
                return slot
        said = stamp(slot)
        for each in lacks():
            add(slot, want, each)
        write_stamp(slot, **stamp(slot))
    return slot


def go(command: Sequence[str]) -> int:
    """Becomes the command; on Windows, where nothing can become another, waits for it."""
    if not WINDOWS:
        os.execv(command[0], list(command))
    child = subprocess.Popen(command)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child has it too, and says how it ends
            continue


def main(words: Sequence[str]) -> int:
    verb = words[0] if words else ""
    try:
        folder = place()
        if verb in ("update", "back", "renew"):
            from app.launcher.update import step

            return step(verb, folder)
        if verb in ("", "open") or (verb.startswith("-") and verb not in ("-h", "--help", "--version")):
            from app.launcher.supervisor import opened

            return opened(words, folder)
        want = wanted()
        if verb == "repair":
            with locked(folder):
                shutil.rmtree(other(renew(folder, want)), ignore_errors=True)
            return 0
        extras = {"add": words[1:], "test": ["test"]}.get(verb, [])
        if verb == "add" and (not extras or not want.extras.keys() >= set(extras)):
            raise Refused(f"start.py add takes one or more of: {', '.join(sorted(want.extras))}.")
        python = str(python_of(ready(folder, want, *extras)))
        if verb == "add":
            tell(f"There now: {', '.join(extras)}. Start Hearth again to use it.")
            return 0
        if verb == "test":
            os.chdir(TOP)
            return go([python, "-m", "pytest", *(words[1:] or WHOLE)])
        return go([python, "-I", "-X", "utf8", "-m", "app", *words])
    except Refused as fault:
        tell(f"hearth: {fault}")
        return 2
    except KeyboardInterrupt:
        tell("\nStopped. Start again to go on.")
        return 130


if __name__ == "__main__":
    sys.modules["start"] = sys.modules["__main__"]  # app.update and app.mend import it: one copy, one Refused
    sys.exit(main(sys.argv[1:]))
