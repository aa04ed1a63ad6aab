"""What argparse says by itself, in the terminal's language, and how it lays out a command's help, which may be Chinese."""

from __future__ import annotations

import argparse
import re
from typing import Final

from app.base.languages import in_terminal
from app.base.sentence import Sentence, say
from app.base.terminal_lines import wrap

OWN_WORDS: Final = {
    each.english: each
    for each in (
        say("argparse.usage", "usage: "),
        say("argparse.positional", "positional arguments"),
        say("argparse.options", "options"),
        say("argparse.help", "show this help message and exit"),
        say("argparse.argument", "argument %(argument_name)s: %(message)s"),
        say("argparse.required", "the following arguments are required: %s"),
        say("argparse.excluded", "not allowed with argument %s"),
        say("argparse.ambiguous", "ambiguous option: %(option)s could match %(matches)s"),
        say("argparse.no-value", "ignored explicit argument %r"),
    )
}
"""What else argparse may say, Hearth's parser says otherwise (`Parser`), or only to who writes one."""


def translate_argparse() -> None:
    """Let argparse find its words in Hearth's table: the name by which its module calls gettext is its one hook."""
    vars(argparse)["_"] = lambda words: in_terminal(OWN_WORDS[words]) if words in OWN_WORDS else words


class HelpLines(argparse.HelpFormatter):
    """Breaks lines by the places that they take in a terminal, and keeps those of an epilog."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(row for line in text.splitlines() for row in wrap(line, width, indent, indent + hang(line)))


def hang(line: str) -> str:
    """Return the indent of a row's later lines: below what stands behind the first word of one that begins with blanks."""
    behind = re.match(r" +\S+ +", line)
    return " " * len(behind[0]) if behind else ""


def describe(what: Sentence) -> str:
    """Make a whole sentence of what a command does."""
    words = in_terminal(say("usage.described", "{what}.", what=what))
    return words[0].upper() + words[1:]
