"""Word a duration: the one way in which Hearth writes lengths of time. The page's is time() in words.js; a test compares them."""

from __future__ import annotations

from app.base.sentence import Sentence, say_to_all


def word_duration(seconds: float, exact: bool = False) -> Sentence:
    """Word seconds in the two largest units that still tell something. `exact`: measured, so that tenths count below 10 s;
    a guess is told to ten seconds from a minute on."""
    tenths, whole, minutes, hours = (int(max(0.0, seconds) / unit + 0.5) for unit in (0.1, 1, 60, 3600))
    if exact and tenths < 100:
        return say_to_all("time.seconds", "{s} s", s=tenths / 10)
    if whole < 60:
        return say_to_all("time.seconds", "{s} s", s=max(1, whole))
    if not exact:
        whole = 10 * int(seconds / 10 + 0.5)
    if whole < 600 and whole % 60:
        return say_to_all("time.minutes-seconds", "{m} min {s} s", m=whole // 60, s=whole % 60)
    if minutes < 60:
        return say_to_all("time.minutes", "{m} min", m=minutes)
    if minutes < 600 and minutes % 60:
        return say_to_all("time.hours-minutes", "{h} h {m} min", h=minutes // 60, m=minutes % 60)
    return say_to_all("time.hours", "{h} h", h=hours)
