"""The training data: sentences said by flite's voices, as codes with the place in the text; scripts are one to six of them, by one or more speakers."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..voice import codec, model
from . import spelling, texts
from .flite import OWN, VOICES, Flite, Utterance
from .phones import sign

DELAY = (0, 1, 2, 3, 4, 5)
"""Six codebooks: for eight voices four leave twice as much unsaid (2.4 against 1.3 of 100)."""
CODEC_TEXTS, POINTS = 4000, 150_000
SENTENCES, SHARD = 48_000, 250
VOICE_SHARES = (0.22, 0.22, 0.1, 0.09, 0.09, 0.09, 0.1, 0.09)
TRAINING_SEED = 1
LEAD_FRAMES, STOP_FRAMES = 4, 7
TURNS, TURN_SHARES = (1, 2, 3, 4, 5, 6), (0.34, 0.3, 0.16, 0.1, 0.06, 0.04)
MARKS = ",.;:!?"
SPLIT = re.compile(r"('s|'ll|'ve|'d)$")
"""Endings that are words of their own to flite."""
UNMARKED_SHARE = 0.7
"""Of the turns in a speaker's own voice, so many do not name it."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """One sentence by one voice: its sounds, its codes, and for every frame the place in the sounds."""

    voice: str
    sounds: str
    codes: NDArray[np.int64]
    place: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Turn:
    """One phrase under a speaker's tag."""

    speaker: str
    phrase: Phrase
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Example:
    """One script with its codes and, for every frame, the index of the text id being said."""

    ids: list[int]
    codes: NDArray[np.int64]
    place: NDArray[np.float32]


def codes_of(said: Utterance, books: torch.Tensor) -> NDArray[np.int64]:
    return codec.quantise(codec.features(torch.from_numpy(said.samples).float() / 32768), books).numpy()


def heard(tokens: list[str], said: Utterance) -> tuple[str, list[int]]:
    """The sounds of what flite said, with the marks of the text, and for each phone its place there (a pause's is behind the word before it).
    ValueError where flite says other words than are written."""
    owner, expected = [], []
    for number, token in enumerate(tokens):
        for part in SPLIT.sub(r" \1", token.lower().rstrip(MARKS)).split():
            owner.append(number)
            expected.append(part)
    if [word.lower().strip("'")[:1] for word in said.words] != [word.strip("'")[:1] for word in expected]:
        raise ValueError(f"flite says other words than are written: {' '.join(tokens)}")
    marks = [token[len(token.rstrip(MARKS)) :] for token in tokens]
    sounds, places, current = "", [], 0
    for phone in said.phones:
        if phone.word < 0:
            places.append(len(sounds))
            continue
        if owner[phone.word] != current:
            sounds += marks[current] + " "
            current = owner[phone.word]
        places.append(len(sounds))
        sounds += sign(phone.name, phone.stressed)
    return sounds + marks[-1], places


def phrase(text: str, voice: str, flite: Flite, books: torch.Tensor) -> Phrase:
    """What flite says, with as much silence around it as every phrase has."""
    tokens = spelling.spoken(text).split()
    said = flite.say(voice, " ".join(tokens).lower())
    return laid(tokens, voice, said, codes_of(said, books))


def laid(tokens: list[str], voice: str, said: Utterance, codes: NDArray[np.int64]) -> Phrase:
    sounds, places = heard(tokens, said)
    place, begun = np.zeros(len(codes), np.float32), 0
    for phone, at in zip(said.phones, places, strict=True):
        last = round(phone.end_s * codec.FRAMES_PER_S)
        through = (np.arange(last - begun) + 0.5) / max(1, last - begun) if phone.word >= 0 else np.zeros(last - begun)
        place[begun:last] = (min(at, len(sounds)) + through * 0.98)[: max(0, len(codes) - begun)]
        begun = last
    place[begun:] = len(sounds)
    spoken = [number for number, one in enumerate(said.phones) if one.word >= 0]
    begin = round(said.phones[spoken[0] - 1].end_s * codec.FRAMES_PER_S) if spoken[0] else 0
    first, end = max(0, begin - LEAD_FRAMES), round(said.phones[spoken[-1]].end_s * codec.FRAMES_PER_S) + STOP_FRAMES
    return Phrase(voice, sounds, codes[first:end], place[first:end])


def script(turns: list[Turn]) -> Example:
    """Turns become one script, with a tag where the speaker changes, and behind it the sign of the voice where it is named."""
    written, codes, parts, speaker = "", [], [], ""
    for turn in turns:
        head = f"[{turn.speaker}] " + (turn.phrase.voice if turn.marked else "") if turn.speaker != speaker else ""
        written, speaker = f"{written} {head}" if written else head, turn.speaker
        codes.append(turn.phrase.codes)
        parts.append(turn.phrase.place + len(model.text_ids(written)))
        written += turn.phrase.sounds
    ids = model.text_ids(written)
    return Example(ids, np.concatenate(codes), np.minimum(np.concatenate(parts), len(ids) - 0.05).astype(np.float32))


