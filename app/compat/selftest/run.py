"""Run the self-test: time each known defect and each possible path, and compare with float64. Stores nothing.

On a Mac a wrong shape may crash the process, so questions run in a child process there; its death is a failed verdict.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from threading import Timer
from typing import Any, Final

import torch

from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import QUIRKS
from app.compat.planning.types import Choice, Need, Plan
from app.compat.selftest.probes import TOLERANCE, Probe, paths, rows
from app.compat.selftest.reference import numbers
from app.sentence import Sentence, say

Tell = Callable[[int, int, Sentence], None]
Stage = Callable[[], AbstractContextManager[object]]
"""Context around each question: nothing, or in tests a simulated machine."""

LONGEST_ANSWER_S: Final = 120.0
"""Longest silence of a child; after it the driver counts as hung, and the child is killed."""
_LAST_WORDS: Final = 600


def run(hardware: Hardware, tell: Tell, *, stage: Stage | None = None, isolated: bool | None = None) -> dict[Subject, Verdict]:
    """Return verdicts by subject. `tell(done, total, words)` is called before each question and once at the end. A
    pretended machine is simulated, to show what its self-test would find."""
    found: dict[Subject, Verdict] = {}
    for step in steps(hardware, found, stage=stage, isolated=isolated):
        tell(*step)
    return found


def steps(
    hardware: Hardware, found: dict[Subject, Verdict], *, stage: Stage | None = None, isolated: bool | None = None
) -> Iterator[tuple[int, int, Sentence]]:
    """Run the test question by question: yield the progress before each and at the end. Verdicts go into `found`."""
    probes = questions(hardware)
    apart = (hardware.kind == "mps" and not hardware.pretended) if isolated is None else isolated
    around = stage or _stage(hardware, kill=False)
    answers = _from_children(hardware, probes) if apart else (ask(each, hardware, around) for each in probes)
    for done, probe in enumerate(probes):
        words = say("selftest.asking", "Testing {subject} in {dtype}", subject=_probe_words(probe), dtype=probe.dtype)
        yield done, len(probes), words
        answer = next(answers)
        found[answer.subject] = _worse(found.get(answer.subject), answer)
    numbers.cache_clear()
    failed = sum(not each.passed for each in found.values())
    closing = say("selftest.done", "{passed} of {total} correct on this machine", passed=len(found) - failed, total=len(found))
    yield len(probes), len(probes), closing


def _stage(hardware: Hardware, kill: bool) -> Stage:
    if not hardware.pretended:
        return nullcontext
    from app.compat.selftest.simulate import biting

    return partial(biting, hardware, kill=kill)


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    """List the questions: only for defects that the table expects here, and for this machine's dtypes and kernels."""
    return (*rows(tuple(row for row in QUIRKS if row.applies(hardware))), *paths(hardware, _plan(hardware)))


def _plan(hardware: Hardware) -> Plan:
    return decide(hardware, Need(), Choice())


def ask(probe: Probe, hardware: Hardware, stage: Stage) -> Verdict:
    """Ask one question; an exception becomes a failed verdict with its message."""
    device = "cpu" if hardware.pretended else {"rocm": "cuda"}.get(hardware.kind, hardware.kind)
    began_s = time.perf_counter()
    try:
        with torch.inference_mode(), stage():
            error, elapsed_s = probe.look(device)
    except (RuntimeError, TypeError, NotImplementedError, ValueError, AssertionError) as problem:
        words = str(problem).strip()[-_LAST_WORDS:] or type(problem).__name__
        return Verdict(probe.subject, False, math.inf, time.perf_counter() - began_s, words)
    return Verdict(probe.subject, error <= TOLERANCE[probe.dtype], error, elapsed_s)


def _worse(before: Verdict | None, now: Verdict) -> Verdict:
    """Return the worse verdict: a defect is gone only if it occurs in none of its dtypes."""
    if before is None:
        return now
    worst = before if (before.passed, -before.error) < (now.passed, -now.error) else now
    return Verdict(now.subject, worst.passed, worst.error, before.elapsed_s + now.elapsed_s, worst.words)


def _probe_words(probe: Probe) -> str:
    return probe.subject.name.removesuffix(f"/{probe.dtype}")


def _from_children(hardware: Hardware, probes: tuple[Probe, ...]) -> Iterator[Verdict]:
    """Ask in child processes: if a question kills one, the next child starts with the question after it."""
    done = 0
    while done < len(probes):
        with TemporaryFile() as last_words:
            # Not multiprocessing: there the engine, which runs this, is a daemon and may have no children.
            command = (sys.executable, "-c", f"from {__name__} import answer; answer()")
            with Popen(command, stdin=PIPE, stdout=PIPE, stderr=last_words, text=True) as child:
                assert child.stdin is not None and child.stdout is not None
                try:
                    child.stdin.write(
                        json.dumps({"hardware": asdict(hardware), "asked": [(str(each.subject), each.dtype) for each in probes[done:]]})
                        + "\n"
                    )
                    child.stdin.flush()
                    while done < len(probes):
                        began_s = time.perf_counter()
                        too_long = Timer(LONGEST_ANSWER_S, child.kill)
                        too_long.start()
                        reply = child.stdout.readline()
                        too_long.cancel()
                        if not reply:
                            break
                        done += 1
                        yield _read_reply(reply)
                finally:
                    child.kill()
            if done < len(probes):
                last_words.seek(0)
                words = last_words.read().decode("utf-8", errors="replace").strip()[-_LAST_WORDS:]
                elapsed_s = time.perf_counter() - began_s
                yield Verdict(probes[done].subject, False, math.inf, elapsed_s, words or f"exit code {child.returncode}")
                done += 1


def _write_reply(verdict: Verdict) -> str:
    return json.dumps({**asdict(verdict), "subject": str(verdict.subject)})


def _read_reply(line: str) -> Verdict:
    reply = json.loads(line)
    return Verdict(**{**reply, "subject": Subject.parse(reply["subject"])})


def answer() -> None:
    """Answer in the child: one JSON question per input line, one verdict per output line. Redirect other output."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.readline())
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in order["hardware"].items()}
    hardware = Hardware(**facts)
    probes = {(str(each.subject), each.dtype): each for each in questions(hardware)}
    for subject, dtype in order["asked"]:
        found = ask(probes[subject, dtype], hardware, _stage(hardware, kill=True))
        print(_write_reply(found), file=replies, flush=True)
