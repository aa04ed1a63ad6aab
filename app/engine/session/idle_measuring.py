"""Measure attention variants while the engine is idle: each shape of the installed models once, in pieces of about 0.1 s."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import torch

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.attention.measure import is_short, quickest
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict, learn
from app.compat.planning.attention_calls import Call
from app.compat.planning.quickest_way import has_choice, round_up_lengths, way_subject
from app.compat.planning.types import Choice, Row
from app.engine.kinds import KINDS
from app.engine.models import catalog, on_disk
from app.engine.models.chosen import read_choice
from app.engine.models.model import Model, describe_need
from app.engine.models.planned import make_plan
from app.engine.session.loaded_models import THREADS

DEVICES: Final = ("cpu", "cuda", "rocm")
"""On Metal an unsupported shape ends the process, so nothing is tried there unasked."""


def measure_while_idle(home: Home, hardware: Hardware, verdicts: dict[Subject, Verdict]) -> Iterator[None]:
    """Measure and store verdicts for this torch, system and card one by one; an interruption loses only the current
    shape."""
    if hardware.pretended or hardware.kind not in DEVICES:
        return
    for model in catalog.CATALOG:
        # The starters' attention is too small for a choice.
        if model.starter or on_disk.locate(home, model) is None:
            continue
        try:
            # Use the precision that runs; other forced choices do not affect which variant is fastest.
            plan = make_plan(home, hardware, model, Choice(dtype=read_choice(home).dtype), verdicts)
        except Trouble:  # it cannot run here, which its own request reports
            continue
        for call in list_calls(model, plan.row):
            shape = call.shape(plan.dtype)
            if not has_choice(shape) or way_subject(round_up_lengths(shape)) in verdicts or not is_short(shape):
                continue
            if torch.get_num_threads() != THREADS:  # a small model's speech uses fewer
                return
            for found in quickest(shape, plan, plan.device):
                if found is not None:
                    verdicts.update(learn(home.verdicts, hardware, found))
                yield


def list_calls(model: Model, row: Row) -> tuple[Call, ...]:
    """List the attention calls at the model's recommended picture size, or for how it makes a row of speech."""
    if model.makes is None:
        return ()
    rows = describe_need(model).batch
    return tuple(
        call._replace(batch=min(call.batch, rows)) for call in KINDS[model.makes].list_calls(model, row)
    )  # one row without guidance
