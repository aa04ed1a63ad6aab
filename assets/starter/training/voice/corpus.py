"""Make the training data: phrases of a small grammar spoken by flite, as codes; a script is one to six of them, by one or both speakers.

Words recorded one by one and joined are quicker to learn, but the judge heard 20% of them wrong even before any model; of whole phrases, 8%.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from . import codec, model, words
from .flite import VOICES, Flite, Phone, Utterance

KINDS = ("digits", "loose", "sentence")
SHARES, CODEC_SHARES = (0.22, 0.4, 0.38), (0.3, 0.35, 0.35)
CODEC_TEXTS = 700
PHRASES = 7000  # by each speaker
TRAINING_SEED, TUNING_SEED, TEST_SEED = 1, 101, 202
LEAD_FRAMES, STOP_FRAMES = 4, 7
PROMPTED_SHARE, SWAPPED_SHARE = 0.4, 0.6
TURNS, TURN_SHARES = (1, 2, 3, 4, 5, 6), (0.33, 0.35, 0.16, 0.08, 0.05, 0.03)
TOKEN = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrase by one voice: its codes, and for every frame the position in the text, in characters."""

    text: str
    codes: NDArray[np.int64]
    place: NDArray[np.float32]


Phrases = dict[str, list[Phrase]]
"""By voice, named after the speaker it belongs to."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One phrase under a speaker's tag; its voice may be the other speaker's."""

    speaker: str
    phrase: Phrase


@dataclass(frozen=True, slots=True)
class Example:
    """One script with its codes and, for every frame, the index of the text id being said. The first `heard` frames are a prompt, not to be learned."""

    ids: list[int]
    codes: NDArray[np.int64]
    place: NDArray[np.float32]
    heard: int = 0


def key(text: str) -> str:
    return " ".join(words.spoken_words(text))


def held_out(seed: int, kind: str, count: int) -> list[str]:
    """Return phrases for tuning or testing, by seed; training uses none of them."""
    rng = random.Random(f"{seed}-{kind}")
    found: dict[str, str] = {}
    while len(found) < count:
        text = words.phrase(rng, kind)
        if len(words.spoken_words(text)) > 1:
            found.setdefault(key(text), text)
    return list(found.values())


def banned() -> frozenset[str]:
    return frozenset(key(text) for seed in (TUNING_SEED, TEST_SEED) for kind in KINDS for text in held_out(seed, kind, 200))


def texts(rng: random.Random, left_out: frozenset[str], shares: tuple[float, ...] = SHARES) -> Iterator[str]:
    """Yield phrases without end, none of them held out."""
    while True:
        text = words.phrase(rng, rng.choices(KINDS, shares)[0])
        if key(text) not in left_out:
            yield text


def codes_of(said: Utterance, books: torch.Tensor) -> NDArray[np.int64]:
    return codec.quantise(codec.features(torch.from_numpy(said.samples).float() / 32768), books).numpy()


def places(text: str, phones: tuple[Phone, ...], frames: int) -> NDArray[np.float32]:
    """Return each frame's position in the text: letters are spread evenly over their word's phones, pauses belong to what follows."""
    spans = [found.span() for found in TOKEN.finditer(text)]
    counts = [sum(phone.word == number for phone in phones) for number in range(len(spans))]
    if sum(counts) != sum(phone.word >= 0 for phone in phones):
        raise ValueError(f"flite says other words than are written: {text}")
    place, begun_s, held, done = np.zeros(frames, np.float32), 0.0, 0.0, [0] * len(spans)
    for phone in phones:
        first, last = round(begun_s * codec.FRAMES_PER_S), round(phone.end_s * codec.FRAMES_PER_S)
        begun_s = phone.end_s
        if phone.word < 0:
            place[first:] = held
            continue
        begin, end = spans[phone.word]
        through = (done[phone.word] + (np.arange(last - first) + 0.5) / max(1, last - first)) / counts[phone.word]
        done[phone.word] += 1
        place[first:last] = np.minimum(begin + through * (end - begin), end - 0.01)[: max(0, frames - first)]
        held = float(end)
        place[last:] = held
    return place


def phrase(text: str, said: Utterance, books: torch.Tensor) -> Phrase:
    """Return flite's phrase with the same silence around it as every phrase."""
    codes = codes_of(said, books)
    spoken = [number for number, one in enumerate(said.phones) if one.word >= 0]
    begin = round(said.phones[spoken[0] - 1].end_s * codec.FRAMES_PER_S) if spoken[0] else 0
    first, last = max(0, begin - LEAD_FRAMES), round(said.phones[spoken[-1]].end_s * codec.FRAMES_PER_S) + STOP_FRAMES
    return Phrase(text, codes[first:last], places(text, said.phones, len(codes))[first:last])


