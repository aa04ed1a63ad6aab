"""Judge the files of a local model, once and before anything uses them: their settings, where their links and indexes lead, what kind of file each is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, Final

from app.base.bounded_json import Bounds, read_json
from app.base.regular_file import is_inside
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.models.config_facts import PATH_MOST, read_config, refuse_fact, shorten

SETTINGS: Final = frozenset({
    "model_index.json", "config.json", "scheduler_config.json", "tokenizer_config.json", "special_tokens_map.json", "preprocessor_config.json",
    "processor_config.json", "generation_config.json", "adapter_config.json", "starter.json",
})  # fmt: skip
"""Libraries read these of a model besides words and weights."""
READ: Final = frozenset({".json", ".safetensors", ".gguf", ".txt", ".model", ".jinja"})
"""Only these kinds of files may be read of a model."""
INDEX: Final = Bounds(most_bytes=16 << 20, depth=4, values=safetensors.TENSORS_MOST, unique=True)
FILES_MOST: Final = 1000
"""One folder of a model may have so many files at most."""
PARTS_MOST: Final = 32
"""One model may have so many parts at most; pipelines have up to 12."""
JUDGED_MOST_BYTES: Final = 20 << 20
"""Settings and indexes of one model may take so much together; the largest models have 2 MB. Links may name the same file again and
again."""


def read_settings(folder: Path, name: str) -> dict[str, Any]:
    """Return the judged settings of a file; raise a Trouble for what cannot be read, or what no model has."""
    try:
        _require_own_file(folder, folder / name, S_ISREG)
        return read_config(folder, name)
    except (ValueError, OSError) as fault:
        raise Trouble(
            say(
                "detect.config",
                "{path} cannot be read ({fault}), so the model is incomplete. Download it again.",
                path=str(folder / name),
                fault=str(fault),
            )
        ) from fault


def judge_folder(folder: Path, parts: Iterable[str] = ()) -> None:
    """Judge all that a library would read of a model besides its weights; raise a Trouble for the first that no model has."""
    named, judged_bytes = ["", *parts], 0
    if len(named) > PARTS_MOST + 1:
        raise refuse_fact(folder, "model_index.json", "parts", len(named) - 1)
    for part in named:
        inner = folder / part
        if part and (part != inner.name or part == ".."):
            raise refuse_fact(folder, "model_index.json", "part", part)
        if not os.path.lexists(inner):
            continue
        _require_own_file(folder, inner, S_ISDIR)
        for path in sorted(islice(inner.iterdir(), FILES_MOST)):
            if path.suffix.lower() not in READ or (path.suffix == ".txt" and not part):
                continue
            name, is_index = path.relative_to(folder).as_posix(), path.name.endswith(".safetensors.index.json")
            if path.name in SETTINGS:
                read_settings(folder, name)
            else:
                _require_own_file(folder, path, S_ISREG)
            if is_index:
                _judge_index(folder, name)
            if is_index or path.name in SETTINGS:
                judged_bytes += path.stat().st_size
                if judged_bytes > JUDGED_MOST_BYTES:
                    raise _refuse_much(folder)


def _refuse_much(folder: Path) -> Trouble:
    return Trouble(
        say(
            "detect.much",
            "The model in {path} cannot be used: its settings have more than {most} MB together, which no such model has. "
            "Download it again, or remove it from the list.",
            path=str(folder),
            most=JUDGED_MOST_BYTES >> 20,
        )
    )


def _require_own_file(folder: Path, path: Path, is_kind: Callable[[int], bool]) -> None:
    if not is_inside(path, folder) or not is_kind(path.stat().st_mode):  # in this order: what lies elsewhere is not asked
        raise Trouble(
            say(
                "detect.link",
                "The model in {path} cannot be used: its {file} leads out of the model's folder or is no plain file. Put the file itself in its place.",
                path=str(folder),
                file=shorten(path.relative_to(folder).as_posix(), PATH_MOST),
            )
        )


def _judge_index(folder: Path, name: str) -> None:
    """Check that an index names weights that lie beside it, and nothing else."""
    index = read_json(folder / name, INDEX)
    for file in {str(each) for each in index["weight_map"].values()}:
        if not file.endswith(".safetensors") or "/" in file or "\\" in file:
            raise refuse_fact(folder, name, "weight_map", file)
