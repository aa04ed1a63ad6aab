"""Who sends a request: the owner, a guest by name, or nobody. app/ui/access lets people in."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "hearth.person"
"""A request's scope has its Person there."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    owner: bool


OWNER: Final = Person("owner", True)
NOBODY: Final = Person("nobody", False)


def who(request: Any) -> Person:
    """Return whom the middleware let in, from a request of starlette's or Gradio's; without middleware, nobody."""
    return who_in(getattr(getattr(request, "request", request), "scope", {}))


def who_in(scope: MutableMapping[str, Any]) -> Person:
    person = scope.get(KEY)
    return person if isinstance(person, Person) else NOBODY
