"""Whom a request comes from: the owner, a visitor by name, or nobody. What lets a person in stands in app/ui/access."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "hearth.person"
"""Where a request's scope says it."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    owner: bool


OWNER: Final = Person("owner", True)
NOBODY: Final = Person("nobody", False)


def who(request: Any) -> Person:
    """Of a request of starlette's or Gradio's: whom the middleware let in. A server without one serves nobody."""
    return who_in(getattr(getattr(request, "request", request), "scope", {}))


def who_in(scope: MutableMapping[str, Any]) -> Person:
    person = scope.get(KEY)
    return person if isinstance(person, Person) else NOBODY
