"""What a person has to be told once, whatever they do next: something was damaged and mended. Kept until it is read."""

from __future__ import annotations

import logging
import threading

from app.base.sentence import Sentence

_lock = threading.Lock()
_notices: dict[str, Sentence] = {}
_log = logging.getLogger("hearth")


def tell(sentence: Sentence) -> None:
    """Add a notice to this process's list and to the log."""
    with _lock:
        _notices[str(sentence)] = sentence
    _log.warning("%s", sentence)


def list_notices() -> list[Sentence]:
    """List the notices, oldest first."""
    with _lock:
        return list(_notices.values())


def take_all() -> list[Sentence]:
    """Return the notices and forget them."""
    with _lock:
        taken = list(_notices.values())
        _notices.clear()
    return taken


def dismiss(english: str) -> None:
    """Forget the notice that a person has read."""
    with _lock:
        _notices.pop(english, None)