def script(turns: list[Turn], heard: int = 0) -> Example:
    """Join turns into one script, with a tag where the speaker changes. The first `heard` turns are a prompt."""
    written, codes, parts, speaker, frames = "", [], [], "", 0
    for number, turn in enumerate(turns):
        head = f"[{turn.speaker}] " if turn.speaker != speaker else ""
        written, speaker = f"{written} {head}" if written else head, turn.speaker
        codes.append(turn.phrase.codes)
        parts.append(turn.phrase.place + len(model.text_ids(written)))
        written += turn.phrase.text
        frames += len(turn.phrase.codes) if number < heard else 0
    ids = model.text_ids(written)
    return Example(ids, np.concatenate(codes), np.minimum(np.concatenate(parts), len(ids) - 0.05).astype(np.float32), frames)


OTHER = {"S1": "S2", "S2": "S1"}


def draw(rng: random.Random, phrases: Phrases, longest_frames: int) -> Example:
    """One to six phrases, mostly by speakers in turn, at most `longest_frames`; either speaker may begin. Some begin with a prompt, in which a speaker
    may have the other's voice, and keeps it; a speaker who is not heard in the prompt has the own one."""
    count, speaker = rng.choices(TURNS, TURN_SHARES)[0], rng.choice(tuple(VOICES))
    heard = rng.randrange(1, count) if count > 1 and rng.random() < PROMPTED_SHARE else 0
    taken: dict[str, str] = {}
    turns: list[Turn] = []
    while len(turns) < count:
        if len(turns) < heard:
            taken.setdefault(speaker, OTHER[speaker] if rng.random() < SWAPPED_SHARE else speaker)
        turns.append(Turn(speaker, rng.choice(phrases[taken.get(speaker, speaker)])))
        if rng.random() < 0.65:
            speaker = OTHER[speaker]
    while len(turns) > 1 and sum(len(turn.phrase.codes) for turn in turns) > longest_frames:
        turns.pop()
    return script(turns, min(heard, len(turns) - 1))


def write_sounds(path: Path) -> None:
    """Write the codec's data: phrases with their sound and codes, and the codebooks."""
    flite = Flite()
    sound, points = [], []
    for text in islice(texts(random.Random(TRAINING_SEED), banned(), CODEC_SHARES), CODEC_TEXTS):
        for speaker in VOICES:
            sound.append(flite.say(speaker, text).samples)
            points.append(codec.features(torch.from_numpy(sound[-1]).float() / 32768))
    books = codec.fit_codebooks(torch.cat(points), seed=TRAINING_SEED)
    save_codec(path, books, sound, [codec.quantise(part, books).numpy() for part in points])


def write_phrases(sounds: Path, path: Path) -> None:
    """Write Dia's data: phrases by both voices, in the codes of write_sounds' codebooks."""
    books, flite = torch.from_numpy(np.load(sounds)["books"]), Flite()
    drawn = texts(random.Random(TRAINING_SEED + 1), banned())
    save(path, {speaker: [phrase(text, flite.say(speaker, text), books) for text in islice(drawn, PHRASES)] for speaker in VOICES})


def _whole(path: Path, **arrays: Any) -> None:
    """Write the file atomically: the next start trusts a file that exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)
    part.rename(path)


def save_codec(path: Path, books: torch.Tensor, sound: list[NDArray[np.int16]], codes: list[NDArray[np.int64]]) -> None:
    _whole(
        path,
        books=books.numpy(),
        sound=np.concatenate(sound),
        lengths=[len(part) for part in sound],
        codes=np.concatenate(codes).astype(np.uint8),
        frames=[len(part) for part in codes],
    )


def save(path: Path, phrases: Phrases) -> None:
    said = [(speaker, one) for speaker, own in phrases.items() for one in own]
    _whole(
        path,
        speakers=[speaker for speaker, _ in said],
        texts=[one.text for _, one in said],
        frames=[len(one.codes) for _, one in said],
        codes=np.concatenate([one.codes for _, one in said]).astype(np.uint8),
        places=np.concatenate([one.place for _, one in said]),
    )


def read(path: Path) -> Phrases:
    """Read what save wrote."""
    phrases: Phrases = {}
    with np.load(path) as held:
        ends = np.cumsum(held["frames"])[:-1]
        parts = zip(np.split(held["codes"].astype(np.int64), ends), np.split(held["places"], ends), strict=True)
        for speaker, text, (codes, place) in zip(held["speakers"].tolist(), held["texts"].tolist(), parts, strict=True):
            phrases.setdefault(speaker, []).append(Phrase(text, codes, place))
    return phrases
