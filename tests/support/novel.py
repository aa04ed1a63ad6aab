"""Make up a novel of any length: chapters, eight people who talk, dates, figures, abbreviations, names that are hard to say.

`python -m tests.support.novel FILE.epub --words 30000` writes one, as does FILE.docx.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from tests.support.books import save_epub, save_word

PEOPLE: Final = ("Anna", "Tadhg", "Siobhan", "Xiomara", "Dr. Okonkwo", "Joaquín", "Mrs. Cholmondeley", "Peter")
"""Whoever speaks; each chapter has three or four of them."""
TITLES: Final = (
    "The Lock-Keeper", "A Letter from Cork", "Low Water", "What the Tide Left", "The Second Key", "Nine Lamps", "Mr. Voss Is Late", "The Weighing Room",
    "Salt", "A Bed by the Stove", "The Ferry of 1893", "Chalk on the Door", "The Long Bridge", "Two Small Coins", "No. 17", "The Blind Pilot",
    "Rain on the Ledger", "Somebody Else's Coat", "The Last Boat but One", "Home by the Canal",
)  # fmt: skip
SLOTS: Final = {
    "person": ("the lock-keeper", "my sister", "old Mr. Voss", "the pilot", "the girl from No. 17", "the clerk", "the baker's widow"),
    "thing": ("a brass key", "the ledger", "three wet letters", "the lamp", "a box of candles", "his father's watch", "the blue jug"),
    "place": ("by the lock", "on the quay", "in the weighing room", "under the long bridge", "at the corner of St. Brigid's Rd.", "in Leicester"),
    "did": ("put {thing} on the table", "looked at the water and counted to 20", "walked to the mill and back", "lit the stove", "wrote the date twice",
            "closed the shutters one after the other", "paid £3.50 for bread and tea", "hid {thing} under the bench", "carried {thing} home in the rain"),
    "when": ("that evening", "on 14 March 1893", "at 6:45 p.m.", "before the bells", "when the fog came up", "in the winter of 1887", "after the last boat"),
    "as": ("as if nothing had happened", "without a word", "as quietly as the floor allowed", "for the third time", "with both hands", "and nobody minded"),
    "weather": ("The wind had turned to the north", "It rained on the slates", "The fog lay on the water like a second river", "A thin sun stood over the mill",
                "The tide was going out", "It was 4 °C in the yard"),
    "fact": ("there were 1,240 sacks in the mill", "the boat costs £12 a year", "the bridge is 310 m long", "he owes us 15% of it", "it was dated 2 May 1888",
             "nobody has opened that door since the flood", "the key never belonged to your uncle"),
    "wish": ("come with me to the lock", "leave the lamp where it is", "read it to me once more", "ask him about the ledger", "give me that coat"),
}  # fmt: skip
TOLD: Final = (
    "{When} {person} {did} {as}.", "{Person} {did}, and {person} {did}.", "{weather}, and {person} {did} {place}.",
    "{weather}. {Place}, {person} {did} {as}.", "There was {thing} {place}, which {person} had left there {when}.",
    "{Person} had never liked it {place}, i.e. not since {person} {did}.", "{When} the clerk wrote that {fact}; {person} {did} {as}.",
)  # fmt: skip
SPOKEN: Final = (
    "“{Wish},” said {who}.", "“Is it true that {fact}?” asked {who}.", "{who} said, “{Wish}, will you? {Fact}.”",
    "“{Fact},” {who} replied. “You might {wish}.”", "“No. {Fact},” whispered {who}. “{Wish}.”", "“{Wish}!” cried {who}, and {did}.",
    "“And who says that {fact}?”", "“I would rather {wish}.”",
)  # fmt: skip
"""Of the last two nothing tells who says them."""


def fill(words: str, draw: random.Random, who: str = "") -> str:
    """Fill the slots of a sentence; one with a capital begins it."""
    begin = words.find("{")
    while begin >= 0:
        end = words.index("}", begin)
        name = words[begin + 1 : end]
        chosen = who if name == "who" else draw.choice(SLOTS[name.lower()])
        words = words[:begin] + (chosen[0].upper() + chosen[1:] if name[0].isupper() else chosen) + words[end + 1 :]
        begin = words.find("{")
    return words


def write_paragraphs(words_least: int, draw: random.Random) -> Iterator[str]:
    """Yield the paragraphs of a chapter of so many words or a few more: told and spoken by turns."""
    people, count = draw.sample(PEOPLE, draw.choice((3, 4))), 0
    while count < words_least:
        told = " ".join(fill(draw.choice(TOLD), draw) for _ in range(draw.choice((1, 2, 3))))
        spoken = [fill(draw.choice(SPOKEN), draw, draw.choice(people)) for _ in range(draw.choice((2, 3, 4)))]
        for each in (told, *spoken):
            count += len(each.split())
            yield each


def write_novel(words: int = 30_000, chapters: int = 20, seed: int = 1) -> dict[str, list[str]]:
    """Return the paragraphs of each chapter by its title; the same for the same seed."""
    draw = random.Random(seed)
    return {TITLES[place]: [*write_paragraphs(words // chapters, draw)] for place in range(chapters)}


def save_novel(path: Path, novel: dict[str, list[str]]) -> Path:
    """Write it as the name says: .epub or .docx."""
    if path.suffix == ".docx":
        return save_word(
            path, [row for title, paragraphs in novel.items() for row in (("Heading1", title), *(("", each) for each in paragraphs))]
        )
    bodies = {
        f"{place:02}.xhtml": f"<h1>{title}</h1>" + "".join(f"<p>{escape(each)}</p>" for each in paragraphs)
        for place, (title, paragraphs) in enumerate(novel.items())
    }
    return save_epub(path, bodies, dict(zip(bodies, novel, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--chapters", type=int, default=len(TITLES))
    asked = parser.parse_args()
    save_novel(asked.file, write_novel(asked.words, asked.chapters))


if __name__ == "__main__":
    main()
