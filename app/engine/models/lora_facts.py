"""What a LoRA or an embedding is, from its header alone: its family, its trigger words, what it was taught with. Loads nothing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from app.base.bounded_json import Bounds, parse_json
from app.base.clean_words import clean_words
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.models.file_facts import PLAIN_LORA, find_lora_kind
from app.engine.models.model import Model
from app.engine.models.picture_families import FAMILIES
from app.engine.models.safetensors import Entry

Kind = Literal["lora", "embedding"]
WORDS_MOST: Final = 12
"""So many trigger words, and so many tags, are kept: the most frequent."""
WORD_MOST: Final = 80
KNOWN_MOST: Final = 512
"""At most so many headers' counts are remembered."""
TEXT_MOST: Final = 4_000
"""At most so many letters of a field are split into words."""
TAGS: Final = Bounds(most_bytes=8 << 20, depth=4, values=200_000)
VECTORS_MOST: Final = 128
"""An embedding may have so many vectors: more would fill the prompt."""
SD2: Final = "sd2"
NAMES: Final[Mapping[str, str]] = {**{each.name: each.short for each in FAMILIES.values()}, SD2: "SD 2", "other": "another kind of model"}
"""Families have these names, also those that Hearth does not paint with."""
_WRITTEN: Final = (
    *((begin, each.name) for each in FAMILIES.values() for begin in each.written_as),
    ("stable-diffusion-v2", SD2),
    ("sd_v2", SD2),
)
"""`modelspec.architecture` begins so, or kohya's `ss_base_model_version`."""
_CROSS: Final[Mapping[int, str]] = {**{each.lora_width: each.name for each in FAMILIES.values() if each.lora_width}, 1024: SD2}
"""A family is told by how many numbers a UNet's attention reads of each token."""
_VECTORS: Final = (768, 1024)
"""One list of vectors with so many numbers each tells an embedding's family; SDXL's has two."""
_CROSS_NAME: Final = re.compile(r"attn2[._]to_[kv](?:\.lora)?[._](?:lora_down|lora_A|down)(?:\.default)?\.weight$")
_REPEATED: Final = re.compile(r"(\d{1,4})_(.+)")
"""kohya's folder of pictures is named so: how often each is seen, then the words that stand for it."""


@dataclass(frozen=True, slots=True)
class LoraFacts:
    kind: Kind = "lora"
    family: str = ""
    """NAMES has this key; empty: it does not say."""
    title: str = ""
    triggers: tuple[str, ...] = ()
    """Its makers say that these words bring it out."""
    tags: tuple[str, ...] = ()
    """Its pictures were tagged with these, the most frequent first."""
    trouble: Sentence | None = None
    """It says why it cannot be used."""


def read_facts(path: Path) -> LoraFacts:
    """Read the header; whatever is wrong with it becomes the trouble of this file alone."""
    try:
        header = safetensors.read_whole_header(path)
        return describe(header.entries, header.words) or LoraFacts(
            trouble=say("lora.not-one", "This file is neither a LoRA nor an embedding.")
        )
    except Trouble as trouble:
        return LoraFacts(trouble=trouble.sentence)
    except OSError:
        return LoraFacts(trouble=say("lora.unreadable", "This file cannot be read."))


def count_parameters(path: Path) -> int:
    """Count a LoRA's parameters; none in a file that cannot be read, which its run tells."""
    try:
        facts = path.stat()
        return _count_parameters(path, (facts.st_size, facts.st_mtime_ns))
    except (Trouble, OSError):
        return 0


@lru_cache(KNOWN_MOST)
def _count_parameters(path: Path, _stamp: tuple[int, int]) -> int:
    return sum(math.prod(each.shape) for each in safetensors.read_header(path).values())


def describe(entries: Mapping[str, Entry], words: Mapping[str, str]) -> LoraFacts | None:
    """Describe a file by its tensors and by what its makers wrote; None if it is neither a LoRA nor an embedding."""
    kind = _find_kind(entries)
    if kind is None:
        return None
    other = find_lora_kind(entries)
    trouble = say("lora.other-kind", "It is of the kind {kind}, which Hearth does not use. Get it as a plain LoRA.", kind=other)
    tags = tuple(tag for tag, _ in _count_tags(words.get("ss_tag_frequency", "")).most_common(WORDS_MOST))
    title = _clip(words.get("modelspec.title") or words.get("ss_output_name") or "")
    family = _find_family(kind, entries, words)
    return LoraFacts(kind, family, title, _find_triggers(words), tags, trouble if other not in ("", PLAIN_LORA) else None)


