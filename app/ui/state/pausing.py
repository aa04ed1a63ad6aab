"""When jobs run: the owner pauses them, now or until a time, or lets them run at certain hours, or while nobody uses this computer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from app.base.idle import is_on_battery, measure_idle_s
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.ui.state.settings_schema import PauseValues

if TYPE_CHECKING:
    from app.engine.keeper.keeper import Keeper
    from app.ui.state.settings import Settings

SAVED: Final = "pause"
AWAY_S: Final = 300.0
"""Whoever has touched nothing for so long is away."""
LOOK_S: Final = 10.0
"""So long passes between two looks at the battery and at who is here."""


def find_reason(rules: PauseValues, now: datetime, idle_s: float | None = None, on_battery: bool = False) -> Sentence | None:
    """Say why no job may run now; None: they may. `idle_s`: None where the system does not tell."""
    until_s = rules.get("until_s")
    if rules.get("held") and (until_s is None or now.timestamp() < until_s):
        if until_s is None:
            return say("pause.held", "Paused: the card and its memory are free. Jobs go on where they were.")
        return say(
            "pause.until", "Paused until {time}: the card and its memory are free.", time=word_clock(datetime.fromtimestamp(until_s))
        )
    if rules.get("plugged") and on_battery:
        return say("pause.plugged", "Paused until this computer is plugged in.")
    hours = rules.get("hours")
    if hours is not None and not is_within(now.hour * 60 + now.minute, *hours):
        return say("pause.hours", "Jobs run from {begin} to {end}.", begin=word_minutes(hours[0]), end=word_minutes(hours[1]))
    if rules.get("away") and idle_s is not None and idle_s < AWAY_S:
        return say("pause.away", "Jobs run once nobody has used this computer for five minutes.")
    return None


def is_within(minute: int, begin: int, end: int) -> bool:
    """Tell whether a minute of the day lies between two; the end may be on the next day. Twice the same is the whole day."""
    return begin == end or (begin <= minute < end if begin < end else minute >= begin or minute < end)


def next_time(minute: int, now: datetime) -> float:
    """Return when it is this minute of a day the next time."""
    then = now.replace(hour=minute // 60, minute=minute % 60, second=0, microsecond=0)
    return (then if then > now else then + timedelta(days=1)).timestamp()


def word_minutes(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def word_clock(then: datetime) -> str:
    return word_minutes(then.hour * 60 + then.minute)


def parse_clock(words: str) -> int:
    """Return the minute of the day that "07:00" is; raise a Trouble for what is none."""
    hour, _, minute = words.partition(":")
    if not (hour.isascii() and hour.isdigit() and minute.isascii() and minute.isdigit() and int(hour) < 24 and int(minute) < 60):
        raise Trouble(say("pause.no-time", "{words} is no time of day. Write it like 07:00.", words=words[:20] or "''"))
    return 60 * int(hour) + int(minute)


@dataclass(slots=True)
class Pausing:
    """Holds the keeper to the owner's rules, which survive a restart. `look` is called again and again, by any thread."""

    keeper: Keeper
    settings: Settings
    idle: Callable[[], float | None] = measure_idle_s
    battery: Callable[[], bool] = is_on_battery
    on_battery: bool = False
    asks: bool = False
    """True: the owner is to be asked, as work runs on the battery."""
    _answered: bool = False
    """True: the owner has answered for this time without power."""
    _anyway: bool = False
    """True: work goes on against the rules until the queue is empty."""
    _idle_s: float | None = None
    _looked_s: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def rules(self) -> PauseValues:
        found: PauseValues = self.settings.get(SAVED, {})
        return found

    def look(self) -> None:
        """Pause the keeper or let it go on, as the rules say now."""
        with self._lock:
            self._measure()
            work = self.keeper.journal.has_live()
            self._anyway &= work
            if not self.on_battery:
                self._answered = False
            self.asks = self.on_battery and work and not self._answered and not self.rules.get("plugged")
            held = bool(self.rules.get("held"))
            reason = find_reason(self.rules, datetime.now(), self._idle_s, self.on_battery)
            self.keeper.pause(None if self._anyway and not held else reason)

    def _measure(self) -> None:
        if time.monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = time.monotonic()
        self.on_battery = self.battery()
        self._idle_s = self.idle() if self.rules.get("away") else None

    def can_tell_away(self) -> bool:
        return self.idle() is not None

    def hold(self, until: str = "") -> None:
        """Pause now, until a time of day or until `go_on`."""
        self._anyway = False
        self._change({"held": True, "until_s": next_time(parse_clock(until), datetime.now()) if until else None})

    def go_on(self) -> None:
        """Let jobs run now; rules that speak against it count again once the queue is empty."""
        self._anyway = True
        self._change({"held": False, "until_s": None})

    def plan(self, when: str, begin: str, end: str) -> None:
        """Let jobs run at any time, within hours, or while nobody is here."""
        if when == "away" and not self.can_tell_away():
            raise Trouble(
                say("pause.not-told", "This system does not tell Hearth whether somebody uses the computer. Choose hours instead.")
            )
        self._anyway, self._looked_s = False, float("-inf")
        self._change({"hours": (parse_clock(begin), parse_clock(end)) if when == "hours" else None, "away": when == "away"})

    def answer_battery(self, wait: bool) -> None:
        """Wait for power, now and from now on, or go on this time."""
        self._answered = True
        self._change({"plugged": wait})

    def _change(self, rules: PauseValues) -> None:
        self.settings.change(SAVED, {}, lambda saved: {**saved, **rules})
        self.look()
