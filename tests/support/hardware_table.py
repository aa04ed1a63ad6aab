"""Make README's hardware table from the plans: one row per pretended machine, and an M1 with the torch that is installed today."""

from __future__ import annotations

from dataclasses import replace

from app.base.paths import home
from app.base.sentence import in_words
from app.cli.doctor import SHOWN
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.planning.plan_words import FIELDS, word_value
from app.engine.models.catalog import BY_ID
from app.engine.models.fit import FITS
from app.engine.models.forecast import judge_plan
from app.engine.models.model import Model
from app.engine.models.planned import find_need, make_plan

ATTENTION_FIELDS = ("dtype", "score_dtype", "gqa", "chunk_q", "chunk_k", "kernels")
COLUMNS = ("Machine", "torch", *(str(FIELDS[each]) for each in ATTENTION_FIELDS), *(BY_ID[each].title for each in SHOWN))


def table() -> str:
    today = replace(MACHINES["m1-8gb-browser"], free_bytes=MACHINES["m1-8gb"].free_bytes)
    rows = [COLUMNS, ("---",) * len(COLUMNS), _row(today), *map(_row, MACHINES.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(machine: Hardware) -> tuple[str, ...]:
    plan = make_plan(home(), machine, itself=True)
    return (
        f"{machine.name}, {round(machine.memory_bytes / 2**30)} GB, {round(machine.free_bytes / 2**30, 1):g} free",
        machine.torch,
        *(str(in_words(word_value(plan, field))) for field in ATTENTION_FIELDS),
        *(_fit(machine, BY_ID[each]) for each in SHOWN),
    )


def _fit(machine: Hardware, model: Model) -> str:
    """Describe in a few words how a model fits the machine, with the window's own verdict."""
    plan = make_plan(home(), machine, model, itself=True)
    fit, _ = judge_plan(find_need(home(), machine, model, itself=True), plan, machine)
    kept = {each.storage for each in plan.precision if each.role in ("speech", "denoiser")}
    words = [f"weights in {', '.join(sorted(kept))}"]
    if plan.quantised != "none":
        words.append(plan.quantised)
    if plan.offload != "none":
        words.append(str(in_words(word_value(plan, "offload"))))
    if plan.vae.tile_pixels:
        words.append(str(in_words(word_value(plan, "vae"))))
    return "; ".join(words if fit == "fits" else [*words, str(FITS[fit])])