def _find_kind(entries: Mapping[str, Entry]) -> Kind | None:
    if find_lora_kind(entries):
        return "lora"
    vectors = [_count_vectors(entry) for entry in entries.values()]
    return "embedding" if 0 < len(vectors) <= 2 and all(0 < count <= VECTORS_MOST for count in vectors) else None


def _count_vectors(entry: Entry) -> int:
    return {1: 1, 2: entry.shape[0]}.get(len(entry.shape), 0) if entry.shape and entry.dtype in ("F16", "F32", "BF16") else 0


def _find_family(kind: Kind, entries: Mapping[str, Entry], words: Mapping[str, str]) -> str:
    """Shapes say what fits; words say it where shapes do not."""
    if kind == "embedding":
        widths = [entry.shape[-1] for entry in entries.values()]
        return "sdxl" if {"clip_g", "clip_l"} <= entries.keys() or 1280 in widths else _CROSS[widths[0]] if widths[0] in _VECTORS else ""
    for name, entry in entries.items():
        if _CROSS_NAME.search(name) and len(entry.shape) >= 2 and entry.shape[1] in _CROSS:
            return _CROSS[entry.shape[1]]
    marked = (each.name for each in FAMILIES.values() if any(mark in name for name in entries for mark in each.lora_marks))
    found, written = next(marked, ""), _find_written(words)
    return written if not found or (written in FAMILIES and FAMILIES[written].loras_like == found) else found


def _find_written(words: Mapping[str, str]) -> str:
    for field in ("modelspec.architecture", "ss_base_model_version"):
        written = words.get(field, "").lower()
        if found := next((family for begin, family in _WRITTEN if written.startswith(begin)), ""):
            return found
    return ""


def _find_triggers(words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that the makers name; without any, those by which kohya calls the folders of pictures."""
    told = words.get("modelspec.trigger_phrase") or words.get("ss_trigger_words") or words.get("trigger_word") or ""
    if told.strip():
        return _list_words(told[:TEXT_MOST].strip('[]"').replace('"', "").split(","))
    named = (_REPEATED.fullmatch(name) for name in _parse(words.get("ss_dataset_dirs", "")))
    return _list_words(found[2] for found in named if found is not None)


def _count_tags(text: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for tags in _parse(text).values():
        for tag, count in tags.items() if isinstance(tags, dict) else ():
            if isinstance(count, int) and (named := _clip(tag)):
                counted[named] += max(0, count)
    return counted


def _parse(text: str) -> dict[str, object]:
    try:
        found = parse_json(text, TAGS) if text else {}
    except ValueError:
        return {}
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def _list_words(words: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(clipped for each in words if (clipped := _clip(each)))
    return tuple(found)[:WORDS_MOST]


def _clip(words: str) -> str:
    """Return what strangers wrote on one line, as far as a row shows it."""
    return clean_words(" ".join(str(words)[: 4 * WORD_MOST].split()))[:WORD_MOST]


NO_LORA: Final = say(
    "lora.embedding-alone",
    "It is an embedding (textual inversion), not a LoRA: put its file beside your LoRAs, and write its name into the prompt.",
)


def explain_misfit(facts: LoraFacts, model: Model) -> Sentence | None:
    """Say why a LoRA cannot be used with a model; None if it can, or nothing is known against it."""
    if facts.trouble is not None:
        return facts.trouble
    family = FAMILIES.get(model.family)
    if facts.family and (model.starter or facts.family not in (model.family, family.loras_like if family else "")):
        made_for = NAMES.get(facts.family, facts.family)
        return say("lora.family", "Made for {family}; {model} is another kind of model.", family=made_for, model=model.words)
    if facts.kind == "embedding" and not (family and family.prompt_weights):
        return say("lora.embedding-family", "Only SD 1.5 and SDXL take embeddings.")
    return None
