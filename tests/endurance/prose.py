"""Speak ordinary prose with the starter voice, and compare each part with its forecast and with its sentences spoken singly.

`python -m tests.endurance.prose --words 30000 --seed 1 FILE...`: each file is a kind of prose, named as the file is. The kinds of KINDS for
which there is no file are made up; `--kinds letters --words 6000` tries one kind alone. With pocketsphinx on PYTHONPATH it tells how many words
are heard wrong, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Final

import soundfile
import torch

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Need, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note, PartDone
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.session.loaded_models import count_threads
from app.engine.speech.run import loader
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.sentences import split_sentences
from tests.support.places import TOP
from training.voice import sentences
from training.voice.judge import Heard, Judge, word_errors

VOICE: Final = TOP / "assets" / "starter" / "voice"
VOICES: Final = ("anna", "brian", "callum", "daisy", "edith", "frank", "george", "heather")
PART_MOST, WHOLE_MOST = 1.6, 1.3
"""A part may take so many times its forecast, and so may the whole."""
WORST: Final = 5
ALONE_EVERY: Final = 8
PIECE_WORDS: Final = 120
"""One voice speaks so many words of prose at once."""
WORDS: Final = {
    "who": ("the ferryman", "my sister", "old Mr. Harris", "Dr. Lowe", "the captain", "nobody", "J. R. Finch", "the woman from No. 42", "her uncle"),
    "did": ("opened the letter", "walked down to the harbour", "counted the lamps", "laughed", "asked for bread, cheese and a little ham",
            "sold the house for £4 10s.", "forgot the key", "looked at the sea for a long time", "came at 9:45 p.m."),
    "when": ("before the rain", "in the spring of 1893", "when the clock struck seven", "on 14 October", "long after midnight", "that evening"),
    "how": ("slowly", "without a word", "as if it were a game", "with both hands", "for the last time"),
    "what": ("lamp oil", "6 ft. of rope", "two eggs", "a dozen candles", "flour (the white one)", "3.5 kg of sugar", "paper and ink"),
    "part": ("the north wall", "section 2.1", "the engine of 1,200 kg", "the second trial", "the file notes.txt", "its cost of $2.5 million"),
    "is": ("was 12% smaller than expected", "was not examined", "has to be repaired, painted and measured again", "lasted 45 min. in all"),
    "old": ("he that goeth softly", "the keeper of the vineyard", "a wise woman", "the multitude", "the king's servant"),
    "doth": ("shall not want bread", "saith unto them, Arise", "hath turned away his face", "dwelleth among the hills, and feareth nothing"),
}  # fmt: skip
KINDS: Final = {
    "dialogue": ('"{When}, {who} {did}," said {who}.', '"Who {did}?" asked {who}.', '"Well... {who} {did}!"', "{Who} {did} {how}.", '"No. Never."'),
    "letters": ("Dear Anna,\n\n{When} {who} {did}, and {who} {did}; I only wish that you had been here, with us, in the garden.",
                "I remain, {how},\n\nYours,\nTom", "P.S. {Who} {did}, e.g. {when}.", "{Who} {did} {when}, and then, perhaps, or so they say, {who} {did}."),
    "lists": ("TO BUY\n1. {What}\n2. {What}\n3. {What}", "- {what}\n- {what}\n- {what}", "For {who}:\n* {what}\n* {what} and {what}, which {who} wants {when}"),
    "reports": ("{Part} {is}, and {part} {is}.", "Chapter II\n\nAs p. 42 of vol. 2 says, {part} {is}: {part} {is}, although {part} {is} {when}.",
                "See example.org/report?year=1990 for {part}. {Part} {is}.", "* * *"),
    "old spelling": ("And it came to pass {when}, that {old} {doth}: and {old} {doth}; yea, {old} {doth}.", "{Old} {doth}.", "CHAPTER IV"),
}  # fmt: skip


@dataclass
class Told:
    """What was found of one kind of prose."""

    ends: Counter[str] = field(default_factory=Counter)
    parts: list[tuple[float, str]] = field(default_factory=list)
    """It holds how many times its forecast each part took, and its words."""
    spoken_s: float = 0.0
    forecast_s: float = 0.0
    notes: int = 0
    heard: Heard = field(default_factory=lambda: Heard(0, 0))
    together: Heard = field(default_factory=lambda: Heard(0, 0))
    """Only parts whose sentences were spoken alone as well count here."""
    single: Heard = field(default_factory=lambda: Heard(0, 0))


def add(one: Heard, other: Heard) -> Heard:
    """Return what was heard wrong in both."""
    return Heard(one.errors + other.errors, one.words + other.words)


def make_up(kind: str, rng: random.Random) -> Iterator[str]:
    """Yield paragraphs of a kind without end."""
    while True:
        made = rng.choice(KINDS[kind])
        for name in re.findall(r"\{(\w+)\}", made):
            word = rng.choice(WORDS[name.lower()])
            made = made.replace(f"{{{name}}}", word[0].upper() + word[1:] if name[0].isupper() else word, 1)
        yield made


def cut_pieces(paragraphs: Iterator[str], words: int) -> Iterator[str]:
    """Yield texts of about PIECE_WORDS, of so many words together."""
    piece: list[str] = []
    for paragraph in paragraphs:
        piece.append(paragraph)
        size = sum(len(each.split()) for each in piece)
        if size >= min(PIECE_WORDS, words):
            yield "\n\n".join(piece)
            words -= size
            piece = []
        if words <= 0:
            return
    if piece:
        yield "\n\n".join(piece)


class Trial:
    """The voice, and who listens to it."""

    def __init__(self, folder: Path) -> None:
        need = Need(kind="speech")
        torch.set_num_threads(count_threads(need))
        self._plan: Plan = decide(probe(), need, Choice(dtype="float32"), {})
        self._speaker, self._folder, self._jobs = loader.load(VOICE, self._plan), folder, 0
        self._judge = Judge() if importlib.util.find_spec("pocketsphinx") else None

    def try_piece(self, told: Told, text: str, voice: str, seed: int) -> None:
        """Speak a text as it is; of one part in ALONE_EVERY, hear also how its sentences sound alone."""
        checked = parse_script(text, self._speaker.voice.limits)
        for done in self._speak(told, text, voice, seed):
            if isinstance(done, Finished):
                told.spoken_s += done.seconds
                told.forecast_s += checked.seconds_estimate
                continue
            part = checked.parts[done.index]
            told.parts.append((done.seconds / part.seconds, f"{voice}, seed {done.seed}, {done.seconds:.1f} s: {done.text}"))
            told.ends[part.text[-1] if part.text[-1] in ".,!?" else "none"] += 1
            heard = self._listen(done)
            told.heard = add(told.heard, heard)
            alone = split_sentences(part.text)
            if len(alone) > 1 and len(told.parts) % ALONE_EVERY == 0:
                told.together = add(told.together, heard)
                for again in [
                    self._listen(once) for words in alone for once in self._speak(Told(), words, voice, seed) if isinstance(once, PartDone)
                ]:
                    told.single = add(told.single, again)

    def _speak(self, told: Told, text: str, voice: str, seed: int) -> Iterator[PartDone | Finished]:
        clip = VOICE / "voices" / f"{voice}.ogg"
        known = VoicePrompt(str(clip), json.loads(clip.with_suffix(".json").read_text())["transcript"])
        self._jobs += 1
        with applied(self._plan) as seam:
            for event in self._speaker.run(SpeechRequest(text, voice=known, seed=seed), Control(), seam, self._folder / str(self._jobs)):
                told.notes += isinstance(event, Note) and event.sentence.key.startswith("speech.")
                if isinstance(event, PartDone | Finished):
                    yield event

    def _listen(self, part: PartDone) -> Heard:
        if self._judge is None:
            return Heard(0, 0)
        wanted = sentences.key(part.text.removeprefix("[S1] ")).split()
        return Heard(word_errors(wanted, self._judge.listen(soundfile.read(part.path, dtype="float32")[0])), len(wanted))


def tell(kind: str, told: Told) -> bool:
    """Print a kind's figures; return whether they are as they should be."""
    beyond = sum(ratio > PART_MOST for ratio, _ in told.parts)
    whole = told.spoken_s / told.forecast_s
    print(
        f"\n{kind}: {len(told.parts)} parts, {beyond} beyond {PART_MOST} times the forecast; the whole {whole:.2f} times; {told.notes} notes"
    )
    print("  ends: " + ", ".join(f"{end} {count}" for end, count in told.ends.most_common()))
    if told.heard.words:
        print(f"  words heard wrong: {told.heard.rate:.1%} of {told.heard.words}")
    if told.single.words:
        print(
            f"  of them, of {told.together.words} in parts of several sentences: {told.together.rate:.1%}; their sentences alone: {told.single.rate:.1%}"
        )
    for ratio, words in sorted(told.parts, reverse=True)[:WORST]:
        print(f"  {ratio:.2f}  {words}")
    return not beyond and 1 / WHOLE_MOST <= whole <= WHOLE_MOST


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--words", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="by default all")
    parser.add_argument("--voices", nargs="+", choices=VOICES, default=VOICES)
    asked = parser.parse_args(words)
    rng, voices = random.Random(asked.seed), cycle(asked.voices)
    given = {path.stem: (each for each in re.split(r"\n\s*\n", path.read_text("utf-8")) if each.strip()) for path in asked.files}
    prose = given | {kind: make_up(kind, rng) for kind in KINDS if kind not in given}
    prose = {kind: prose[kind] for kind in asked.kinds or prose}
    right, began_s = True, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        for kind, paragraphs in prose.items():
            told = Told()
            for place, text in enumerate(cut_pieces(paragraphs, asked.words // len(prose))):
                trial.try_piece(told, text, next(voices), asked.seed + 1000 * place)
            right &= tell(kind, told)
    print(f"\n{'All as it should be' if right else 'NOT as it should be'}, after {time.monotonic() - began_s:.0f} s.")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
