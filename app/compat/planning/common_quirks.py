"""COMMON: known defects of torch and of models that no single kind of device has. Rows of the quirk table."""

from __future__ import annotations

from typing import Final

from app.base.sentence import say
from app.compat.planning.quirk import Quirk, Where

COMMON: Final[tuple[Quirk, ...]] = (
    Quirk(
        "rng-device", (Where(("cuda", "rocm", "mps", "cpu")),),
        say("quirk.rng-device", "The same seed gives different pictures on different devices, so noise is always drawn on the processor."),
        "A1111 PR 9734; diffusers #13298",
    ),
    Quirk(
        "sdpa-dtype", (Where(),),
        say("quirk.sdpa-dtype", "torch rejects attention with mixed dtypes, so all inputs are cast to the values' dtype."),
        "seen on torch 2.13; dia #45, #108, #113, #158", r"Expected query, key, and value to have the same dtype",
    ),
    Quirk(
        "sdpa-mask-dtype", (Where(),),
        say("quirk.sdpa-mask-dtype", "torch rejects a mask whose dtype differs from the queries', so it is cast too."),
        "seen on torch 2.13", r"Expected attn_mask dtype to be bool or float or to match query dtype",
    ),
    Quirk(
        "sdpa-heads", (Where(),),
        say("quirk.sdpa-heads", "torch rejects fewer key heads than query heads unless a flag is set, so Hearth detects groups from the shapes."),
        "seen on torch 2.13", r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension 1",
    ),
    Quirk(
        "intel-mac", (Where(systems=("macos",), processor="x86_64"),),
        say("quirk.intel-mac", "torch for Intel Macs ended with 2.2.2, which is too old for the models. Use another computer, or Linux on this one."),
        "pytorch #114602", stops=True,
    ),
    Quirk(
        "vae-fp16", (Where(dtypes=("float16",)),),
        say("quirk.vae-fp16", "This part overflows in float16 and gives black pictures, so it computes in a wider dtype."),
        "InvokeAI #7208, PR 7213; A1111 #10227", against=("unsafe/float16",),
    ),
)  # fmt: skip
