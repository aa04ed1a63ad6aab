"""Run pip and other commands of an installation: their output in the log, one line of progress, and the reason of a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.base.duration import word_duration
from app.base.languages import word_for
from app.base.sentence import Sentence, say
from app.base.terminal_lines import fit_line
from app.launcher.console import Refused
from app.launcher.slots import TOP, python_of

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
        r"Missing dependencies for SOCKS",
        say(
            "pip.socks",
            "The environment names a SOCKS proxy, which pip cannot use. Set HTTPS_PROXY to the proxy's HTTP address, and unset ALL_PROXY.",
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
    found = [*re.finditer(r"(?:Collecting|Downloading|Using cached|Building wheel for) (\S+)|Installing collected packages", text)]
    if not found:
        return ()
    if found[-1][1] is None:
        return (say("pip.installs", "installing packages"),)
    package = found[-1][1].rsplit("/", 1)[-1]
    count = re.findall(r"^Progress (\d+) of (\d+)", text[found[-1].end() :], re.MULTILINE)
    done, total = (int(each) >> 20 for each in count[-1]) if count else (0, 0)
    if not total:
        return (say("pip.file", "downloading {file}", file=package),)
    return (say("pip.progress", "downloading {file}, {done} of {total} MB", file=package, done=done, total=total),)


def pip_install(slot: Path, log: Path, what: Sentence, *arguments: str) -> None:
    # modules are compiled when first imported
    flags = ["--no-input", "--disable-pip-version-check", "--no-compile", "-c"]
    pins = slot / "constraints.txt" if (slot / "constraints.txt").is_file() else TOP / "constraints.txt"
    run([python_of(slot), "-I", "-X", "utf8", "-m", "pip", "install", *flags, pins, *arguments], log, what)  # the log is read so
