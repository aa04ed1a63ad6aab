"""Wildcards: __name__ in a prompt stands for a line of wildcards/name.txt in the home, another one for each picture."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.regular_file import open_regular
from app.base.sentence import say
from app.base.trouble import Trouble

LINES_MOST: Final = 16
"""So many lines are drawn of a file for one job: as many as the pictures that it may have. In another file's line it is one."""
FILE_BYTES: Final = 1 << 20
DRAWN_MOST: Final = 500
"""A prompt may have so many wildcards, with those in their lines."""
_NAME: Final = re.compile(r"(?<![^\W_])__([^\W_](?:[\w-]|[/ ](?=[^\W_])){0,100}?)__(?![^\W_])")
"""A wildcard's file may lie in folders, as animals/cat; a dot leads to none above them."""


def put_lines(home: Home, prompt: str) -> str:
    """Return the prompt with lines drawn of their files in place of wildcards, as alternatives; raise a Trouble for one that is not there or that
    names itself."""
    return _Drawing(home).put(prompt, ())


@dataclass(slots=True)
class _Drawing:
    home: Home
    chance: random.Random = field(default_factory=random.SystemRandom)
    left: int = DRAWN_MOST

    def put(self, text: str, within: tuple[str, ...]) -> str:
        return _NAME.sub(lambda found: self._draw(found[1], within), text)

    def _draw(self, name: str, within: tuple[str, ...]) -> str:
        if name in within:
            raise Trouble(
                say(
                    "wildcard.itself",
                    "The wildcard {name} names itself: {way}. Remove that line from its file.",
                    name=name,
                    way=" > ".join((*within, name)),
                )
            )
        self.left -= 1
        if self.left < 0:
            raise Trouble(say("wildcard.many", "These wildcards name too many others. Use fewer of them."))
        lines = _read_lines(self.home, name)
        drawn = self.chance.sample(lines, min(1 if within else LINES_MOST, len(lines)))
        put = [self.put(line, (*within, name)) for line in drawn]
        return "{" + "|".join(put) + "}" if len(put) > 1 else put[0]


def _read_lines(home: Home, name: str) -> list[str]:
    """Return the lines of a file, without empty ones and remarks."""
    path = home.root / "wildcards" / f"{name}.txt"
    try:
        with open_regular(path) as file:
            text = file.read(FILE_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        text = ""
    lines = [line for each in text.splitlines() if (line := each.strip()) and not line.startswith("#")]
    if not lines:
        raise Trouble(
            say(
                "wildcard.missing",
                "There is no wildcard {name}, or its file is empty. Put a line for each choice into {path}.",
                name=name,
                path=str(Path("wildcards") / f"{name}.txt"),
            )
        )
    return lines
