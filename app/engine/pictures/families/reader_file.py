"""Load a model that reads a picture once, before the first step, or enlarges one: on the processor in float32, with open tensors only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.judged_files import judge_folder
from app.engine.models.loading import from_pretrained, weights_complete
from app.engine.models.model_folder import check_part

_FAULTS: Final = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError)
"""The library raises these for settings and weights that make no such model."""


def load_reader(kind: Any, folder: Path) -> Any:
    """Return the model in a folder, of this class in transformers; raise a Trouble if it is damaged."""
    judge_folder(folder)
    check_part(folder, folder)
    try:
        config = from_pretrained.read_config(kind, folder)
        with from_pretrained.open_weights(folder) as weights:
            model, found = kind.from_pretrained(None, state_dict=weights, config=config, dtype=torch.float32, output_loading_info=True)
        weights_complete.check_weights(folder, found["missing_keys"], found["unexpected_keys"], found["mismatched_keys"])
    except _FAULTS as fault:
        raise Trouble(
            say("guide.reader-damaged", "The model in {folder} is damaged. Delete it in Models and download it again.", folder=str(folder)),
            cure="models",
        ) from fault
    return model.eval()
