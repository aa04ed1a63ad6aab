"""Load a tokenizer from its own folder alone: settings that name files elsewhere are left out, and no program of its is run."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import transformers

from app.base.bounded_json import read_json
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.config_facts import PATH_MOST, shorten
from app.engine.models.safetensors import HEADER
from app.engine.models.tokenizer_facts import judge_tokenizer

_READ: Final = ("tokenizer_config.json", "special_tokens_map.json")
"""transformers takes a tokenizer's arguments from these, paths among them."""
_NOT_ITS_OWN: Final = ("config.json", "model_index.json")
"""They describe what may lie beside a tokenizer."""
_STEERING: Final = frozenset({"auto_map", "init_inputs", "trust_remote_code"})
_USUAL: Final = "tokenizer.json"
_OF_VERSION: Final = re.compile(r"tokenizer\.(\d{1,4})\.(\d{1,4})\.(\d{1,4})\.json")


def load_tokenizer(kind: Any, folder: Path, chat_template: str = "") -> Any:
    """Load the tokenizer in `folder`, whose files were checked (model_folder.py). `chat_template` takes the place of its own, a program that may
    compute for ever or fill the memory."""
    judge_tokenizer(folder)
    tokenizer = _explaining(_load_own, folder)(kind, folder)
    tokenizer.chat_template = chat_template or None
    tokenizer._encode_plus = _explaining(tokenizer._encode_plus, folder)
    return tokenizer


def _load_own(kind: Any, folder: Path) -> Any:
    found = {name: read_json(folder / name, HEADER) for name in _READ if (folder / name).is_file()}
    kept = {name: {key: value for key, value in values.items() if not _leads_away(key, value)} for name, values in found.items()}
    if kept == found:
        return kind.from_pretrained(folder, local_files_only=True)
    with TemporaryDirectory(prefix="hearth-") as copy:
        for file in folder.iterdir():
            if file.suffix in (".json", ".txt", ".model", ".jinja") and file.name not in (*_NOT_ITS_OWN, *kept) and file.is_file():
                shutil.copyfile(file, Path(copy, file.name))
        for name, values in kept.items():
            Path(copy, name).write_text(json.dumps(values), "utf-8")
        chosen = choose_file(found.get("tokenizer_config.json", {}), transformers.__version__)
        if chosen != _USUAL:
            shutil.copyfile(folder / chosen, Path(copy, _USUAL))
        return kind.from_pretrained(Path(copy), local_files_only=True)


def choose_file(config: Mapping[str, Any], version: str) -> str:
    """Return the file that a tokenizer's config names for this version of transformers: the newest that is not for a later one, if any."""
    named = config.get("fast_tokenizer_files")
    found = (_OF_VERSION.fullmatch(each) for each in (named if isinstance(named, list) else ()) if isinstance(each, str))
    here = tuple(map(int, re.findall(r"\d+", version)[:3]))
    fitting = {tuple(map(int, each.groups())): each[0] for each in found if each is not None}
    return max((each for each in fitting.items() if each[0] <= here), default=((), _USUAL))[1]


def _explaining(call: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Have a call raise a Trouble for the library's own faults: a panic, which is no Exception and would end the engine, a bare Exception, or a
    number too large for it, as the length of a tokenizer that has none."""

    @functools.wraps(call)
    def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except BaseException as fault:
            if type(fault).__name__ not in ("PanicException", "Exception", "OverflowError"):
                raise
            raise Trouble(
                say(
                    "load.tokenizer",
                    "The tokenizer in {folder} is damaged ({fault}). Download the model again, or choose another one.",
                    folder=str(folder),
                    fault=shorten(str(fault), PATH_MOST),
                ),
                cure="models",
            ) from fault

    return explained


def _leads_away(key: str, value: object) -> bool:
    return value is not None and (key.endswith(("_file", "_files")) or key in _STEERING)
