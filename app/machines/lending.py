"""Lend this machine: its machines process keeps in touch with the main machine, its keeper's engine does the tasks when nothing of its own
waits, and its owner is told how that goes."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import is_lent
from app.engine.keeper.keeper import Keeper
from app.engine.models.downloads import LINE_WAIT_S, Downloads
from app.machines import lent_tasks
from app.machines.joining.join import find_membership, leave, name_url
from app.machines.joining.versions import find_difference, parse_versions, read_versions
from app.machines.lent_tasks import LentTasks
from app.machines.pipe import Message
from app.machines.side_process import HELPER, SideProcess
from app.machines.wanted_models import Fetching, WantedModels

TICK_S: Final = 0.2
FACTS_S: Final = 5.0
"""The main machine is told so often what is here."""
TIDY_S: Final = 3600.0
"""What its tasks brought, and no longer need, is deleted so often."""
AGAIN_S: Final = 2.0
REFUSED_AGAIN_S: Final = 60.0
"""A machines process that died is started again after the first wait, and one that was refused after the second."""


_log = logging.getLogger("hearth.machines")


def lending_folder(home: Home) -> Path:
    return home.root / "machines" / "lending"


class Lending:
    def __init__(
        self,
        keeper: Keeper,
        changed: Callable[[LendingState], None] = lambda state: None,
        paused: bool = False,
        fetches: bool = False,
        downloads: Downloads | None = None,
    ) -> None:
        """Raise Trouble if this machine is not paired, or is lent by another program already. `changed` is called in a thread of its
        own. `paused`: by the owner, and `fetches`: he lets it fetch the models that the other machine uses. `downloads`: the window's."""
        found = find_membership(lending_folder(keeper.home))
        if found is None:
            raise Trouble(say("machines.not-paired", "This computer helps no other one yet. Give the code that the other computer shows."))
        self._keeper, self._changed, self._membership = keeper, changed, found[0]
        self._alone = FileLock(lending_folder(keeper.home).with_name("lending.lock"), thread_local=False)
        try:
            self._alone.acquire(timeout=0)
        except Timeout as taken:
            raise Trouble(
                say("machines.lent-already", "Another window or command of this computer already helps. Close it first.")
            ) from taken
        self._lock = threading.RLock()
        self.state = LendingState(self._membership.name)
        self._by_owner = paused
        self._again_s: float | None = AGAIN_S
        self._models = WantedModels(keeper, downloads or Downloads(keeper.home, line_wait_s=LINE_WAIT_S), self._tell, fetches)
        self._tasks = LentTasks(keeper, self._models.find, self._note_task)
        self._closing = threading.Event()
        self._tidied_s = -math.inf
        self._side = SideProcess(HELPER, self._describe_place, keeper.home.logs / "machines.log", self._hear, self._side_ended)
        self._thread = threading.Thread(target=self._watch, name="lending", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Of the machines process."""
        return self._side.pid

    def pause(self, paused: bool) -> None:
        """Give the task back that runs, and take none until told so."""
        self._by_owner = paused
        if paused:
            self._models.stop()
        self._apply_pause()

    def let_fetch(self, fetches: bool) -> None:
        """Let the other machine have this one fetch the models that it uses, or no longer."""
        self._models.allowed = fetches
        if not fetches:
            self._models.stop()
        self._send_facts()

    @property
    def fetches(self) -> bool:
        return self._models.allowed

    def close(self) -> None:
        """End lending for now; the pairing stays."""
        self._closing.set()
        self._thread.join()
        self._models.stop()
        self._side.close()
        self._alone.release()

    def end(self) -> None:
        """End lending, and forget the other machine with all that it brought."""
        self._send_facts(left=True)
        self.close()
        self._forget()

    def _forget(self) -> None:
        leave(lending_folder(self._keeper.home))
        threading.Thread(target=self._tasks.forget_all, name="forget", daemon=True).start()

    def _describe_place(self) -> Message:
        """Say where the main machine is, and what of it is here."""
        folder = lending_folder(self._keeper.home)
        found = find_membership(folder)
        member = found[0] if found is not None else self._membership  # it may have moved since
        return {"folder": str(folder), "main": name_url(member.host, member.port), "scratch": str(self._keeper.home.scratch / "machines")}

    @property
    def paused_by_owner(self) -> bool:
        return self._by_owner

    def _side_ended(self) -> float | None:
        self._tasks.stop_all()
        self._models.lose()
        self._set(online=False)
        return self._again_s

    def _watch(self) -> None:
        """Let the owner's own work go first, and tell the main machine what is here."""
        waited_s = FACTS_S
        while not self._closing.wait(TICK_S):
            try:
                if time.monotonic() - self._tidied_s > TIDY_S:
                    self._tidied_s = time.monotonic()
                    lent_tasks.tidy(self._keeper.home)
                self._apply_pause()
                waited_s += TICK_S
                if self._note_fetching() or (waited_s >= FACTS_S and self.state.online):
                    waited_s = 0.0
                    self._send_facts()
            except Exception:  # a full disk, a locked database, whatever it is: the main machine would hear nothing any more
                _log.exception("lending")

    def _apply_pause(self) -> None:
        state = self._keeper.state
        own = self._keeper.journal.has_live() or (bool(state.job) and not is_lent(state.job))
        before, pause = self.state.paused, explain_pause(self._by_owner, own, state.obstacle or state.paused, state.ready)
        if pause != self.state.pause:
            self._set(pause=pause)
        if self.state.paused != before:
            self._tell("pause", paused=self.state.paused)
            self._send_facts()

    def _hear(self, message: Message) -> None:
        match message["op"]:
            case "online":
                self._again_s = AGAIN_S
                self._set(online=True, connecting=False, said=None)
                self._tell("pause", paused=self.state.paused)
                self._send_facts()
            case "offline":
                self._set(online=False, connecting=False)
            case "refused":
                said = self._describe_refusal(message)
                self._set(online=False, connecting=False, said=said, removed=self._again_s is None)
            case "ask":
                threading.Thread(target=self._answer, args=(message["question"], message["body"]), daemon=True).start()
            case "want" if not self._by_owner:
                threading.Thread(target=self._models.want, args=(message["body"],), daemon=True).start()
            case "model-step" | "model-here" | "model-lost":
                self._models.hear(message)
            case "run":
                self._tasks.begin(message["id"], message["body"], self._tell)
            case "stop":
                self._tasks.stop(message["id"], message["unwanted"])
            case "delivered":
                self._tasks.clear(message["id"])

    def _note_task(self, request: Request, end: Event | None) -> None:
        """Show what is done for the other machine."""
        if end is None:
            self._set(doing=request.words)
        else:
            self._set(doing="", done=self.state.done + isinstance(end, Finished))

    def _describe_refusal(self, message: Message) -> Sentence | None:
        """Only a machine that was removed forgets the other one. What else it answers may be another version's, and is asked again."""
        reason = message.get("reason")
        if reason != "removed":
            self._again_s = REFUSED_AGAIN_S
            return find_difference(parse_versions(message.get("versions")), read_versions()) if reason == "versions" else None
        self._again_s = None
        self._forget()
        return say(
            "machines.removed", "{name} no longer uses this computer. Pair them again with a new code if it should.", name=self.state.main
        )

    def _answer(self, question: str, body: str) -> None:
        self._tell("answer", question=question, answer=self._tasks.foresight.answer(body))

    def _send_facts(self, left: bool = False) -> None:
        """Tell the main machine what it may know of this one: its card, its memory, and the models that are here. `left`: it does not come
        back."""
        state, fetching = self._keeper.state, self._models.fetching
        facts = {
            "card": state.hardware.name if state.hardware else "",
            "free_bytes": state.hardware.free_bytes if state.hardware else 0,
            "models": self._models.list_names(),
            "paused": self.state.paused,
            "fetches": self._models.allowed and not self._by_owner,
            "fetching": fetching.name if fetching.under_way else "",
            "fetched": fetching.share,
            "lack": fetching.lack,
            "left": left,
        }
        self._tell("facts", facts=facts)

    def _note_fetching(self) -> bool:
        """Show how far a model is; tell whether it has come or not come, which the main machine waits for."""
        now, before = self._models.fetching, self.state.fetching
        if replace(now, done_bytes=0) != replace(before, done_bytes=0) or round(now.share, 2) != round(before.share, 2):
            self._set(fetching=now)
        return (now.under_way, now.title) != (before.under_way, before.title)

    def _tell(self, op: str, **values: Any) -> None:
        self._side.tell(op, **values)

    def _set(self, **changes: Any) -> None:
        with self._lock:
            self.state = replace(self.state, **changes)
        self._changed(self.state)


@dataclass(frozen=True, slots=True)
class LendingState:
    """What the owner of a helper sees."""

    main: str = ""
    """The machine that is helped has this name."""
    online: bool = False
    connecting: bool = True
    """True: it connects for the first time since the start."""
    pause: Sentence | None = None
    """It says why nothing is done for the other machine."""
    doing: str = ""
    """The task that runs now has this prompt or script."""
    done: int = 0
    """So many tasks were finished since the start."""
    said: Sentence | None = None
    """It says why it is not online."""
    removed: bool = False
    """True: the main machine removed it, so that only a new code helps."""
    fetching: Fetching = field(default_factory=Fetching)
    """It is the model that is fetched for the other machine, or was last."""

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
    if state.fetching.under_way:
        return say(
            "lend.fetching",
            "Fetching {model} for {name}: {percent} %",
            model=state.fetching.title,
            name=state.main,
            percent=int(100 * state.fetching.share),
        )
    if state.pause is not None:
        return state.pause
    return say("lend.ready", "Ready to help {name}.", name=state.main)
