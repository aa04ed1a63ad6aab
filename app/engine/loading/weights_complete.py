"""Whether every weight of a model came from its file: what is missing would be random numbers, and is refused; what is left over is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.sentence import Sentence, Trouble, say

if TYPE_CHECKING:
    import torch

_SHOWN: Final = 3
_OF_A_SINGLE_FILE: Final = ("model.diffusion_model.", "first_stage_model.", "cond_stage_model.", "conditioner.")
_KNOWN_LEFTOVERS: Final = (
    "model_ema.", "alphas_cumprod", "betas", "sqrt_", "log_", "logvar", "posterior_", "denoiser.", "scale_factor", "embedding_manager.",
    "first_stage_model.loss.",
)  # fmt: skip
"""What training leaves in a checkpoint and painting never reads."""


def check_weights(
    path: Path, missing: Collection[str], unexpected: Collection[str], mismatched: Collection[Any]
) -> list[Sentence]:
    """A Trouble where weights are missing or have another shape; sentences about what nobody asked for."""
    if mismatched or missing:
        names = sorted(map(str, missing)) or sorted(
            str(each[0] if isinstance(each, tuple) else each) for each in mismatched
        )
        raise Trouble(
            say(
                "whole.missing",
                "{path} is not whole: {count} of its weights are missing or have another shape ({names}). It would run on random numbers; get it again.",
                path=str(path), count=len(names), names=_format_names(names),
            ),
            cure="models",
        )  # fmt: skip
    return [_describe_unexpected(path, sorted(map(str, unexpected)))] if unexpected else []


def report_unused(path: Path, names: Collection[str]) -> list[Sentence]:
    """What a single file holds beside the parts of a model."""
    strange = sorted(name for name in names if not name.startswith((*_OF_A_SINGLE_FILE, *_KNOWN_LEFTOVERS)))
    return [_describe_unexpected(path, strange)] if strange else []


def find_empty(part: torch.nn.Module) -> list[str]:
    """Weights that were never filled: loaders that make an empty model first leave them without memory."""
    return [name for name, tensor in part.state_dict().items() if tensor.is_meta]


@contextmanager
def explain_missing(path: Path) -> Iterator[None]:
    """Loaders of single files look weights up one by one, and move a model as soon as it is filled: where one is not there they
    stumble, and that is said as what it is."""
    try:
        yield
    except KeyError as fault:
        name = str(fault.args[0]) if fault.args else ""
        if "." not in name:  # a setting's; a weight's name has its layer's before it
            raise
        check_weights(path, [name], (), ())
    except NotImplementedError as fault:
        if "meta tensor" not in str(fault):
            raise
        raise Trouble(
            say(
                "whole.missing-some",
                "{path} is not whole: some of its weights are missing. It would run on random numbers; get it again.",
                path=str(path),
            ),
            cure="models",
        ) from fault


def _describe_unexpected(path: Path, names: list[str]) -> Sentence:
    return say(
        "whole.unexpected",
        "{path} also holds {count} weights that this model has no place for ({names}); they were left out.",
        path=path.name, count=len(names), names=_format_names(names),
    )  # fmt: skip


def _format_names(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
