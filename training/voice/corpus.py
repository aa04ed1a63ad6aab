"""Make the training data: sentences spoken by flite in several voices, as codes and sounds; a script is one to four of them, by one or both speakers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from app.engine.speech.text import sounds

from . import codec, model
from .flite import SPEAKERS, VOICES, Flite, Phone, Utterance

CODEC_TEXTS = 1500
SHARD = 1500
DONE = "all-phrases"
TRAINING_SEED = 1
VOICE_SHARES = {name: 6 if name in SPEAKERS.values() else 1 for name in VOICES}
PACES = (0.92, 1.0, 1.0, 1.08)
LEAD_FRAMES, STOP_FRAMES = 4, 7
LAST = 0.01
"""A place in the last sound is this short of its end."""
NAMED_SHARE, PROMPTED_SHARE = 0.3, 0.06
TURNS, TURN_SHARES = (1, 2, 3, 4), (0.6, 0.27, 0.09, 0.04)
SPOKEN = re.compile(r"'s\b|[A-Za-z]+(?:'(?!s\b)[A-Za-z]+)*|[.,?!]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """One sentence by one voice: its sounds as characters, its codes, and for every frame the position in the sounds."""

    sounds: str
    codes: NDArray[np.int64]
    place: NDArray[np.float32]


Phrases = dict[str, list[Phrase]]
"""Its keys are voices."""


@dataclass(frozen=True, slots=True)
class Example:
    """One script with its codes and, for every frame, the index of the text id being said. The first `heard` frames are a prompt, not to be learned."""

    ids: list[int]
    codes: NDArray[np.int64]
    place: NDArray[np.float32]
    heard: int = 0


def voice_sign(name: str) -> str:
    """Return the character that names a voice after a speaker's tag."""
    return str(list(VOICES).index(name))


def codes_of(said: Utterance, books: torch.Tensor) -> NDArray[np.int64]:
    return codec.quantise(codec.features(torch.from_numpy(said.samples).float() / 32768), books).numpy()


def read_out(text: str, phones: tuple[Phone, ...], frames: int) -> tuple[str, NDArray[np.float32]]:
    """Return the sounds that flite said, words and marks as in the text, and each frame's position in them. A pause belongs to the mark, or
    to the space, before the next word. ValueError where flite says other words than are written."""
    written: list[str] = []  # by character
    starts: list[int] = []  # of each phone in `written`; of pauses -1
    pieces = SPOKEN.findall(text)
    word, by_word = -1, dict[int, list[Phone]]()
    for phone in phones:
        if phone.word >= 0:
            by_word.setdefault(phone.word, []).append(phone)
    if len(by_word) != sum(piece not in sounds.MARKS for piece in pieces):
        raise ValueError(f"flite says other words than are written: {text}")
    for piece in pieces:
        if piece not in sounds.MARKS:
            word += 1
            if written and piece != "'s":  # flite takes it as a word of its own
                written.append(" ")
            for phone in by_word[word]:
                starts.append(len(written))
                written.append(sounds.sign(phone.name, phone.stressed))
        else:
            written.append(piece)
    place, begun_s, at = np.zeros(frames, np.float32), 0.0, -1
    for phone in phones:
        first, last = round(begun_s * codec.FRAMES_PER_S), round(phone.end_s * codec.FRAMES_PER_S)
        begun_s = phone.end_s
        if phone.word < 0:
            held = 0.0 if at < 0 else min(starts[at] + 1.0, len(written) - LAST)
            place[first:] = held
            continue
        at += 1
        through = (np.arange(last - first) + 0.5) / max(1, last - first)
        place[first:last] = (starts[at] + np.minimum(through, 1 - LAST))[: max(0, frames - first)]
        place[last:] = min(starts[at] + 1.0, len(written) - LAST)
    return "".join(written), place


def phrase(text: str, said: Utterance, books: torch.Tensor) -> Phrase:
    """Return flite's sentence with the same silence around it as every sentence."""
    codes = codes_of(said, books)
    spoken = [number for number, one in enumerate(said.phones) if one.word >= 0]
    begin = round(said.phones[spoken[0] - 1].end_s * codec.FRAMES_PER_S) if spoken[0] else 0
    first, last = max(0, begin - LEAD_FRAMES), round(said.phones[spoken[-1]].end_s * codec.FRAMES_PER_S) + STOP_FRAMES
    signs, place = read_out(text, said.phones, len(codes))
    return Phrase(signs, codes[first:last], place[first:last])


