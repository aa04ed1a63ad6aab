"""Draw English sentences from free texts that Debian packages carry, and lists of words and numbers. Knows nothing about sound."""

from __future__ import annotations

import gzip
import hashlib
import random
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.engine.speech.text import numerals, spoken_forms

WORD_LIST, WORDS = "wamerican", Path("usr/share/dict/american-english")
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
MOST_LETTERS, MOST_WORDS = 110, 18
HELD_OUT_OF = 40  # one sentence of so many is never trained on
UNITS = (
    "dollars", "cents", "percent", "miles", "minutes", "hours", "pounds", "people", "houses", "years", "days", "meters", "degrees", "pages",
)  # fmt: skip
ORDINALS = [numerals.ordinal(day) for day in range(1, 32)]


@dataclass(frozen=True, slots=True)
class Source:
    """A Debian package with text, the licence of that text, and how sentences are found in it."""

    package: str
    licence: str
    found: Callable[[Path], Iterable[str]]
    count: int


def _quoted_examples(root: Path) -> Iterator[str]:
    for path in sorted((root / "usr/share/wordnet").glob("data.*")):
        for line in path.read_text("latin-1").splitlines():
            yield from re.findall(r'"([^"]+)"', line.partition(" | ")[2])


def _definitions(root: Path) -> Iterator[str]:
    for path in sorted((root / "usr/share/wordnet").glob("data.*")):
        for line in path.read_text("latin-1").splitlines():
            yield re.sub(r"\([^)]*\)", "", line.partition(" | ")[2].partition(";")[0])


def split(text: str) -> Iterator[str]:
    """Split running text at the ends of sentences, and long ones at semicolons and colons."""
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r'(?<=[.!?])["\')]*\s+|\s*[;:]\s+|\s+--+\s+', " ".join(paragraph.split()))


def _dictionary(name: str) -> Callable[[Path], Iterator[str]]:
    return lambda root: split(gzip.decompress((root / f"usr/share/dictd/{name}.dict.dz").read_bytes()).decode("utf-8", "replace"))


def _state_papers(root: Path) -> Iterator[str]:
    for path in sorted((root / "usr/share/state").glob("us-*.gz")):
        yield from split(gzip.decompress(path.read_bytes()).decode("latin-1"))


SOURCES = (
    Source("wordnet-base", "WordNet 3.0 licence (free for any use with notice)", _quoted_examples, 16000),
    Source("wordnet-base", "WordNet 3.0 licence (free for any use with notice)", _definitions, 4000),
    Source("dict-jargon", "public domain", _dictionary("jargon"), 3500),
    Source("dict-devil", "public domain", _dictionary("devil"), 2500),
    Source("miscfiles", "public domain (the constitution and declaration of the United States)", _state_papers, 500),
)
"""So many sentences are drawn from each package. wamerican's word list (SCOWL) is free for any use with its notice."""


def known_words(texts: Path) -> frozenset[str]:
    return frozenset(word for word in (texts / WORD_LIST / WORDS).read_text("utf-8").split() if WORD.fullmatch(word))


def cleaned(text: str, known: frozenset[str]) -> str | None:
    """Return a sentence as it is spoken, in letters, spaces and . , ! ? alone; None where anything else is in it or a word is not in the list."""
    text = re.sub(r"[\"()]|(?<!\w)'|'(?!\w)", "", text.strip())
    text = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", " ", text)
    text = " ".join(re.sub(r"\s*[;:]\s*|\s+-+\s+", ", ", text).split())
    if not re.fullmatch(r"[A-Za-z' ,.!?]+", text) or len(text) > MOST_LETTERS or "..." in text or re.search(r"[.!?,]\s*[.!?,]", text):
        return None
    found = WORD.findall(text)
    if not 1 <= len(found) <= MOST_WORDS or re.search(r"[.!?](?!$)", text):
        return None
    if any(word not in known and word.lower() not in known for word in found) or any(len(word) > 1 and word.isupper() for word in found):
        return None
    if any(len(word) == 1 and word not in "aAIO" for word in found):
        return None
    return text[0].upper() + text[1:].rstrip(", ")


def numbers(rng: random.Random) -> str:
    """Draw a phrase of numbers: figures one by one, amounts, years, times, dates."""
    kind = rng.randrange(6)
    if kind < 2:
        said = [rng.choice(numerals.SMALL[:10]) for _ in range(rng.randint(3, 8))]
        return " ".join(word + ("," if rng.random() < 0.15 and place < len(said) - 1 else "") for place, word in enumerate(said))
    if kind == 2:
        return f"{numerals.cardinal(rng.choice((rng.randrange(100), rng.randrange(1000), rng.randrange(1000000))))} {rng.choice(UNITS)}"
    if kind == 3:
        return f"{rng.choice(('in', 'since', 'before', 'the year'))} {rng.choice(('nineteen', 'eighteen', 'twenty'))} {numerals.cardinal(rng.randint(10, 99))}"
    if kind == 4:
        minute = rng.choice(("fifteen", "thirty", "oh five", "forty five", numerals.cardinal(rng.randint(10, 59))))
        return f"at {numerals.cardinal(rng.randint(1, 12))} {minute}"
    return f"{rng.choice(spoken_forms.MONTHS)} {rng.choice(ORDINALS)}, {numerals.cardinal(rng.randrange(100))} point {numerals.cardinal(rng.randrange(10))}"


def loose(rng: random.Random, words: tuple[str, ...]) -> str:
    """Draw words in random order, so that every word of the list may be met."""
    said = [rng.choice(words) for _ in range(rng.randint(1, 7))]
    return " ".join(word + ("," if rng.random() < 0.12 and place < len(said) - 1 else "") for place, word in enumerate(said))


def key(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))


def is_held_out(text: str) -> bool:
    return int(hashlib.sha256(key(text).encode()).hexdigest(), 16) % HELD_OUT_OF == 0


def ended(text: str, rng: random.Random) -> str:
    text = text[0].upper() + text[1:] if rng.random() < 0.8 else text
    return text if text[-1] in ".!?" else text + rng.choice(("", ".", ".", ".", ".", "!", "?"))


def unpack(texts: Path) -> None:
    """Download the packages as this machine's Debian has them, and unpack each into a folder of its name. `texts` exists once it is done."""
    part = texts.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    for package in {WORD_LIST, *(source.package for source in SOURCES)}:
        subprocess.run(["apt-get", "download", "-q", package], cwd=part, check=True)
        subprocess.run(["dpkg", "-x", next(part.glob(f"{package}_*.deb")), part / package], check=True)
    part.rename(texts)


def drawn(texts: Path, seed: int, held_out: bool = False, loose_count: int = 4500, number_count: int = 3000) -> list[str]:
    """Return shuffled sentences from the unpacked packages under `texts`; or those held out of them."""
    rng, known = random.Random(seed), known_words(texts)
    plain = tuple(sorted(word for word in known if len(word) > 1))
    chosen: dict[str, str] = {}
    for source in SOURCES:
        found = {key(text): text for raw in source.found(texts / source.package) if (text := cleaned(raw, known))}
        pool = [text for text in found.values() if is_held_out(text) == held_out]
        rng.shuffle(pool)
        chosen.update((key(text), ended(text, rng)) for text in pool[: source.count])
    for make, count in ((lambda: loose(rng, plain), loose_count), (lambda: numbers(rng), number_count)):
        left = count
        while left:
            text = make()
            if is_held_out(text) == held_out:
                chosen[key(text)] = ended(text, rng)
                left -= 1
    sentences = list(chosen.values())
    rng.shuffle(sentences)
    return sentences
