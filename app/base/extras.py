"""What Hearth can do without: each extra with its size and licence, whether it is there, and the command that adds it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.base.sentence import Sentence, say
from app.base.start_command import START, name_command
from app.base.trouble import Trouble

MACHINES: Final = ("dask", "distributed", "cryptography", "zeroconf")
"""Several machines need these modules of their extra."""


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of pyproject.toml; `modules` are there where it is."""

    name: str
    title: Sentence
    why: Sentence
    bytes: int
    """So many are to download, as measured on Linux for the versions of constraints.txt."""
    licence: str
    modules: tuple[str, ...]

    @property
    def is_here(self) -> bool:
        return all(find_spec(each) is not None for each in self.modules)


EXTRAS: Final = (
    Extra(
        "machines", say("extra.machines", "Several machines"), say("extra.machines-why", "Other computers that you trust help this one."),
        10_000_000, "BSD, Apache-2.0, LGPL (zeroconf)", MACHINES,
    ),
    Extra(
        "aac", say("extra.aac", "AAC and audiobooks"), say("extra.aac-why", "Speech as AAC and M4B with chapters, as players and phones like it."),
        36_000_000, "BSD (PyAV), LGPL and GPL (FFmpeg)", ("av",),
    ),
    Extra(
        "quantised", say("extra.quantised", "Weights in fewer bits"),
        say("extra.quantised-why", "Larger models in less memory, made smaller while they are loaded; GGUF files do not need this."),
        47_000_000, "BSD (torchao), MIT (bitsandbytes)", ("torchao", "bitsandbytes"),
    ),
    Extra(
        "mcp", say("extra.mcp", "Assistants"), say("extra.mcp-why", "Assistants on this computer, such as Claude, speak and paint through MCP."),
        1_000_000, "MIT", ("mcp",),
    ),
    Extra("pdf", say("extra.pdf", "Books in PDF"), say("extra.pdf-why", "Speak opens PDF files too."), 400_000, "BSD", ("pypdf",)),
    Extra(
        "keyring", say("extra.keyring", "The system's keyring"), say("extra.keyring-why", "The access token for gated models is kept there."),
        200_000, "MIT", ("keyring",),
    ),
)  # fmt: skip
"""A person may add all of these: those of pyproject.toml, but for the tests' and the window's, which comes by itself."""


def can_add() -> bool:
    """Tell whether start.py made this environment, and so can make another one with more in it."""
    return START.is_file() and (Path(sys.prefix) / "hearth.json").is_file()


def install_command(extra: str) -> str:
    """In an environment of start.py's own, `add` also keeps it over updates and repairs."""
    if can_add():
        return f"{name_command()} add {extra}"
    return f'"{sys.executable}" -m pip install "hearth[{extra}]"'


def has_machines() -> bool:
    """Tell whether the extra for several machines is there, without importing it."""
    return all(find_spec(each) is not None for each in MACHINES)


def require_machines() -> None:
    if not has_machines():
        raise Trouble(
            say(
                "machines.extra",
                "Several computers together need an extra. Add it on the Machine tab, or by: {command}",
                command=install_command("machines"),
            ),
            cure="extras",
        )
