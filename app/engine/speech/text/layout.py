"""Read the layout of a text: its paragraphs, headings, breaks and lists, and the pauses that they mean. Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from app.engine.speech.text.chapter_names import CHAPTER

PARAGRAPH_S: Final = 0.6
HEADING_S: Final = 0.9
"""It stands before a heading and after it."""
BREAK_S: Final = 1.5
"""A line of "* * *", "---" or "#" means it."""
HEADING_MOST: Final = 60
"""A heading has at most so many characters."""
WRAPPED_FROM: Final = 50
"""A line of so many characters or more is one of prose."""
WORDS_MOST: Final = 4
"""An item of a list with more words ends a sentence."""
_BREAK = re.compile(r"(?:[*#~⁂§•=+_-]\s*+){3,}+|[#*~⁂§]")
_RULED = re.compile(r"={3,}+|-{3,}+")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}\.|\(?(?:\d{1,2}|[a-z])\))\s++(?=\S)")
_MARKED_HEADING = re.compile(r"#{1,6}+\s++(?=\S)")
_NUMBER = re.compile(r"(?:[IVXLC]{1,7}|\d{1,3})\.?")
_ENDED = re.compile(r"""[.!?。！？]["')\]]*+$""")
_BEGINS = re.compile(r"""["'(\[-]*+[^\W_a-z]""")


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    """All of it stands in one line."""
    pause_before_s: float
    """The layout means so long a pause between this and what comes before; 0: it means none."""


def list_paragraphs(text: str, marks_lines: bool) -> tuple[list[Paragraph], float]:
    """List the paragraphs and headings of a text, all but the last with a mark at their end, and the pause of a heading or break at its end.
    `marks_lines`: the ends of short lines become commas, for a voice that breathes only at marks."""
    found: list[Paragraph] = []
    pause_s = 0.0
    blocks = [[*lines] for filled, lines in groupby(text.split("\n"), key=lambda line: bool(line.strip())) if filled]
    for place, block in enumerate(blocks):
        for lines, pause_after_s in _split_block(block, place + 1 == len(blocks)):
            own_pause_s = pause_after_s if pause_after_s in (HEADING_S, BREAK_S) else 0.0  # a heading's or a break's stands before it, too
            if lines:
                found.append(Paragraph(_join_lines(lines, marks_lines), max(pause_s, own_pause_s)))
            pause_s = max(pause_after_s, 0.0 if lines else pause_s)
    closed = [Paragraph(_close(each.text), each.pause_before_s) for each in found[:-1]] + found[-1:]
    return closed, pause_s if pause_s > PARAGRAPH_S else 0.0


def _split_block(block: list[str], last: bool) -> Iterator[tuple[list[str], float]]:
    """Yield the paragraphs of what stands together between blank lines, each with the pause after it; a break has no lines."""
    wrapped = any(len(line) >= WRAPPED_FROM and not _ENDED.search(line.rstrip()) for line in block[:-1])
    width = max(map(len, block))
    lines: list[str] = []
    for place, line in enumerate(block):
        if len(lines) == 1 and len(lines[0]) <= HEADING_MOST and _is_open(lines[0].strip()) and _RULED.fullmatch(line.strip()):
            yield lines, HEADING_S
            lines = []
        elif _BREAK.fullmatch(line.strip()):
            if lines:
                yield lines, PARAGRAPH_S
            yield [], BREAK_S
            lines = []
        elif _is_heading(line.strip(), len(block) == 1, last and place + 1 == len(block)):
            if lines:
                yield lines, PARAGRAPH_S
            yield [_MARKED_HEADING.sub("", line.strip())], HEADING_S
            lines = []
        else:
            if lines and _begins_paragraph(lines[-1], line, width if wrapped else None):
                yield lines, PARAGRAPH_S
                lines = []
            lines.append(line)
    if lines:
        yield lines, PARAGRAPH_S


def _is_heading(line: str, alone: bool, last: bool) -> bool:
    """Tell whether a line is a heading: by its words, or because it is short, has no mark at its end and stands `alone` between blank lines
    or in capitals, with text after it."""
    if _MARKED_HEADING.match(line):
        return True
    if len(line) > HEADING_MOST or not _BEGINS.match(line):
        return False
    if CHAPTER.fullmatch(line):
        return True
    if last or _ITEM.match(line):
        return False
    return _NUMBER.fullmatch(line) is not None or (line[-1].isalnum() and (alone or (line.isupper() and len(line) > 3)))


def _begins_paragraph(before: str, line: str, width: int | None) -> bool:
    """Tell whether a line begins a paragraph: after the end of a sentence, where its first word would have had room in the line before.
    `width`: of wrapped lines; None: they are not wrapped."""
    if not _ENDED.search(before.rstrip()) or not _BEGINS.match(line.strip()):
        return False
    indented = len(line) - len(line.lstrip()) > len(before) - len(before.lstrip())
    return width is None or indented or len(before.rstrip()) + 1 + len(line.split(None, 1)[0]) <= width


def _join_lines(lines: list[str], marks_lines: bool) -> str:
    """Join the lines of a paragraph: an item of a list ends in a mark, and if `marks_lines`, so does a short line, as of a verse."""
    marked = [line.strip() for line in lines]
    for place, (line, following) in enumerate(pairwise(marked)):
        item, next_item = _ITEM.match(line), _ITEM.match(following)
        if not _is_open(line) or (following[:1].islower() and not next_item):
            continue
        if item and (next_item or len(line) < WRAPPED_FROM):
            listed = next_item and item[0][0] in "-*+•" and len(line.split()) <= WORDS_MOST
            marked[place] += "," if listed else "."
        elif marks_lines and len(line) < WRAPPED_FROM:
            marked[place] += ","
    return " ".join(" ".join(marked).split())


def _is_open(line: str) -> bool:
    return line[-1].isalnum() or (line[-1] in "\"')%°" and not _ENDED.search(line))


def _close(text: str) -> str:
    return f"{text}." if _is_open(text) else text
