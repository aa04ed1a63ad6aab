"""What the owner of a helper sees of it, and the sentence for that."""

from __future__ import annotations

from dataclasses import dataclass

from app.base.sentence import Sentence, say


@dataclass(frozen=True, slots=True)
class LendingState:
    """What the owner of a helper sees."""

    main: str = ""
    """The name of the machine that is helped."""
    online: bool = False
    connecting: bool = True
    """For the first time since the start."""
    pause: Sentence | None = None
    """Why it does nothing for the other machine."""
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

    @property
    def paused(self) -> bool:
        return self.pause is not None


def explain_pause(by_owner: bool, own_work: bool, obstacle: Sentence | None, ready: bool) -> Sentence | None:
    """Say why this computer does nothing for the other one now; None if it may. `obstacle`: what keeps its engine from all work."""
    if by_owner:
        return say("lend.paused", "Not helping now: paused on this computer.")
    if own_work:
        return say("lend.own-work", "Not helping now: this computer's own work goes first.")
    if obstacle is not None:
        return say("lend.obstacle", "Not helping now: {reason}", reason=obstacle)
    return None if ready else say("lend.starting", "Not helping yet: the engine is starting.")


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
    if state.pause is not None:
        return state.pause
    return say("lend.ready", "Ready to help {name}.", name=state.main)
