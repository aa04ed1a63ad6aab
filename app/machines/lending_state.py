"""What the owner of a helper sees of it, and the sentence for that."""

from __future__ import annotations

from dataclasses import dataclass

from app.sentence import Sentence, say


@dataclass(frozen=True, slots=True)
class LendingState:
    """What the owner of a helper sees."""

    main: str = ""
    """The name of the machine that is helped."""
    online: bool = False
    connecting: bool = True
    """For the first time since the start."""
    paused: bool = False
    """By the owner, while work of his own waits or runs, until the engine is ready, or while the disk is full."""
    doing: str = ""
    """The prompt or script of the task that runs now."""
    done: int = 0
    """Tasks finished since the start."""
    said: Sentence | None = None
    """Why it is not online."""
    removed: bool = False
    """By the main machine: only a new code helps."""
    fetching: str = ""
    """The title of the model that is fetched for the other machine."""
    fetched: float = 0.0
    """Share of that."""
    lacked: Sentence | None = None
    """Why the last one did not come."""


def describe_state(state: LendingState) -> Sentence:
    """Say what this computer does for the other one."""
    if state.said is not None:
        return state.said
    if state.connecting:
        return say("lend.connecting", "Connecting to {name}.", name=state.main)
    if not state.online:
        return say("lend.offline", "{name} cannot be reached now. This computer keeps trying.", name=state.main)
    if state.doing:
        return say("lend.doing", "Working for {name}: {words}", name=state.main, words=" ".join(state.doing.split())[:80])
    if state.fetching:
        return say(
            "lend.fetching",
            "Fetching {model} for {name}: {percent} %",
            model=state.fetching,
            name=state.main,
            percent=int(100 * state.fetched),
        )
    if state.paused:
        return say(
            "lend.paused", "Not helping now: paused, or this computer's own work goes first, its engine is starting, or its disk is full."
        )
    return say("lend.ready", "Ready to help {name}.", name=state.main)
