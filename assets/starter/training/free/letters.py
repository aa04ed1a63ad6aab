"""Learns which sounds a letter has from its neighbours: letters and sounds are aligned, then every context that changes a letter's sound becomes a row."""

from __future__ import annotations

import gzip
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from . import corpus, lexicon, spelling, texts
from .flite import Flite
from .phones import ORDER, letter_sounds, surroundings

MOST_SOUNDS = 2  # of one letter, as in "box"
ROUNDS, SAMPLE = 4, 12_000
LISTENED, LISTENED_SEED = 5000, 9
Lexicon = dict[str, str]
Instance = tuple[str, str]
"""A letter with its surroundings, and its sounds."""


def aligned(word: str, sounds: str, costs: dict[str, dict[str, float]]) -> list[str] | None:
    """The sounds of each letter, by the cheapest way; None where there are too many."""
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for letter in word:
        found: dict[int, tuple[float, int]] = {}
        own = costs[letter]
        for place, (cost, _) in best[-1].items():
            for count in range(min(MOST_SOUNDS, len(sounds) - place) + 1):
                price = cost + own.get(sounds[place : place + count], 14.0)
                if place + count not in found or price < found[place + count][0]:
                    found[place + count] = (price, place)
        best.append(found)
    if len(sounds) not in best[-1]:
        return None
    parts, end = [], len(sounds)
    for step in range(len(word), 0, -1):
        begin = best[step][end][1]
        parts.append(sounds[begin:end])
        end = begin
    return parts[::-1]


def costs_of(counts: dict[str, Counter[str]]) -> dict[str, dict[str, float]]:
    return {letter: {part: -math.log(count / own.total()) for part, count in own.items()} for letter, own in counts.items()}


def alignments(known: Lexicon, seed: int = 1) -> tuple[list[Instance], list[str]]:
    """Every letter of every word that can be aligned, and the words that cannot. Costs come from counts, a sample of the words counted again and again."""
    sample = random.Random(seed).sample(sorted(known), min(SAMPLE, len(known)))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word in sample:
        sounds = known[word]
        for place, letter in enumerate(word):
            middle = round((place + 0.5) / len(word) * len(sounds) - 0.5)
            for near in range(max(0, middle - 1), min(len(sounds), middle + 2)):
                counts[letter][sounds[near]] += 2
            counts[letter][""] += 1
    for _ in range(ROUNDS):
        costs, counts = costs_of(counts), defaultdict(Counter)
        for word in sample:
            for letter, part in zip(word, aligned(word, known[word], costs) or (), strict=False):
                counts[letter][part] += 1
    costs = costs_of(counts)
    instances: list[Instance] = []
    left: list[str] = []
    for word, sounds in known.items():
        parts = aligned(word, sounds, costs) if set(word) <= set(costs) else None
        if parts is None:
            left.append(word)
            continue
        instances += ((surroundings(word, place), part) for place, part in enumerate(parts))
    return instances, left


def learned(instances: list[Instance]) -> dict[str, str]:
    """Contexts, each as short as it can be, with the sounds that differ from those of the shorter context; of no context at all a letter is silent."""
    rows: dict[str, str] = {}

    def grow(part: list[Instance], size: int, inherited: str) -> None:
        tally = Counter(sounds for _, sounds in part)
        common = max(tally.values())
        own = inherited if tally[inherited] == common else min(each for each in tally if tally[each] == common)
        if own != inherited:
            rows[part[0][0][:size]] = own
        if len(tally) > 1 and size < len(ORDER):
            split(part, size, own)

    def split(part: list[Instance], size: int, inherited: str) -> None:
        groups: dict[str, list[Instance]] = defaultdict(list)
        for each in part:
            groups[each[0][size]].append(each)
        for group in groups.values():
            grow(group, size + 1, inherited)

    split(instances, 0, "")
    return rows


def exact(rows: dict[str, str], known: Lexicon) -> dict[str, str]:
    """The words that the contexts get wrong, whole."""
    said = {word: "".join(letter_sounds(surroundings(word, place), rows) for place in range(len(word))) for word in known}
    return {f"={word}": sounds for word, sounds in known.items() if said[word] != sounds}


def in_sentences(sentences: Iterable[str]) -> Lexicon:
    """How words sound within sentences, the most usual way: "does" by itself is the plural of "doe" to flite."""
    flite, found = Flite(), defaultdict[str, Counter[str]](Counter)
    for text in sentences:
        tokens = spelling.spoken(text).split()
        try:
            sounds, _ = corpus.heard(tokens, flite.say("#", " ".join(tokens).lower()))
        except ValueError:
            continue
        for token, said in zip(tokens, sounds.split(" "), strict=True):
            found[token.rstrip(corpus.MARKS)][said.rstrip(corpus.MARKS)] += 1
    return {word: own.most_common(1)[0][0] for word, own in found.items() if not word.isupper() and not corpus.SPLIT.search(word)}


def build(path: Path) -> None:
    """The table of sounds that ships: learned from a small and a large list of words, exact for every word of the small one and of many sentences."""
    say = lexicon.pronouncer()
    common = {word: say(word.replace("'", "")) for word in lexicon.words(lexicon.COMMON) if len(word) > 1 and not corpus.SPLIT.search(word)}
    rare = {word: say(word) for word in lexicon.words(lexicon.RARE) if len(word) > 1}
    plain = {word: sounds for word, sounds in sorted({**rare, **common}.items()) if word.isalpha() and sounds}
    rows = learned(alignments(plain)[0])
    write({**rows, **exact(rows, {**common, **in_sentences(islice(texts.training(LISTENED_SEED), LISTENED))})}, path)


def write(rows: dict[str, str], path: Path) -> None:
    """Sorted and front-coded: how much a key shares with the one before, the rest of it, its signs."""
    lines, before = [], ""
    for key in sorted(rows):
        shared = next((place for place, (one, other) in enumerate(zip(key, before, strict=False)) if one != other), min(len(key), len(before)))
        lines.append(f"{chr(48 + shared)}{key[shared:]} {rows[key]}\n")
        before = key
    path.write_bytes(gzip.compress("".join(lines).encode("ascii"), 9, mtime=0))
