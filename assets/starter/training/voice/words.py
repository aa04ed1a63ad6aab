"""Define the starter voice's domain: its words, the spelling of digits, and phrases drawn from a small grammar."""

from __future__ import annotations

import random
import re

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
CLASSES: dict[str, tuple[str, ...]] = {
    "greeting": (
        "hello",
        "welcome",
        "goodbye",
        "good morning",
        "good evening",
        "good night",
        "thank you",
        "yes",
        "maybe",
        "sorry",
        "please",
    ),
    "who": ("I", "you", "we"),
    "one_who": ("my father", "my mother", "my sister", "my brother", "my friend", "the doctor", "the teacher"),
    "whose": ("my", "the", "this"),
    "thing": (
        "house",
        "garden",
        "water",
        "river",
        "mountain",
        "sun",
        "moon",
        "ocean",
        "fire",
        "hearth",
        "window",
        "door",
        "table",
        "chair",
        "book",
        "story",
        "picture",
        "music",
        "voice",
        "computer",
        "machine",
        "coffee",
        "bread",
        "apple",
        "breakfast",
        "kitchen",
        "village",
        "street",
        "bridge",
        "train",
        "boat",
        "horse",
        "dog",
        "bird",
        "tree",
        "flower",
        "forest",
        "rain",
        "question",
        "answer",
        "family",
    ),
    "things": ("children", "people", "flowers", "pictures", "minutes", "horses", "stories", "windows", "apples", "friends"),
    "quality": (
        "red",
        "blue",
        "green",
        "yellow",
        "orange",
        "purple",
        "black",
        "white",
        "big",
        "small",
        "new",
        "young",
        "warm",
        "happy",
        "beautiful",
        "quiet",
        "bright",
        "dark",
        "little",
        "strong",
        "wonderful",
        "simple",
        "ready",
    ),
    "do": ("see", "like", "love", "want", "have", "make", "find", "keep", "bring", "open", "close", "paint", "remember"),
    "act": ("write", "sing", "play", "speak", "listen", "wait", "work", "sleep", "walk", "dance", "travel"),
    "when": (
        "today",
        "tomorrow",
        "now",
        "again",
        "always",
        "together",
        "in the morning",
        "in the evening",
        "every day",
        "on monday",
        "on tuesday",
        "on wednesday",
        "on thursday",
        "on friday",
        "on saturday",
        "on sunday",
        "in winter",
        "in summer",
    ),
    "where": ("in", "on", "under", "near", "behind", "with"),
    "ask": ("what", "where", "when", "why"),
}
SENTENCES = (
    "the {quality} {thing} is {where} the {thing}",
    "{whose} {thing} is {quality}",
    "{whose} {thing} is {quality} and {quality}",
    "{who} {do} the {quality} {thing}",
    "{who} can {act} {when}",
    "{who} will {act} with {whose} {thing}",
    "{one_who} will {act} {when}",
    "{one_who} is {where} the {thing}",
    "{one_who} is {quality} {when}",
    "{one_who} will {do} {whose} {thing}",
    "{greeting}, {one_who} is {quality}",
    "{greeting}",
    "{greeting}, {greeting}",
    "{greeting}, my {quality} friend",
    "{ask} is {whose} {thing}?",
    "{ask} is the {quality} {thing}?",
    "{digit} {things} and {digit} {things}",
    "{digit} {quality} {things}",
    "{who} have {digit} {things}",
    "{who} see {digit} {things} {where} the {thing}",
    "the {thing} and the {thing} are {quality}",
    "please {do} the {thing}",
    "please {do} {whose} {quality} {thing}",
    "{who} are {quality} {when}",
    "{digit} {things} are {where} the {thing}",
    "here is {whose} {thing}",
    "can you {do} {whose} {thing}?",
    "can you {act} {when}?",
    "{who} {act} and {act}",
    "this is a {quality} {thing}",
    "{who} can not {do} the {thing}",
    "{when}, {who} {do} the {thing}",
    "a {quality} {thing} and a {quality} {thing}",
    "I am {quality}",
    "I am hearth",
    "very good, {who} are ready",
)
_LINKS = ("the", "a", "and", "not", "is", "are", "am", "can", "will", "very", "here", "good")
ENDINGS = (".", ".", ".", "!", "")


def vocabulary() -> tuple[str, ...]:
    """Return every word that the voice knows, in lower case, sorted."""
    found = {*DIGITS, *_LINKS}
    for phrases in (*CLASSES.values(), SENTENCES):
        for phrase in phrases:
            found.update(spoken_words(re.sub(r"\{\w+\}", " ", phrase)))
    return tuple(sorted(found))


def spoken_words(text: str) -> list[str]:
    """Return the words of a text as the judge compares them."""
    return re.findall(r"[a-z]+", text.lower())


def spelling() -> dict[str, str]:
    """Return how each digit is spoken; longer numbers are read digit by digit."""
    return dict(zip(map(str, range(10)), DIGITS, strict=True))


def digit_phrase(rng: random.Random) -> str:
    """Draw three to seven digits, sometimes with a comma."""
    words = [rng.choice(DIGITS) for _ in range(rng.choice((3, 3, 4, 4, 5, 6, 7)))]
    return " ".join(word + ("," if rng.random() < 0.15 and place < len(words) - 1 else "") for place, word in enumerate(words))


def loose_phrase(rng: random.Random, words: tuple[str, ...]) -> str:
    """Draw words in random order, so that no word is known only from its neighbours."""
    chosen = [rng.choice(words) for _ in range(rng.choice((2, 3, 4, 5, 6)))]
    return " ".join(word + ("," if rng.random() < 0.12 and place < len(chosen) - 1 else "") for place, word in enumerate(chosen))


def sentence(rng: random.Random) -> str:
    """Draw one sentence of the grammar."""

    def fill(match: re.Match[str]) -> str:
        kind = match.group(1)
        return rng.choice(DIGITS if kind == "digit" else CLASSES[kind])

    return re.sub(r"\{(\w+)\}", fill, rng.choice(SENTENCES))


def phrase(rng: random.Random, kind: str) -> str:
    """Draw a phrase of one kind (digits, loose, sentence) as people type: with or without a capital, with or without a final mark."""
    if kind == "digits":
        text = digit_phrase(rng)
    elif kind == "loose":
        text = loose_phrase(rng, vocabulary())
    else:
        text = sentence(rng)
    text = re.sub(r"\bi\b", "I", text)
    if rng.random() < 0.6:
        text = text[0].upper() + text[1:]
    return text if text.endswith("?") else text + rng.choice(ENDINGS)
