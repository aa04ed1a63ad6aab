"""Keep a card's memory from spilling into the computer's on Windows, and notice when it does: the driver raises no error."""

from __future__ import annotations

from typing import Final

import torch

from app.base.sentence import Sentence, say
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.types import Plan
from app.engine.jobs.events import Step
from app.engine.models.model import Model

BESIDE_BYTES: Final = 128 << 20
"""The driver and its libraries take this much beside torch's tensors: kernels, workspaces."""
FULL_BYTES: Final = 256 << 20
"""A card with less than this free is full: the driver keeps some to itself."""
CRAWL: Final = 4.0
"""A step that takes this many times as long as before crawls; attention in the smallest chunks costs less."""
NOTABLE: Final = 1.1
"""Only a pace that is faster than the usual one by this factor is stored, so that few runs write."""


def can_spill(hardware: Hardware) -> bool:
    """Tell whether the driver moves a full card's memory to the computer's: NVIDIA's does on Windows, also under its Linux."""
    windows = hardware.system == "windows" or "microsoft" in hardware.system_version.lower()
    return hardware.kind == "cuda" and windows and not hardware.pretended


def bound_share(hardware: Hardware, reading: Reading) -> None:
    """Let torch take no more of the card than is free now: beyond that it raises its out-of-memory error, to which a fallback answers."""
    if can_spill(hardware) and reading.device_bytes is not None:
        torch.cuda.set_per_process_memory_fraction(find_share(reading.limit_bytes, hardware.memory_bytes))


def find_share(limit_bytes: int, memory_bytes: int) -> float:
    return min(1.0, max(0.0, (limit_bytes - BESIDE_BYTES) / memory_bytes))


class CrawlWatch:
    """Compares a run's steps with its fastest one, and with the fastest that such runs have made on this machine."""

    def __init__(self, hardware: Hardware, usual: Verdict | None = None, work: float = 1.0) -> None:
        """`usual`: what `learn` made of earlier runs. `work`: of one step, as weigh_step() weighs it."""
        self._spills, self._work, self._noticed = can_spill(hardware), work, False
        self._steps, self._fastest = 0, 0.0
        self._usual = 1 / (usual.elapsed_s * work) if usual is not None and usual.elapsed_s > 0 else 0.0

    def notice(self, step: Step) -> Sentence | None:
        """Return a sentence at the first step that crawls while the card is full. The first step of all includes reading the prompt."""
        if step.at_once > 1:  # pictures that are painted together have a pace of their own
            return None
        self._steps += 1
        self._fastest = max(self._fastest, step.rate)
        best, memory = max(self._fastest, self._usual), step.memory
        full = memory.device_bytes is not None and memory.limit_bytes - memory.device_bytes < FULL_BYTES
        if not self._spills or self._noticed or self._steps == 1 or not full or step.rate * CRAWL > best:
            return None
        self._noticed = True
        return say(
            "session.crawl",
            "The card's memory is full, and Windows uses the computer's slow memory in its place: a step now takes {times} {times:time|times} as long. "
            "Close other programs that use the card, or choose a smaller size or model.",
            times=round(best / max(step.rate, 1e-9)),
        )

    def learn(self, subject: Subject) -> Verdict | None:
        """Return the time of this run's fastest step, for one unit of work; None if there is nothing new to learn."""
        if not self._spills or self._steps < 2 or self._fastest < self._usual * NOTABLE or not self._fastest:
            return None
        return Verdict(subject, passed=True, elapsed_s=1 / (self._fastest * self._work))


def name_pace(model: Model, plan: Plan) -> Subject:
    """Make the subject of how fast a model's steps are with such a plan. Local models go by their family: verdicts hold no paths."""
    return Subject("pace", "/".join((model.family if model.is_local else model.id, plan.dtype, plan.offload, plan.quantised)))
