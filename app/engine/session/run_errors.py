"""Classify why a run broke, to choose a fallback, and explain it if none helps. Finished parts are kept."""

from __future__ import annotations

import errno
import shutil
import traceback
from pathlib import Path

import torch

from app.base.disk_faults import PLENTY_BYTES, is_disk_full, word_fault
from app.base.sentence import say
from app.base.trouble import DiskFull, NoMemory, QuotaMet
from app.compat.machine.fault_words import is_out_of_memory
from app.compat.machine.processor import OperatorRefused
from app.compat.machine.verdicts import Fault
from app.compat.planning.quirk_table import match_symptom
from app.engine.jobs.events import Failed
from app.engine.jobs.parts import list_made
from app.engine.models.loading.capture_failed import CaptureFailed
from app.engine.models.loading.numbers_broke import NumbersBroke

NO_ENGINE = "unable to find an engine to execute this computation"
"""cuDNN says this where memory lacks in the middle of a run; at its first small convolution it has none for the card."""
NO_ROOM_BYTES = 1 << 20
"""With less than this free, a failed write is the likeliest cause; libsndfile and safetensors word it in their own way."""
OF_THE_DISK = frozenset({errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS, getattr(errno, "ESTALE", errno.EIO), errno.ENXIO, errno.ENODEV})
"""A file with one of these errors may be whole: its disk fails, is gone or may not be used."""


def classify_fault(fault: BaseException) -> Fault | None:
    """Return the kind of fault, which chooses the fallbacks, for this error; None: the machine did not cause it."""
    if isinstance(fault, NumbersBroke):
        return "numbers"
    words = str(fault)
    if isinstance(fault, torch.OutOfMemoryError | MemoryError) or is_out_of_memory(words) or NO_ENGINE in words:
        return "memory"
    return "crash" if isinstance(fault, CaptureFailed | OperatorRefused) or match_symptom(words) else None


def describe_failure(fault: Exception, job: Path) -> Failed:
    files = list_made(job)
    free = shutil.disk_usage(job if job.exists() else job.anchor).free
    full = is_disk_full(fault)
    if full and (free >= PLENTY_BYTES or getattr(fault, "errno", None) == errno.EDQUOT):
        return Failed.of(
            QuotaMet(
                say(
                    "session.disk-quota",
                    "The system takes no more data in {folder} ({fault}), though {free} MB are free on that disk: a quota, or the most "
                    "files that it may hold. Delete files of yours there, then resume. Finished parts are kept.",
                    folder=str(job),
                    fault=word_fault(fault),
                    free=free >> 20,
                ),
                cure="open-folder",
            ),
            files,
        )
    if full or (free < NO_ROOM_BYTES and not isinstance(fault, MemoryError | torch.OutOfMemoryError)):
        return Failed.of(
            DiskFull(
                say(
                    "session.disk-full",
                    "The disk is full: only {free} MB are left for {folder}. Free some space, then resume. Finished parts are kept.",
                    free=free >> 20,
                    folder=str(job),
                ),
                cure="open-folder",
            ),
            files,
        )
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or classify_fault(fault) == "memory":
        return Failed.of(
            NoMemory(
                say(
                    "session.no-memory",
                    "There is not enough memory, even with the most economical settings. "
                    "Close other programs, or choose a smaller size or model.",
                ),
                cure="smaller",
            ),
            files,
        )
    if isinstance(fault, NumbersBroke):
        return Failed(
            say(
                "session.numbers",
                "The model produces invalid numbers on this machine in every precision. Choose another model, and please send a report.",
            ),
            cure="report",
            files=files,
        )
    traceback.print_exception(fault)
    if isinstance(fault, OSError) and fault.errno in OF_THE_DISK:
        return Failed(
            say(
                "session.disk-error",
                "{file} cannot be used ({fault}). See that its disk works and is connected, and that your account may use it, then resume. "
                "Finished parts are kept.",
                file=str(fault.filename or job),
                fault=word_fault(fault),
            ),
            cure="open-folder",
            files=files,
        )
    return Failed(
        say("session.unknown", "The model stopped with an unknown error. Finished parts are kept; please send a report."),
        (say("session.words", "Error message: {words}", words=f"{type(fault).__name__}: {fault}"[:500]),),
        "report",
        files,
    )