def draw(rng: random.Random, phrases: dict[str, list[Phrase]], longest_frames: int) -> Example:
    """One to six phrases by two speakers, mostly in turn, at most `longest_frames`; each speaker keeps one voice, mostly the own one."""
    count, speaker = rng.choices(TURNS, TURN_SHARES)[0], rng.choice(tuple(OWN))
    voices = {tag: own if rng.random() < 0.5 and own in phrases else rng.choice(tuple(phrases)) for tag, own in OWN.items()}
    marked = {tag: voice != OWN[tag] or rng.random() > UNMARKED_SHARE for tag, voice in voices.items()}
    turns: list[Turn] = []
    while len(turns) < count:
        turns.append(Turn(speaker, rng.choice(phrases[voices[speaker]]), marked[speaker]))
        if rng.random() < 0.5:
            speaker = "S2" if speaker == "S1" else "S1"
    while len(turns) > 1 and sum(len(turn.phrase.codes) for turn in turns) > longest_frames:
        turns.pop()
    return script(turns)


@cache
def _flite() -> Flite:
    return Flite()


def _sounds(asked: tuple[str, str]) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    text, voice = asked
    samples = _flite().say(voice, spelling.spoken(text).lower()).samples
    return samples, codec.features(torch.from_numpy(samples).float() / 32768).numpy()


def _shard(asked: tuple[list[tuple[str, str]], NDArray[np.float32], Path]) -> int:
    said, books, path = asked
    torch.set_num_threads(1)
    phrases = []
    for text, voice in said:
        try:
            phrases.append(phrase(text, voice, _flite(), torch.from_numpy(books)))
        except ValueError:  # an abbreviation or a word that flite reads in its own way
            continue
    save(path, phrases)
    return len(phrases)


def asked(seed: int, count: int) -> list[tuple[str, str]]:
    """Sentences, each with the voice that says it."""
    rng = random.Random(seed)
    return [(text, rng.choices(tuple(VOICES), VOICE_SHARES)[0]) for text in islice(texts.training(seed), count)]


def write_sounds(path: Path, count: int = CODEC_TEXTS) -> None:
    """For the codec: sentences with their sound and codes, and the codebooks."""
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        made = pool.map(_sounds, asked(TRAINING_SEED, count), chunksize=16)
    points = torch.from_numpy(np.concatenate([part for _, part in made]))
    some = points[torch.randperm(len(points), generator=torch.Generator().manual_seed(TRAINING_SEED))[:POINTS]]
    torch.set_num_threads(os.cpu_count() or 1)
    books = codec.fit_codebooks(some, seed=TRAINING_SEED, channels=len(DELAY))
    save_codec(path, books, [sound for sound, _ in made], [codec.quantise(torch.from_numpy(part), books).numpy() for _, part in made])


def write_phrases(sounds: Path, folder: Path, sentences: int = SENTENCES) -> None:
    """For Dia: sentences by all voices, in the codes of the codebooks that write_sounds made; a file for every few, so that the training can begin."""
    with np.load(sounds) as held:
        books = held["books"]
    part = folder.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    said = asked(TRAINING_SEED + 1, sentences)
    jobs = [(said[start : start + SHARD], books, part / f"{start:06d}.npz") for start in range(0, len(said), SHARD)]
    with multiprocessing.get_context("fork").Pool(max(1, (os.cpu_count() or 1) - 3 * (os.cpu_count() or 1) // 16)) as pool:
        made = sum(pool.imap_unordered(_shard, [job for job in jobs if not job[2].exists()]))
    print(f"{made} phrases", flush=True)
    part.rename(folder)


def _whole(path: Path, **arrays: Any) -> None:
    """A file that is there is whole: the next start trusts it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, **arrays)
    part.rename(path)


def save_codec(path: Path, books: torch.Tensor, sound: list[NDArray[np.int16]], codes: list[NDArray[np.int64]]) -> None:
    _whole(path, books=books.numpy(), sound=np.concatenate(sound), lengths=[len(part) for part in sound],
           codes=np.concatenate(codes).astype(np.uint8), frames=[len(part) for part in codes])


def save(path: Path, phrases: list[Phrase]) -> None:
    _whole(path, voices=[one.voice for one in phrases], sounds=[one.sounds for one in phrases], frames=[len(one.codes) for one in phrases],
           codes=np.concatenate([one.codes for one in phrases]).astype(np.uint8), places=np.concatenate([one.place for one in phrases]))


def read(paths: Iterable[Path], known: dict[str, list[Phrase]]) -> None:
    """Adds what save wrote to the phrases that are known, by voice."""
    for path in paths:
        with np.load(path) as held:
            ends = np.cumsum(held["frames"])[:-1]
            parts = zip(np.split(held["codes"], ends), np.split(held["places"], ends), strict=True)
            for voice, sounds, (codes, place) in zip(held["voices"].tolist(), held["sounds"].tolist(), parts, strict=True):
                known.setdefault(voice, []).append(Phrase(voice, sounds, codes, place))