def draw(rng: random.Random, phrases: Phrases, longest_frames: int) -> Example:
    """One to four sentences by speakers in turn, at most `longest_frames`; either speaker may begin. A speaker has the usual voice, or one that is
    named after the tag, or that of the prompt with which some scripts begin."""
    count, speaker = rng.choices(TURNS, TURN_SHARES)[0], rng.choice(tuple(SPEAKERS))
    heard = count > 1 and rng.random() < PROMPTED_SHARE
    own, named = dict(SPEAKERS), dict.fromkeys(SPEAKERS, "")
    if heard:
        own[speaker] = rng.choice(list(VOICES))
    elif rng.random() < NAMED_SHARE:
        own = dict(zip(own, rng.choices(list(VOICES), k=2), strict=True))
        named = {each: voice_sign(name) for each, name in own.items()}
    written, codes, places, last = "", list[Any](), list[Any](), ""
    for number in range(count):
        said = rng.choice(phrases[own[speaker]])
        if number and sum(map(len, codes)) + len(said.codes) > longest_frames:
            break
        tag = f"[{speaker}]{named[speaker]} " if speaker != last else ""
        written, last = f"{written} {tag}" if written else tag, speaker
        places.append(said.place + len(model.text_ids(written)))
        codes.append(said.codes)
        written += said.sounds
        if rng.random() < 0.6 and not (heard and number == 0):
            speaker = _other(speaker)
    if heard and len(codes) == 1:
        return draw(rng, phrases, longest_frames)
    ids = model.text_ids(written)
    place = np.minimum(np.concatenate(places), len(ids) - 0.05).astype(np.float32)
    return Example(ids, np.concatenate(codes), place, len(codes[0]) if heard else 0)


def _other(speaker: str) -> str:
    return next(each for each in SPEAKERS if each != speaker)


def voice_of(rng: random.Random) -> str:
    return rng.choices(list(VOICES), list(VOICE_SHARES.values()))[0]


def write_sounds(texts: Iterable[str], path: Path) -> None:
    """Write the codec's data: sentences with their sound and codes, and the codebooks."""
    flite, rng = Flite(), random.Random(TRAINING_SEED)
    sound, points = [], []
    for text in texts:
        sound.append(flite.say(voice_of(rng), text).samples)
        points.append(codec.features(torch.from_numpy(sound[-1]).float() / 32768))
    books = codec.fit_codebooks(torch.cat(points), seed=TRAINING_SEED)
    save_codec(path, books, sound, [codec.quantise(part, books).numpy() for part in points])


def write_phrases(sounds_path: Path, texts: list[str], folder: Path, first: int = 0) -> None:
    """Write Dia's data in shards: every text from the `first` on by one voice, in the codes of write_sounds' codebooks. Shards that exist
    are kept."""
    books, flite = torch.from_numpy(np.load(sounds_path)["books"]), Flite()
    for start in range(first, len(texts), SHARD):
        path, rng = folder / f"phrases-{start // SHARD:03}.npz", random.Random(f"{TRAINING_SEED}-{start}")
        if path.exists():
            continue
        phrases: Phrases = {}
        for text in texts[start : start + SHARD]:
            name = voice_of(rng)
            try:
                said = phrase(text, flite.say(name, text, rng.choice(PACES)), books)
            except ValueError:
                continue  # flite reads a few words as several
            phrases.setdefault(name, []).append(said)
        save(path, phrases)
    (folder / DONE).touch()


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
        codes=np.concatenate(codes).astype(np.uint16),
        frames=[len(part) for part in codes],
    )


def save(path: Path, phrases: Phrases) -> None:
    said = [(name, one) for name, own in phrases.items() for one in own]
    _whole(
        path,
        voices=[name for name, _ in said],
        sounds=[one.sounds for _, one in said],
        frames=[len(one.codes) for _, one in said],
        codes=np.concatenate([one.codes for _, one in said]).astype(np.uint16),
        places=np.concatenate([one.place for _, one in said]),
    )


def read(path: Path) -> Phrases:
    """Read what save wrote."""
    phrases: Phrases = {}
    with np.load(path) as held:
        ends = np.cumsum(held["frames"])[:-1]
        parts = zip(np.split(held["codes"].astype(np.int64), ends), np.split(held["places"], ends), strict=True)
        for name, signs, (codes, place) in zip(held["voices"].tolist(), held["sounds"].tolist(), parts, strict=True):
            phrases.setdefault(name, []).append(Phrase(signs, codes, place))
    return phrases
