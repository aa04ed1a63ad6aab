"""Forbid pickles in this process: libraries turn to torch.load where there are no .safetensors."""

from __future__ import annotations

import os
from typing import NoReturn

import torch

from app.base.sentence import say
from app.base.trouble import Trouble


def refuse_pickles() -> None:
    torch.load = torch.serialization.load = _refuse  # type: ignore[assignment]


def _refuse(file: object, *_: object, **__: object) -> NoReturn:
    raise Trouble(
        say(
            "load.pickle",
            "Hearth opens no pickle files such as {file}, because they can run any program. Download this model as .safetensors.",
            file=str(file) if isinstance(file, str | os.PathLike) else "?",
        )
    )
