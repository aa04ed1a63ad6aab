"""Learn to read: from the words of a list and what flite says for them, sounds of letters by what stands around them, and the words that this gets wrong."""

from __future__ import annotations

import json
import math
import string
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from app.engine.speech.text import pronounce, sounds

from . import corpus, sentences
from .flite import Flite

LONGEST_CHUNK = 3
CHUNK_COSTS = (2.5, 0.2, 2.5, 5.0)
"""At first, a letter that makes so many sounds is guessed to cost so many nats."""
ALIGNED_FIRST, ROUNDS = 12000, 3
UNSEEN_COST = 12.0
SEEN_TWICE = 2
SENTENCES_HEARD = 1200
SAID_OFTEN = 3

Chunks = Mapping[str, Mapping[str, float]]
Pairs = dict[str, str]


def signs(phones: Iterable[tuple[str, bool]]) -> str:
    return "".join(sounds.sign(name, stressed) for name, stressed in phones if name != "pau")


def pairs(flite: Flite, words: Iterable[str]) -> Pairs:
    """Return what flite says for each word alone, in sounds; contractions it has to speak, for its lexicon knows their letters only."""
    lower = {each.lower() for each in words if not each.lower().endswith("'s")}
    found = {word: signs(flite.spell(word)) if word.isalpha() else aloud(flite, word) for word in lower}
    return {word: said for word, said in sorted(found.items()) if said}


def aloud(flite: Flite, word: str) -> str:
    return signs((phone.name, phone.stressed) for phone in flite.say("anna", word).phones)


def names(flite: Flite) -> Pairs:
    """Return the letters' names. Alone, flite takes an a for the article."""
    said = {name: signs(flite.spell(letter)) for name, letter in zip(pronounce.NAMES, string.ascii_lowercase, strict=True)}
    return said | {"ay": signs([("ey", True)])}


def in_sentences(flite: Flite, texts: Iterable[str]) -> Pairs:
    """Return the words that flite says otherwise in sentences than alone, most of the times it meets them: a, the, of, for."""
    heard: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        words = sentences.WORD.findall(text.lower())
        try:
            said, _ = corpus.read_out(text, flite.say("anna", text).phones, 0)
        except ValueError:
            continue
        spoken = "".join(each for each in said if each not in sounds.MARKS).split()
        if len(words) == len(spoken):
            for word, one in zip(words, spoken, strict=True):
                heard[word][one] += 1
    found = {}
    for word, counts in heard.items():
        said, often = counts.most_common(1)[0]
        if often >= SAID_OFTEN and said != signs(flite.spell(word)):
            found[word] = said
    return found


def align(word: str, said: str, costs: Chunks | None) -> list[str] | None:
    """Divide the sounds among the letters at the least cost; None where there are more sounds than that allows."""
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for letter in word:
        known, row = (costs or {}).get(letter, {}), dict[int, tuple[float, int]]()
        for end, (cost, _) in best[-1].items():
            for size in range(min(LONGEST_CHUNK, len(said) - end) + 1):
                chunk = said[end : end + size]
                more = cost + (known.get(chunk, UNSEEN_COST) if costs else CHUNK_COSTS[size])
                if end + size not in row or more < row[end + size][0]:
                    row[end + size] = (more, size)
        best.append(row)
    if len(said) not in best[-1]:
        return None
    chunks, end = [], len(said)
    for row in reversed(best[1:]):
        size = row[end][1]
        chunks.append(said[end - size : end])
        end -= size
    return chunks[::-1]


def learn_costs(learned: Pairs) -> Chunks:
    """Learn what each letter likes to sound as: a letter's sounds are first those at about its place in the word, then what alignment finds."""
    few = dict(list(learned.items())[:: max(1, len(learned) // ALIGNED_FIRST)])
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, said in few.items():
        for place, letter in enumerate(word):
            middle = place * len(said) / len(word)
            for sound in range(max(0, math.floor(middle) - 1), min(len(said), math.floor(middle) + 2)):
                counts[letter][said[sound]] += 1
            counts[letter][""] += 0.3  # type: ignore[assignment]
            counts[letter][said[math.floor(middle) : math.floor(middle) + 2]] += 0.2  # type: ignore[assignment]
    costs = _costs(counts)
    for _ in range(ROUNDS):
        counts = defaultdict(Counter)
        for word, said in few.items():
            for letter, chunk in zip(word, align(word, said, costs) or (), strict=False):
                counts[letter][chunk] += 1
        costs = _costs(counts)
    return costs


def _costs(counts: Mapping[str, Counter[str]]) -> Chunks:
    return {
        letter: {chunk: -math.log(count / sum(own.values())) + (1.5 if len(chunk) > 1 else 0.0) for chunk, count in own.items()}
        for letter, own in counts.items()
    }


def learn_rules(learned: Pairs, costs: Chunks) -> dict[str, str]:
    """Return, for contexts that grow wider, the most frequent sounds of a letter where they differ from what narrower contexts say."""
    places = [
        (word, place, chunk)
        for word, said in learned.items()
        if word.isalpha() and (chunks := align(word, said, costs))
        for place, chunk in enumerate(chunks)
    ]
    told: list[str | None] = [None] * len(places)
    rules: dict[str, str] = {}
    for before, after in pronounce.WINDOWS:
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for number, (word, place, _) in enumerate(places):
            groups[pronounce.context(word, place, before, after)].append(number)
        for context, members in groups.items():
            chunk, often = Counter(places[number][2] for number in members).most_common(1)[0]
            if chunk == told[members[0]] or (often < SEEN_TWICE and before):
                continue
            rules[context] = chunk
            for number in members:
                told[number] = chunk
    return rules


def learn(learned: Pairs, always: Pairs) -> pronounce.Letters:
    """Return rules, and every word that they get wrong; `always` overrides."""
    rules = learn_rules(learned, learn_costs(learned))
    wrong = {word: said for word, said in learned.items() if not word.isalpha() or pronounce.apply_rules(rules, word) != said}
    return pronounce.Letters(wrong | always, rules)


def save(letters: pronounce.Letters, path: Path) -> None:
    tables = {"words": dict(sorted(letters.words.items())), "rules": dict(sorted(letters.rules.items()))}
    path.write_bytes(zlib.compress(json.dumps({"signs": sounds.SIGNS, **tables}, separators=(",", ":")).encode(), 9))


def unseen_errors(learned: Pairs, one_of: int = 12) -> tuple[float, float]:
    """Return the share of words, and of sounds in them, that are wrong in words left out of the learning."""
    from .judge import word_errors

    kept = {word: said for number, (word, said) in enumerate(learned.items()) if number % one_of}
    left = {word: said for word, said in learned.items() if word not in kept and word.isalpha()}
    rules = learn_rules(kept, learn_costs(kept))
    errors = [word_errors(list(said), list(pronounce.apply_rules(rules, word))) for word, said in left.items()]
    return sum(map(bool, errors)) / len(left), sum(errors) / sum(map(len, left.values()))


def main(texts: list[str], words: Iterable[str], out: Path) -> dict[str, float]:
    flite = Flite()
    learned = pairs(flite, words)
    letters = learn(learned, in_sentences(flite, texts[:SENTENCES_HEARD]) | names(flite))
    save(letters, out)
    wrong, sounds_wrong = unseen_errors(learned)
    return {
        "words": len(learned),
        "rules": len(letters.rules),
        "exceptions": len(letters.words),
        "bytes": out.stat().st_size,
        "unseen_words_wrong": wrong,
        "unseen_sounds_wrong": sounds_wrong,
    }
