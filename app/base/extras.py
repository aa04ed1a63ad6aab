"""How a person adds what Hearth can do without: the one command for the way in which Hearth came; and whether it is there."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.base.commands import START, name_command
from app.base.sentence import say
from app.base.trouble import Trouble

MACHINES: Final = ("dask", "distributed", "cryptography", "zeroconf")
"""What several machines need of their extra."""


def install_command(extra: str) -> str:
    """In an environment of start.py's own, `add` also keeps it over updates and repairs."""
    if START.is_file() and (Path(sys.prefix) / "hearth.json").is_file():
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
                "Several computers together need an extra. Install it with: {command}",
                command=install_command("machines"),
            )
        )
