"""README's hardware table, out of the plans themselves: one row for each machine that Hearth pretends."""

from __future__ import annotations

from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import AUTO, Plan
from app.engine.models.catalog import BY_ID
from app.engine.models.planned import make_plan
from app.paths import home

SHOWN = ("dia-1.6b", "sd15", "sdxl")
COLUMNS = ("Machine", "torch", "Computes in", "Scores", "Grouped heads", "Chunk", "torch's kernels", *(BY_ID[each].title for each in SHOWN))


def table() -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(machine) for machine in MACHINES.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(machine: Hardware) -> tuple[str, ...]:
    plan = make_plan(home(), machine, itself=True)
    chunk = "fixed" if plan.chunk_q != AUTO else "automatic"
    keys = f", {plan.chunk_k} keys" if plan.chunk_k else ""
    return (
        f"{machine.name}, {round(machine.memory_bytes / 2**30)} GB", machine.torch, plan.dtype, plan.score_dtype or "the kernel's",
        plan.gqa, chunk + keys, ", ".join(plan.kernels) or "none: Hearth's own", *(_fit(make_plan(home(), machine, BY_ID[each], itself=True)) for each in SHOWN),
    )  # fmt: skip


def _fit(plan: Plan) -> str:
    """How one model goes there, in a few words."""
    kept = {each.storage for each in plan.precision if each.role in ("speech", "denoiser")}
    words = [f"kept in {', '.join(sorted(kept))}"]
    if plan.quantised != "none":
        words.append(plan.quantised)
    if plan.offload != "none":
        words.append(f"offload: {plan.offload}")
    if plan.vae.tile_pixels:
        words.append(f"tiles of {plan.vae.tile_pixels}")
    return "; ".join([*words, "tight"] if plan.warnings else words)
