"""What a prompt names of the library: LoRAs by <lora:name:0.8>, embeddings by their word. The request then has them by their files."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models.adapters import find_adapter
from app.engine.models.controls import find_control
from app.engine.models.enlargers import find_enlarger
from app.engine.models.lora_facts import NO_LORA, explain_misfit, read_facts
from app.engine.models.lora_library import LoraFile, LoraNames, find_copies, list_loras
from app.engine.models.model import Model
from app.engine.pictures.files.alternatives import settle
from app.engine.pictures.files.lora_tags import split_tags
from app.engine.pictures.prompts.wildcards import put_lines

LARGEST_BYTES: Final = 4 << 20
"""No embedding is larger; 128 vectors of SDXL have a megabyte. Larger files are not looked into for a word."""
_WORD: Final = re.compile(r"[\w.+-]++")
"""A word of a prompt may have these; an embedding's name that has more cannot be written there."""
_NEAR: Final = 0.6


def complete(home: Home, request: PictureRequest) -> PictureRequest:
    """Return the request with lines for its wildcards, and with its enlarger, its control model and its LoRAs by their files: those that it names by path
    or by name, those that its prompt names by tags, which leave it, and the embeddings whose words it has. Raise a Trouble for a name that nothing
    here has. All pictures of a job have one negative prompt and the same LoRAs, so alternatives of these are chosen here."""
    chance = random.SystemRandom() if request.seed is None else random.Random(request.seed)
    prompt, tags = split_tags(settle(put_lines(home, request.prompt), chance, lambda words: bool(split_tags(words)[1])))
    negative = settle(put_lines(home, request.negative), chance)
    files, written = list_loras(home), words_of(prompt) | words_of(negative)
    names = LoraNames(files if request.loras or tags else ())

    def find(name: str) -> str:
        if (file := names.find(name)) is None:
            raise _explain_unknown(home, name, files)
        return str(file.path)

    own = [each if Path(each.path).is_absolute() else replace(each, path=find(each.path)) for each in request.loras]
    loras = {each.path: each for each in (*own, *(Lora(find(name), weight) for name, weight in tags))}
    known = {(each.word.lower(), read_facts(Path(each.path)).family) for each in loras.values() if each.word}
    for file in sorted(files, key=lambda each: not each.path.is_relative_to(home.loras)):
        if file.word.lower() in written and str(file.path) not in loras and is_embedding(file):
            meaning = file.word.lower(), read_facts(file.path).family  # a word has one for each family
            if meaning not in known:
                known.add(meaning)
                loras[str(file.path)] = Lora(str(file.path), word=file.word)
    return replace(
        request,
        prompt=prompt,
        negative=negative,
        loras=tuple(loras.values()),
        enlarger=find_enlarger(home, request.enlarger),
        control=find_control(home, request.control) if request.guide else "",
        adapter=find_adapter(home, request.adapter) if request.reference else "",
    )


def count_copies_once(request: PictureRequest) -> PictureRequest:
    """Return the request with each LoRA once: a copy in another folder, or by another name, is the same one. Large copies are read whole, which takes
    seconds."""
    first = find_copies(each.path for each in request.loras if not each.word)
    loras = {(path := first.get(each.path, each.path)): replace(each, path=path) for each in request.loras}
    return replace(request, loras=tuple(loras.values()))


def words_of(text: str) -> set[str]:
    return {each.lower().strip(".+-") for each in _WORD.findall(text)}


def is_embedding(file: LoraFile) -> bool:
    facts = read_facts(file.path) if file.stamp[0] <= LARGEST_BYTES else None
    return facts is not None and facts.kind == "embedding" and facts.trouble is None


def check_fit(request: PictureRequest, model: Model) -> None:
    """Raise a Trouble for a LoRA whose header says that it was made for another family. A missing one is reported when it is loaded."""
    for each in request.loras:
        if not each.word and (why := _explain_misfit(each, model)) is not None:
            raise Trouble(say("lora.unfit", "The LoRA {name} cannot be used here. {why}", name=Path(each.path).stem, why=why))


def leave_out_words(request: PictureRequest, model: Model) -> tuple[PictureRequest, list[Sentence]]:
    """Return the request without embeddings of another family, with a sentence for each: the prompt may have their words for other reasons."""
    unfit = [each for each in request.loras if each.word and _explain_misfit(each, model) is not None]
    fit = {each.word.lower() for each in request.loras if each not in unfit}
    notes = [
        say(
            "lora.only-word",
            "Your embedding {name} was not made for {model}, so it is read as a plain word.",
            name=each.word,
            model=model.words,
        )
        for each in unfit
        if each.word.lower() not in fit
    ]
    return replace(request, loras=tuple(each for each in request.loras if each not in unfit)), notes


def _explain_misfit(lora: Lora, model: Model) -> Sentence | None:
    if not is_file(path := Path(lora.path)):
        return None
    facts = read_facts(path)
    return explain_misfit(facts, model) or (NO_LORA if facts.kind == "embedding" and not lora.word else None)


def _explain_unknown(home: Home, name: str, files: Sequence[LoraFile]) -> Trouble:
    near = difflib.get_close_matches(name.lower(), [each.word.lower() for each in files], 1, _NEAR)
    if near:
        offered = next(each.word for each in files if each.word.lower() == near[0])
        return Trouble(say("lora.unknown-near", "There is no LoRA {name} in your library. Did you mean {near}?", name=name, near=offered))
    return Trouble(
        say("lora.unknown", "There is no LoRA {name} in your library. Put its file into {folder}.", name=name, folder=str(home.loras))
    )
