"""Judge a tokenizer's files before a library reads them: it would read any size, and make of a prompt as many letters as its steps say."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from app.base.regular_file import open_regular
from app.base.trouble import Trouble
from app.engine.models.config_facts import Fact, StrangeFactError, judge_fact, refuse_fact

FACTS: Final = {
    "size in bytes": Fact(int, 0, 32 << 20), "letters of a word": Fact(int, 0, 4096), "steps": Fact(int, 0, 32), "letters for a letter": Fact(int, 1, 1000),
    "letters of its template": Fact(int, 0, 20_000), "values": Fact(int, 0, 2_000_000), "templates": Fact(int, 0, 1), "lists in lists": Fact(int, 0, 0),
    "prompts in its template": Fact(int, 0, 1), "tokens around a prompt": Fact(int, 0, 16),
}  # fmt: skip
"""The largest tokenizer.json of a picture model has 17.5 MB, one of 11 MB 600,000 values; a step makes up to 18 letters of one, as Unicode does of U+FDFA."""
_PLAIN: Final = frozenset({"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "BertNormalizer", "Nmt", "Sequence"})
"""These steps make no more when done twice than when done once."""
_CHARSMAP: Final = "precompiled_charsmap"


def judge_tokenizer(folder: Path) -> None:
    """Raise a Trouble that names the file and the number, for the first that no tokenizer has; a ValueError or OSError for what cannot be read."""
    for path in sorted(each for each in folder.iterdir() if each.suffix in (".json", ".txt", ".model", ".jinja") and each.is_file()):
        try:
            _judge("size in bytes", path.stat().st_size)
            if path.name in ("vocab.json", "added_tokens.json") or (path.name.startswith("tokenizer.") and path.suffix == ".json"):
                with open_regular(path) as file:
                    raw = file.read(int(FACTS["size in bytes"].most))
                _judge("values", sum(map(raw.count, (b",", b"[", b"{"))))
                _judge_words(json.loads(raw))
        except StrangeFactError as strange:
            raise _refuse(folder, path.name, strange) from strange
        except (ValueError, RecursionError) as fault:  # the library would not name the file
            raise ValueError(f"{path.name}: {fault}") from fault


def _refuse(folder: Path, name: str, strange: StrangeFactError) -> Trouble:
    return refuse_fact(folder, name, strange.field, strange.value, cure="models")


def _judge(field: str, value: int) -> None:
    judge_fact(field, value, FACTS[field])


def _judge_words(values: Any) -> None:
    """Judge a tokenizer.json, or a table of words."""
    parts = values if isinstance(values, dict) else {}
    model = parts.get("model")
    for words in (model.get("vocab") if isinstance(model, dict) else None, parts):
        _judge("letters of a word", max(map(_measure, words), default=0) if isinstance(words, dict | list) else 0)
    for token in _list_objects(parts.get("added_tokens")):
        _judge("letters of a word", _measure(token.get("content")))
    _judge_template(parts.get("post_processor"))
    steps = list(_list_objects(parts.get("normalizer")))
    _judge("steps", len(steps))
    _judge("letters for a letter", math.prod(map(_grow, steps)))


def _judge_template(value: Any) -> None:
    """Judge what is put around a prompt: of a prompt in so many windows come that many to the power of how often it stands there. That is
    counted in the text, as the library takes several shapes for a piece; for a template it takes a list, too."""
    _judge("letters of its template", len(json.dumps(value)))
    _judge("lists in lists", sum(isinstance(inner, list) for each in _walk([value]) if isinstance(each, list) for inner in each))
    templates = [each for each in _list_objects(value) if "single" in each]
    _judge("templates", len(templates))
    for template in templates:
        single, pair = (json.dumps(template.get(name)) for name in ("single", "pair"))
        _judge("prompts in its template", max(single.count('"A"') + single.count('"B"') * 2, pair.count('"A"'), pair.count('"B"')))
        longest = max((len(each) for each in _walk(template.get("special_tokens")) if isinstance(each, list)), default=0)
        _judge("tokens around a prompt", single.count('"SpecialToken"') * longest)  # each window has them


def _measure(word: Any) -> int:
    return len(word) if isinstance(word, str) else _measure(word[0]) if isinstance(word, list) and word else 0


def _list_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value; a step is one with or without its type."""
    return (each for each in _walk(value) if isinstance(each, dict))


def _walk(value: Any) -> Iterator[dict[str, Any] | list[Any]]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict | list):
            yield found
            waiting += found.values() if isinstance(found, dict) else found


def _grow(step: dict[str, Any]) -> int:
    """Return how many letters a step may make of one."""
    if isinstance(charsmap := step.get(_CHARSMAP), str):
        raw = base64.b64decode(charsmap)
        return max(map(len, raw[4 + int.from_bytes(raw[:4], "little") :].split(b"\0"))) or 1
    made = [len(each) for each in (step.get("content"), step.get("prepend")) if isinstance(each, str)]
    if made:
        return 1 + max(made)  # a pattern may match between any two letters
    return 1 if str(step.get("type")) in _PLAIN or not step.keys() - {"String", "Regex", "normalizers"} else 2
