"""The training data: every word of the domain said by flite in the midst and at the end of a phrase, as codes; phrases join these words.

Joined words need far less training than whole phrases of flite, in which every neighbour changes a word a little: a word is always the same codes.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from . import codec, model, words
from .flite import VOICES, Flite, Phone, Utterance

KINDS = ("digits", "loose", "sentence")
SHARES = (0.3, 0.35, 0.35)
CODEC_TEXTS = 700
TRAINING_SEED, TUNING_SEED, TEST_SEED = 1, 101, 202
BEFORE, AFTER = "tap", "pat"  # neighbours that begin and end in a closed stop leave the least of themselves in the word between them
DECAY_FRAMES, COMMA_FRAMES, STOP_FRAMES, LEAD_FRAMES = 3, 3, 6, 4
FEW_PHONES, FEW_PHONES_STRETCH = 3, 1.25
OPENERS, OPENER_AFTER, OPENER_STRETCH = ("you", "we", "i"), "there", 1.3  # vowels and glides that vanish after a stop begin their phrase
TOKEN = re.compile(r"([A-Za-z]+)([^A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One word by one speaker: its codes, and for every frame how far through its letters it is (0 to 1)."""

    codes: NDArray[np.int64]
    progress: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recordings:
    """Every piece by (speaker, word, whether it ends a phrase), and the code of silence of each speaker."""

    pieces: dict[tuple[str, str, bool], Piece]
    silence: dict[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Example:
    """One script with its codes and, for every frame, the index of the text id being said."""

    ids: list[int]
    codes: NDArray[np.int64]
    place: NDArray[np.float32]


def key(text: str) -> str:
    return " ".join(words.spoken_words(text))


def held_out(seed: int, kind: str, count: int) -> list[str]:
    """Phrases for tuning or for the test, by seed; the training leaves out every one."""
    rng = random.Random(f"{seed}-{kind}")
    found: dict[str, str] = {}
    while len(found) < count:
        text = words.phrase(rng, kind)
        if len(words.spoken_words(text)) > 1:
            found.setdefault(key(text), text)
    return list(found.values())


def banned() -> frozenset[str]:
    return frozenset(key(text) for seed in (TUNING_SEED, TEST_SEED) for kind in KINDS for text in held_out(seed, kind, 200))


def cut(phones: tuple[Phone, ...], codes: NDArray[np.int64], word: int, decay: int) -> Piece:
    """The frames of one word of an utterance, with `decay` frames after it; its letters are shared out evenly over its phones."""
    own = [(number, phone) for number, phone in enumerate(phones) if phone.word == word]
    start_s = phones[own[0][0] - 1].end_s
    first, last = round(start_s * codec.FRAMES_PER_S), round(own[-1][1].end_s * codec.FRAMES_PER_S)
    centres = (np.arange(first, last + decay) + 0.5) / codec.FRAMES_PER_S
    edges = [start_s, *(phone.end_s for _, phone in own)]
    progress = np.interp(centres, edges, np.linspace(0, 1, len(edges)))
    return Piece(codes[first : last + decay], progress[: len(codes) - first].astype(np.float32))


def codes_of(said: Utterance, books: torch.Tensor) -> NDArray[np.int64]:
    return codec.quantise(codec.features(torch.from_numpy(said.samples).float() / 32768), books).numpy()


def record(books: torch.Tensor) -> Recordings:
    """Lets flite say every word of the domain; short words a little slower, or nobody hears them."""
    flite = Flite()
    pieces: dict[tuple[str, str, bool], Piece] = {}
    quiet: dict[str, Counter[tuple[int, ...]]] = {speaker: Counter() for speaker in VOICES}
    for speaker in VOICES:
        for word in words.vocabulary():
            if word in OPENERS:
                said = flite.say(speaker, f"{word} {OPENER_AFTER}", OPENER_STRETCH)
                pieces[speaker, word, False] = cut(said.phones, codes_of(said, books), 0, 0)
            for last, text in ((False, f"{BEFORE} {word} {AFTER}"), (True, f"{BEFORE} {word}")):
                said = flite.say(speaker, text)
                if sum(phone.word == 1 for phone in said.phones) <= FEW_PHONES:
                    said = flite.say(speaker, text, FEW_PHONES_STRETCH)
                codes = codes_of(said, books)
                pieces.setdefault((speaker, word, last), cut(said.phones, codes, 1, DECAY_FRAMES if last else 0))
                quiet[speaker].update(tuple(row) for row in codes[:3].tolist())
    return Recordings(pieces, {speaker: np.array(seen.most_common(1)[0][0]) for speaker, seen in quiet.items()})


def script(turns: list[tuple[str, str]], recordings: Recordings) -> Example:
    """(speaker, text) turns become one script; a new tag where the speaker changes."""
    written, codes, places, speaker = "", [], [], ""
    for who, text in turns:
        head = f"[{who}] " if who != speaker else ""
        written = f"{written} {head}" if written else head
        speaker = who
        silence = recordings.silence[who][None]
        begin = len(model.text_ids(written))
        codes.append(np.repeat(silence, LEAD_FRAMES, axis=0))
        places.append(np.full(LEAD_FRAMES, float(begin)))
        for found in TOKEN.finditer(text):
            mark = found[2].strip()[:1]
            last = bool(mark) or found.end() == len(text)
            piece = recordings.pieces[who, found[1].lower(), last]
            pause = (COMMA_FRAMES if mark == "," else STOP_FRAMES) if last else 0
            codes += [piece.codes, np.repeat(silence, pause, axis=0)]
            end = begin + found.start() + len(found[1])
            places += [np.minimum(begin + found.start() + piece.progress * len(found[1]), end - (0 if last else 0.01)), np.full(pause, float(end))]
        written += text
    ids = model.text_ids(written)
    return Example(ids, np.concatenate(codes), np.minimum(np.concatenate(places), len(ids) - 0.05).astype(np.float32))


def draw(rng: random.Random, recordings: Recordings, left_out: frozenset[str], longest_frames: int) -> Example:
    """One to four new phrases, mostly by speakers in turn, at most `longest_frames`; either speaker may begin."""
    count, speaker = rng.choices((1, 2, 3, 4), (0.45, 0.33, 0.15, 0.07))[0], rng.choice(tuple(VOICES))
    turns: list[tuple[str, str]] = []
    while len(turns) < count:
        text = words.phrase(rng, rng.choices(KINDS, SHARES)[0])
        if key(text) not in left_out:
            turns.append((speaker, text))
            if rng.random() < 0.7:
                speaker = "S2" if speaker == "S1" else "S1"
    example = script(turns, recordings)
    return example if len(example.codes) <= longest_frames or count == 1 else script(turns[:1], recordings)


def write(folder: Path) -> None:
    """<folder>/codec.npz: codebooks, with sound and codes of whole phrases for the codec; <folder>/words.npz: the recordings."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, flite, left_out = random.Random(TRAINING_SEED), Flite(), banned()
    sound, points = [], []
    while len(sound) < CODEC_TEXTS * len(VOICES):
        text = words.phrase(rng, rng.choices(KINDS, SHARES)[0])
        for speaker in VOICES if key(text) not in left_out else ():
            sound.append(flite.say(speaker, text).samples)
            points.append(codec.features(torch.from_numpy(sound[-1]).float() / 32768))
    books = codec.fit_codebooks(torch.cat(points), seed=TRAINING_SEED)
    codes = [codec.quantise(part, books).numpy() for part in points]
    save_codec(folder / "codec.npz", books, sound, codes)
    save(folder / "words.npz", record(books))


def save_codec(path: Path, books: torch.Tensor, sound: list[NDArray[np.int16]], codes: list[NDArray[np.int64]]) -> None:
    np.savez(path, books=books.numpy(), sound=np.concatenate(sound), lengths=[len(part) for part in sound],
             codes=np.concatenate(codes).astype(np.uint8), frames=[len(part) for part in codes])


def save(path: Path, recordings: Recordings) -> None:
    order = list(recordings.pieces)
    np.savez(path, speakers=[speaker for speaker, _, _ in order], words=[word for _, word, _ in order], last=[last for _, _, last in order],
             frames=[len(recordings.pieces[name].codes) for name in order], codes=np.concatenate([recordings.pieces[name].codes for name in order]),
             progress=np.concatenate([recordings.pieces[name].progress for name in order]), silence=np.stack([recordings.silence[who] for who in VOICES]))


def read(path: Path) -> Recordings:
    """What save wrote."""
    with np.load(path) as held:
        ends = np.cumsum(held["frames"])[:-1]
        names = zip(held["speakers"].tolist(), held["words"].tolist(), held["last"].tolist(), strict=True)
        parts = zip(np.split(held["codes"], ends), np.split(held["progress"], ends), strict=True)
        pieces = {name: Piece(codes, progress) for name, (codes, progress) in zip(names, parts, strict=True)}
        return Recordings(pieces, dict(zip(VOICES, held["silence"], strict=True)))
