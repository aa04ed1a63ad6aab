"""Check that every weight came from its file: refuse missing ones, which would be random, and report unused ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from app.base.sentence import Sentence, say, shorten_list
from app.base.trouble import Trouble

_SHOWN: Final = 3
_OF_A_SINGLE_FILE: Final = ("model.diffusion_model.", "first_stage_model.", "cond_stage_model.", "conditioner.")
_KNOWN_LEFTOVERS: Final = (
    "model_ema.", "alphas_cumprod", "betas", "sqrt_", "log_", "logvar", "posterior_", "denoiser.", "scale_factor", "embedding_manager.",
    "first_stage_model.loss.", "v_pred", "ztsnr",
)  # fmt: skip
"""Training writes these, and painting never reads them."""


def check_weights(path: Path, missing: Collection[str], unexpected: Collection[str], mismatched: Collection[Any]) -> list[Sentence]:
    """Raise a Trouble if weights are missing or have another shape; return sentences about unused ones."""
    if mismatched or missing:
        names = sorted(map(str, missing)) or sorted(str(each[0] if isinstance(each, tuple) else each) for each in mismatched)
        raise Trouble(
            say(
                "weights.missing",
                "{path} is incomplete: {count} of its weights {count:is missing or has|are missing or have} another shape ({names}). Download it again.",
                path=str(path),
                count=len(names),
                names=shorten_list(names, _SHOWN),
            ),
            cure="models",
        )
    return [_describe_unexpected(path, sorted(map(str, unexpected)))] if unexpected else []


def report_unused(path: Path, names: Collection[str]) -> list[Sentence]:
    """Return a sentence about the weights of a single file that belong to no part of a model."""
    unknown = sorted(name for name in names if not name.startswith((*_OF_A_SINGLE_FILE, *_KNOWN_LEFTOVERS)))
    return [_describe_unexpected(path, unknown)] if unknown else []


def find_empty(part: torch.nn.Module) -> list[str]:
    """List weights that were never loaded: they are still on the meta device."""
    return [name for name, tensor in part.state_dict().items() if tensor.is_meta]


@contextmanager
def explain_missing(path: Path) -> Iterator[None]:
    """Turn the errors by which loaders of single files fail on a missing weight into a Trouble that says so."""
    try:
        yield
    except KeyError as fault:
        name = str(fault.args[0]) if fault.args else ""
        if "." not in name:  # a setting; the name of a weight contains its layer's
            raise
        check_weights(path, [name], (), ())
    except NotImplementedError as fault:
        if "meta tensor" not in str(fault):
            raise
        raise Trouble(
            say("weights.missing-some", "{path} is incomplete: some of its weights are missing. Download it again.", path=str(path)),
            cure="models",
        ) from fault


def _describe_unexpected(path: Path, names: list[str]) -> Sentence:
    return say(
        "weights.unexpected",
        "{path} also contains {count} {count:weight|weights} that this model does not use ({names}), ignored here.",
        path=path.name,
        count=len(names),
        names=shorten_list(names, _SHOWN),
    )
