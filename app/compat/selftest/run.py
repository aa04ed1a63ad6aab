"""Run the self-test: time each known defect and each possible path, and compare with its reference. Stores nothing.

A wrong shape may crash the process, and what a card once did wrong may spoil all that follows, so questions to a graphics
device run in a child process; its death is a failed verdict.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial, reduce
from importlib import import_module
from itertools import groupby
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal

import torch

from app.base.sentence import Sentence, say
from app.compat.machine.fault_words import LOST_WORDS, OUT_OF_REACH_WORDS, is_out_of_memory
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import QUIRKS
from app.compat.planning.types import Choice, Need, Plan
from app.compat.planning.wrong_parts import PART_WORDS
from app.compat.selftest.failures import NOT_SIMULATED
from app.compat.selftest.probes import Probe, paths, rows
from app.compat.selftest.reference import numbers

Tell = Callable[[int, int, Sentence], None]
Stage = Callable[[], AbstractContextManager[object]]
"""Each question is asked within this context: nothing, or in tests a simulated machine."""
ListProbes = Callable[[Hardware], Sequence[Probe]]
"""It lists what is asked of a machine; it is a function of a module, which a child process imports by name."""

LONGEST_ANSWER_S: Final = 120.0
"""After so long a silence the driver counts as hung, and the child is killed."""
LONGEST_START_S: Final = 600.0
"""A child on a slow disk may take so long until it is ready."""
POLL_S: Final = 0.1
_ENDED: Final = tuple(-number for number in (9, 15, 1, 2))
"""A child that a signal ended leaves these exit codes: by a person, at a logout, or by the system for want of memory. Windows has none."""
_END_S: Final = 5.0
_LAST_WORDS: Final = 600
LAST: Final = Subject.row("mps-threads")


Answer = Verdict | Literal["waiting", "unanswered"]
"""A child answers with a verdict, or still computes; an unanswered question says nothing about the machine: there was no memory for it, or
somebody ended the child."""


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    """List the questions: only for defects that the table expects here, and for this machine's dtypes and kernels."""
    left_out = NOT_SIMULATED if hardware.pretended else ()
    here = tuple(row for row in QUIRKS if row.applies(hardware) and row.id not in left_out)
    listed = (*rows(here), *paths(hardware, _plan(hardware)))
    return tuple(sorted(listed, key=lambda each: each.subject == LAST))  # what spoils a process must not spoil the others


def _plan(hardware: Hardware) -> Plan:
    return decide(hardware, Need(), Choice())


def run(
    hardware: Hardware, tell: Tell, list_probes: ListProbes | None = None, *, stage: Stage | None = None, isolated: bool | None = None
) -> dict[Subject, Verdict]:
    """Return verdicts by subject. `tell(done, total, words)` is called before each question and once at the end. A
    pretended machine is simulated, to show what its self-test would find."""
    found: dict[Subject, Verdict] = {}
    for step in steps(hardware, found, list_probes, stage=stage, isolated=isolated):
        tell(*step)
    return found


def steps(
    hardware: Hardware,
    found: dict[Subject, Verdict],
    list_probes: ListProbes | None = None,
    *,
    stage: Stage | None = None,
    isolated: bool | None = None,
) -> Iterator[tuple[int, int, Sentence]]:
    """Run the test question by question: yield the progress before each and at the end. Verdicts go into `found`."""
    list_probes = list_probes or questions
    probes = list_probes(hardware)
    for done, verdict in judge(hardware, probes, list_probes, stage=stage, isolated=isolated):
        if verdict is not None:
            found[verdict.subject] = verdict
        if done < len(probes):
            words = say("selftest.asking", "Testing {subject} in {dtype}", subject=_probe_words(probes[done]), dtype=probes[done].dtype)
            yield done, len(probes), words
    counted = [each.passed for each in found.values() if each.subject.matters]
    closing = say("selftest.done", "{passed} of {total} correct on this machine", passed=sum(counted), total=len(counted))
    yield len(probes), len(probes), closing


def judge(
    hardware: Hardware, probes: Sequence[Probe], list_probes: ListProbes, *, stage: Stage | None = None, isolated: bool | None = None
) -> Iterator[tuple[int, Verdict | None]]:
    """Yield often how many probes are answered, and each subject's verdict once: the worst of its probes', or none if one of
    them was unanswered."""
    replies = answer_all(hardware, probes, list_probes, stage=stage, isolated=isolated)
    done, verdict = 0, None
    for _, about in groupby(probes, key=lambda each: each.subject):
        found: list[Answer] = []
        for _ in about:
            yield done, verdict
            verdict = None
            while (answer := next(replies)) == "waiting":
                yield done, None
            found.append(answer)
            done += 1
        known = [each for each in found if isinstance(each, Verdict)]
        verdict = reduce(_worse, known) if len(known) == len(found) else None
    yield done, verdict


def answer_all(
    hardware: Hardware, probes: Sequence[Probe], list_probes: ListProbes, *, stage: Stage | None = None, isolated: bool | None = None
) -> Generator[Answer, None, None]:
    """Answer the probes, all of which `list_probes` lists, in their order. Where a child does it, it is "waiting" every POLL_S, and closing
    this generator ends the child."""
    if needs_child(hardware) if isolated is None else isolated:
        yield from _answer_in_children(hardware, probes, list_probes)
    else:
        around = stage or _stage(hardware, kill=False)
        try:
            yield from (answer_one(each, hardware, around) or "unanswered" for each in probes)
        finally:
            numbers.cache_clear()


def needs_child(hardware: Hardware) -> bool:
    return hardware.kind != "cpu" and not hardware.pretended


