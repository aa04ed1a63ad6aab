"""Odd questions for a child process that checks a machine: they hang, end it, lose its context. It imports little, so that it is there soon."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.selftest.probes import Probe

CONTEXT_LOST = "CUDA error: an illegal memory access was encountered"


def right(device: str) -> tuple[float, float]:
    return 0.0, 0.1


def make_probe(name: str, look: Callable[[str], tuple[float, float]] = right, dtype: str = "float32") -> Probe:
    return Probe(Subject.part(name, "float32"), dtype, look)  # type: ignore[arg-type]


def failing(words: str, kind: type[Exception] = RuntimeError) -> Callable[[str], tuple[float, float]]:
    def look(device: str) -> tuple[float, float]:
        raise kind(words)

    return look


_lost: list[bool] = []


def losing_its_context(hardware: Hardware) -> tuple[Probe, ...]:
    """As CUDA: after one illegal access every later call of the same process fails; a fresh process is well."""

    def lose(device: str) -> tuple[float, float]:
        _lost.append(True)
        raise RuntimeError(CONTEXT_LOST)

    def look(device: str) -> tuple[float, float]:
        if _lost:
            raise RuntimeError(CONTEXT_LOST)
        return 0.0, 0.1

    return make_probe("one bad kernel", lose), make_probe("denoiser", look), make_probe("vae", look)


def terminated(hardware: Hardware) -> tuple[Probe, ...]:
    def end(device: str) -> tuple[float, float]:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        return 0.0, 0.0

    return make_probe("denoiser", end), make_probe("vae")


def hanging(hardware: Hardware) -> tuple[Probe, ...]:
    def hang(device: str) -> tuple[float, float]:
        time.sleep(60)
        return 0.0, 0.0

    return (make_probe("vae", hang),)


def hanging_before(hardware: Hardware) -> tuple[Probe, ...]:
    time.sleep(60)
    return hanging(hardware)


def slow(hardware: Hardware) -> tuple[Probe, ...]:
    def look(device: str) -> tuple[float, float]:
        time.sleep(2)
        return 0.0, 0.1

    return make_probe("vae"), make_probe("denoiser", look)
