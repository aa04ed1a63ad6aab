"""What the corpus says: sentences of free texts that Debian packages carry, loose words, and numbers as people write them. Knows no sound."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

from . import lexicon, spelling

WORDNET = Path("/usr/share/wordnet")  # Debian's wordnet-base
FORTUNES = Path("/usr/share/games/fortunes")  # Debian's fortunes and fortunes-min
LEAST_WORDS, MOST_WORDS, MOST_LETTERS = 2, 26, 150
KINDS = ("example", "quote", "gloss", "loose", "number", "digits")
SHARES = (0.36, 0.26, 0.08, 0.12, 0.09, 0.09)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TESTED, TUNED, PARTS = 0, 1, 40
"""A sentence belongs to one of so many parts by its letters; two of them are never trained on."""


def part_of(text: str) -> int:
    return crc32(" ".join(words_of(text)).encode()) % PARTS


def words_of(text: str) -> list[str]:
    """The words of a text as it is spoken, as a judge compares them."""
    return re.findall(r"[a-z']+", spelling.spoken(text).lower())


def fit(text: str) -> bool:
    """Whether a line is a sentence that a person might want to hear: plain words, not too long."""
    if not 8 <= len(text) <= MOST_LETTERS or not text.isascii() or re.search(r"[_=<>{}|\\~^*#@]|\s-{1,2}\s*[A-Z]|[A-Z]{6}|http|\.\w+\(", text):
        return False
    said = spelling.spoken(text)
    return LEAST_WORDS <= len(said.split()) <= MOST_WORDS and len(said) <= MOST_LETTERS


def examples() -> Iterator[str]:
    """Sentences that show how a word is used."""
    for path in sorted(WORDNET.glob("data.*")):
        for line in path.read_text("ascii", "replace").splitlines():
            for found in re.findall(r'"([^"]+)"', line.partition("| ")[2]):
                yield found[0].upper() + found[1:] + ("" if found[-1] in ".?!" else ".")


def glosses() -> Iterator[str]:
    """What words mean."""
    for path in sorted(WORDNET.glob("data.*")):
        for line in path.read_text("ascii", "replace").splitlines():
            meaning = re.sub(r"\([^)]*\)", "", line.partition("| ")[2].split('; "')[0].split(";")[0]).strip()
            if meaning:
                yield meaning + "."


def quotes() -> Iterator[str]:
    for path in sorted(path for path in FORTUNES.iterdir() if path.is_file() and not path.suffix and path.name != "songs-poems"):
        for piece in path.read_text("utf-8", "replace").split("\n%\n"):
            text = " ".join(re.split(r"\n\s*--", piece)[0].split())
            yield from re.split(r"(?<=[.!?])\s+(?=[A-Z\"])", text)


@cache
def told(kind: str) -> tuple[str, ...]:
    """All sentences of a kind, each once, in an order that has nothing to do with their source."""
    source = {"example": examples, "quote": quotes, "gloss": glosses}[kind]
    found = {text.strip(' "'): None for text in source() if fit(text.strip(' "'))}
    return tuple(sorted(found, key=lambda text: crc32(text.encode())))


@cache
def vocabulary() -> tuple[str, ...]:
    return tuple(word for word in lexicon.words(lexicon.COMMON) if len(word) > 1)


def loose(rng: random.Random) -> str:
    """Words in no order, so that no word is known only from its neighbours."""
    said = [rng.choice(vocabulary()) for _ in range(rng.randint(2, 7))]
    return " ".join(word + ("," if rng.random() < 0.15 and place < len(said) - 1 else "") for place, word in enumerate(said)) + rng.choice((".", ".", "?", "!", ""))


def digits(rng: random.Random) -> str:
    """Digits as words or figures, now and then with a comma."""
    said = [rng.choice(DIGITS) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.3:
        said = [str(DIGITS.index(word)) for word in said]
    return " ".join(word + ("," if rng.random() < 0.15 and place < len(said) - 1 else "") for place, word in enumerate(said)) + rng.choice((".", ".", "", "!"))


def number(rng: random.Random) -> str:
    """A sentence with a number, a date, a time, a sum or letters in it."""
    month, draw = rng.choice(spelling.MONTHS).capitalize(), rng.randint
    what = rng.choice((
        f"{draw(1, 999)}", f"{draw(1000, 99999):,}", f"{draw(1, 9)}.{draw(0, 99)}", f"${draw(1, 99)}.{draw(10, 99)}", f"{draw(1, 12)}:{draw(10, 59)}",
        f"{month} {draw(1, 31)}, {draw(1700, 2030)}", f"{draw(1700, 2030)}", f"the {draw(1, 31)}th of {month}", f"{draw(1, 99)}%", f"{draw(2, 90)} km",
        f"{draw(-30, 40)} degrees", " ".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(draw(2, 5))),
    ))  # fmt: skip
    return rng.choice((
        "It was {}.", "The answer is {}.", "We have {} now.", "He wrote {} on the paper, and left.", "Was it {}?", "Number {} is ready.", "{}.", "Call me at {}, please.",
        "In the end it came to {}, as they said.", "{} is not enough.", "She said {}!",
    )).format(what)  # fmt: skip


def drawn(rng: random.Random, parts: frozenset[int]) -> Iterator[str]:
    """Sentences without end whose part is one of `parts`."""
    made = {"loose": loose, "number": number, "digits": digits}
    places = dict.fromkeys(KINDS, rng.randrange(10_000))
    while True:
        kind = rng.choices(KINDS, SHARES)[0]
        if kind in made:
            text = made[kind](rng)
        else:
            places[kind] += 1
            text = told(kind)[places[kind] % len(told(kind))]
        if part_of(text) in parts:
            yield text


def training(seed: int) -> Iterator[str]:
    return drawn(random.Random(seed), frozenset(range(PARTS)) - {TESTED, TUNED})


def held_out(part: int, kind: str, count: int, seed: int = 0) -> list[str]:
    """Sentences of one kind that the training never meets."""
    made = {"loose": loose, "number": number, "digits": digits}
    rng, found = random.Random(f"{seed}-{part}-{kind}"), dict[str, None]()
    source = iter(told(kind)) if kind not in made else iter(lambda: made[kind](rng), None)
    while len(found) < count:
        text = next(source)
        assert text is not None
        if part_of(text) == part:
            found[text] = None
    return list(found)