def _stage(hardware: Hardware, kill: bool) -> Stage:
    if not hardware.pretended:
        return nullcontext
    from app.compat.selftest.simulate import biting

    return partial(biting, hardware, kill=kill)


def answer_one(probe: Probe, hardware: Hardware, stage: Stage) -> Verdict | None:
    """Ask one question; an exception becomes a failed verdict with its message. None: it says nothing about the machine."""
    try:
        with torch.inference_mode():
            if probe.prepare is not None:
                probe.prepare()
    except Exception:  # Whatever keeps the processor from computing it: there is nothing to compare with.
        traceback.print_exc()
        return None
    began_s = time.perf_counter()
    try:
        with torch.inference_mode(), stage():
            error, elapsed_s = probe.look(_device_of(hardware))
    except Exception as problem:
        words = str(problem).strip()[-_LAST_WORDS:] or type(problem).__name__
        if isinstance(problem, MemoryError) or is_out_of_memory(words) or any(each in words for each in OUT_OF_REACH_WORDS):
            return None
        return Verdict(probe.subject, False, math.inf, time.perf_counter() - began_s, words)
    return Verdict(probe.subject, probe.judge(error), error, elapsed_s)


def _device_of(hardware: Hardware) -> str:
    return "cpu" if hardware.pretended else {"rocm": "cuda"}.get(hardware.kind, hardware.kind)


def _worse(before: Verdict, now: Verdict) -> Verdict:
    """Return the worse verdict: a defect is gone only if it occurs in none of its dtypes."""
    worst = before if (before.passed, -before.error) < (now.passed, -now.error) else now
    return Verdict(now.subject, worst.passed, worst.error, before.elapsed_s + now.elapsed_s, worst.words)


def _probe_words(probe: Probe) -> Sentence | str:
    name = probe.subject.name.replace(f"/{probe.dtype}", "", 1)
    return PART_WORDS.get(name, name)


def _answer_in_children(hardware: Hardware, probes: Sequence[Probe], list_probes: ListProbes) -> Iterator[Answer]:
    """Ask in child processes: if a question kills one, or may have spoiled it, the next child starts with the question after it."""
    done = 0
    while done < len(probes):
        with TemporaryFile() as last_words, _start_child(hardware, probes[done:], list_probes, last_words) as child:
            began_s, ready, silent, spoiled = time.perf_counter(), False, 0, False
            try:
                for line in _read_patiently(child):
                    silent = 0 if line is not None else silent + 1  # counted, since a clock may go on while the computer sleeps
                    if silent * POLL_S > (LONGEST_ANSWER_S if ready else LONGEST_START_S):
                        break
                    if line is None:
                        yield "waiting"
                        continue
                    if ready:
                        done += 1
                        answer = _read_reply(line)
                        yield answer
                        spoiled = isinstance(answer, Verdict) and any(each in answer.words for each in LOST_WORDS)
                        if spoiled:
                            break
                    ready, began_s = True, time.perf_counter()
                else:
                    with contextlib.suppress(TimeoutExpired):  # it has closed its answers: let it end in its own way
                        child.wait(timeout=_END_S)
            finally:
                child.kill()
            ended = child.wait() in _ENDED and silent * POLL_S <= LONGEST_ANSWER_S
            if done < len(probes) and not spoiled:
                last_words.seek(0)
                words = last_words.read().decode("utf-8", errors="replace").strip()[-_LAST_WORDS:] or f"exit code {child.returncode}"
                if not ready:
                    raise RuntimeError(words)
                elapsed_s = time.perf_counter() - began_s
                yield "unanswered" if ended else Verdict(probes[done].subject, False, math.inf, elapsed_s, words)
                done += 1


def _start_child(hardware: Hardware, probes: Sequence[Probe], list_probes: ListProbes, last_words: IO[bytes]) -> Popen[str]:
    # Not multiprocessing: there the engine, which runs this, is a daemon and may have no children.
    command = (sys.executable, "-c", f"from {__name__} import serve; serve()")
    child = Popen(command, stdin=PIPE, stdout=PIPE, stderr=last_words, text=True)
    order = {
        "hardware": asdict(hardware), "list_probes": (list_probes.__module__, list_probes.__name__),
        "probes": [(str(each.subject), each.dtype) for each in probes],
    }  # fmt: skip
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # its end is told as such
        child.stdin.write(json.dumps(order) + "\n")
        child.stdin.flush()
    return child


def _read_patiently(child: Popen[str]) -> Iterator[str | None]:
    """Yield a child's lines until its end, and None after each POLL_S without one."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, name="self-test", daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=POLL_S)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line


def _write_reply(verdict: Verdict | None) -> str:
    return json.dumps(None if verdict is None else {**asdict(verdict), "subject": str(verdict.subject)})


def _read_reply(line: str) -> Answer:
    reply = json.loads(line)
    return "unanswered" if reply is None else Verdict(**{**reply, "subject": Subject.parse(reply["subject"])})


def serve() -> None:
    """Answer in the child: one line once it is ready, and one for each probe. Redirect other output. End with whoever asks."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in order["hardware"].items()}
    hardware = Hardware(**facts)
    module, name = order["list_probes"]
    probes = {(str(each.subject), each.dtype): each for each in getattr(import_module(module), name)(hardware)}
    torch.zeros(1, device=_device_of(hardware)).item()  # a device that cannot be reached ends the child before it is ready
    print("ready", file=replies, flush=True)
    for subject, dtype in order["probes"]:
        found = answer_one(probes[subject, dtype], hardware, _stage(hardware, kill=True))
        print(_write_reply(found), file=replies, flush=True)


def _end_with_parent() -> None:
    """Wait for the end of what the parent writes, which is its own."""
    sys.stdin.read()
    os._exit(0)
