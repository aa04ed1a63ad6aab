"""What belongs to a model's folder: a file that a link or an index leads out of it is refused before any library opens it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from app.base.bounded_json import read_json
from app.base.path_checks import is_file
from app.base.regular_file import is_inside
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models import safetensors

_SETTINGS: Final = (".json", ".txt", ".model", ".jinja")


def require_inside(file: Path, folder: Path) -> None:
    if not holds(folder, file):
        raise Trouble(
            say(
                "model.outside",
                "{file} is not a file of the model in {folder}, but leads elsewhere. Put the file itself there, or download the model again.",
                file=str(file),
                folder=str(folder),
            )
        )


def holds(folder: Path, file: Path) -> bool:
    """Tell whether `file` is a regular one of the model in `folder`, wherever its links lead."""
    return is_inside(file, folder) and is_file(file)


def check_part(part: Path, folder: Path) -> None:
    """Check all that a library may open of one part of the model in `folder`: settings, words, weights, and what indexes name."""
    listed = sorted(each for each in (*part.glob("*"), *part.glob("*/*.jinja")) if each.suffix in (*_SETTINGS, ".safetensors"))
    for file in listed:
        require_inside(file, folder)
    for index in (each for each in listed if is_index(each)):
        for name in read_index(index):
            require_inside(part / name, folder)


def is_index(file: Path) -> bool:
    return file.suffix == ".json" and ".safetensors." in file.name


def read_index(index: Path) -> list[str]:
    """Return the names of the files over which weights are spread; each must be one beside the index."""
    try:
        names = sorted({str(name) for name in read_json(index, safetensors.HEADER)["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise Trouble(
            say("model.unread", "{index} cannot be read, so the model is incomplete. Download it again.", index=str(index)), cure="models"
        ) from fault
    for name in names:
        if not name.endswith(".safetensors") or any(sign in name for sign in "/\\:"):
            raise Trouble(
                say(
                    "model.index",
                    "{index} looks for weights in {name}, which is not a .safetensors file beside it. Download the model again, or choose another one.",
                    index=str(index),
                    name=name,
                )
            )
    return names


_VARIANTS: Final = ("fp16", "bf16", "fp32", "non_ema", "ema")


def find_variant(files: Iterable[Path]) -> str | None:
    """Return the variant that all these files of weights are of, as their names say it."""
    names = [each.name for each in files]
    return next((each for each in _VARIANTS if names and all(f".{each}." in name or f".{each}-" in name for name in names)), None)


def choose_weights(part: Path, stem: str = "model") -> list[Path]:
    """Return the files that hold a part's weights: one, or those of its index; in one precision if there are two."""
    variant = find_variant(safetensors.list_weights(part))
    named = f".{variant}" if variant else ""
    whole, index = part / f"{stem}{named}.safetensors", part / f"{stem}.safetensors.index{named}.json"
    return [whole] if whole.is_file() or not index.is_file() else [part / name for name in read_index(index)]
