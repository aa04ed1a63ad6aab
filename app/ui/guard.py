"""Who may do what. The owner sits at this machine; whoever comes through a share link is a visitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    owner: bool


OWNER: Final = Person("owner", True)


def who(request: Any) -> Person:
    """Of a request of starlette's or Gradio's."""
    return OWNER
