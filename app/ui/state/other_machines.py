"""Other machines, as the window switches them: those that help this one, and the one that this one helps. Imports app.machines only where one is on."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from app.base.disk_faults import word_fault
from app.base.extras import require_machines
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Step
from app.engine.jobs.request import Request
from app.engine.keeper.keeper import Keeper
from app.engine.models.downloads import Downloads
from app.ui.state.settings import Settings

if TYPE_CHECKING:
    from app.machines.helping_machine import HelpingMachine
    from app.machines.hub import Hub
    from app.machines.lending import Lending
    from app.machines.nearby import Nearby
    from app.machines.spreader import Spreader

SAVED: Final = "machines"
"""The settings hold `uses`, `lends`, `paused`, `fetches` and `seen` under it."""
LARGER: Final = say(
    "owner.larger", 'Another computer of yours that has more memory can do it: choose "Use other computers" on the Machine tab.'
)
_log = logging.getLogger("hearth.machines")


class OtherMachines:
    """Any thread may call. What switches takes seconds, and one waits for the other; reading never waits."""

    def __init__(self, keeper: Keeper, settings: Settings, downloads: Downloads | None = None) -> None:
        """`downloads`: where the models show that this machine fetches for another one."""
        self._keeper, self._settings, self._switching, self._downloads = keeper, settings, threading.Lock(), downloads
        self.spreader: Spreader | None = None
        self._closing = False
        """True: nothing is switched on any more."""
        self.hub: Hub | None = None
        """None: no other machines are used."""
        self.lending: Lending | None = None
        """None: this machine does not help."""
        self.nearby: Nearby | None = None
        """It is there while this machine is seen in its network: as one that uses others, or as one that would lend."""
        self.starting = False
        """True: what was on is about to be on again."""
        self.said: Sentence | None = None
        """If something was not switched on again, it says why."""

    def resume(self) -> None:
        """Switch on what was on when the window was closed, in the background."""
        kept = self._read()
        if kept.get("uses") or kept.get("lends") or kept.get("seen"):
            self.starting = True
            threading.Thread(target=self._resume, args=(kept,), name="machines", daemon=True).start()

    def _resume(self, kept: dict[str, Any]) -> None:
        wanted: list[Callable[[], None]] = [self._start_hub] if kept.get("uses") else []
        wanted += [lambda: self._start_lending(kept.get("paused", False))] if kept.get("lends") else []
        wanted += [self._look_around] if kept.get("seen") else []
        for start in wanted:
            try:
                require_machines()
                with self._switching:
                    start()
            except Trouble as trouble:
                self.said = trouble.sentence
            except OSError as fault:  # a full disk, say; the switch is there to try again
                _log.exception("other machines")
                self.said = say("machines.not-resumed", "Not switched on again: {fault}. Try the switch.", fault=word_fault(fault))
        self.starting = False

    def close(self) -> None:
        """Leave everything for now; the next window goes on."""
        self._closing = True
        with self._switching:
            self._stop_hub(goes_on=True)
            self._stop_lending()
            self._look_away()

    # The machines that help this one.

    def use(self) -> None:
        """Let other machines help; from now on this one listens for those that were let in."""
        require_machines()
        with self._switching:
            self._start_hub()
        self._keep(uses=True)

    def use_no_more(self) -> None:
        with self._switching:
            self._stop_hub()
        self._keep(uses=False)

    def show_code(self) -> None:
        """Make a code for one more machine."""
        if self.hub is not None:
            self.hub.open_pairing()

    def withdraw_code(self) -> None:
        if self.hub is not None:
            self.hub.close_pairing()

    def let_rest(self, machine: str, resting: bool) -> None:
        if self.hub is not None:
            self.hub.let_rest(machine, resting)

    def remove(self, machine: str) -> None:
        if self.hub is not None:
            self.hub.remove(machine)

    def name_model(self, name: str) -> str:
        """Return what people call a model that machines know by this name."""
        return self.spreader.models.title(name) if self.spreader is not None and name else ""

    def explain_unused(self, machine: HelpingMachine) -> Sentence | None:
        """Say why a machine has nothing of what runs or waits here."""
        return machine.refused or (self.spreader.explain_unused(machine) if self.spreader is not None else None)

    def find_room(self, request: Request) -> str:
        """Return the name of a machine that has room for a request, waiting a moment for their answers; "" if none says so."""
        return self.spreader.find_room(request) if self.spreader is not None else ""

    @property
    def known(self) -> bool:
        """Whether a machine may help this one."""
        return self.hub is not None and bool(self.hub.list_machines())

    def estimate_left(self, job: str, step: Step) -> float | None:
        """Estimate how long a running job still takes."""
        return self.spreader.estimate_left(job, step) if self.spreader is not None else step.eta_s

    def _start_hub(self) -> None:
        from app.machines.hub import Hub
        from app.machines.spreader import Spreader

        if self.hub is None and not self._closing:
            self.hub = Hub(self._keeper.home)
            self.spreader = Spreader(self._keeper, self.hub).start()
            self._look_around()
            self._keeper.resume_lent_out()

    def _stop_hub(self, goes_on: bool = False) -> None:
        hub, self.hub = self.hub, None
        if self.spreader is not None:
            self.spreader.close(goes_on)
            self.spreader = None
        if hub is not None:
            self._look_away()
            hub.close()

    # The machine that this one helps.

    def lend(self, code: str) -> None:
        """Help the machine that shows this code, from now on and after each start."""
        require_machines()
        from app.machines.joining.code import parse_code
        from app.machines.joining.join import join
        from app.machines.lending import lending_folder

        parsed = parse_code(code)
        with self._switching:
            self._stop_lending()
            join(parsed, lending_folder(self._keeper.home), socket.gethostname())
            self._start_lending(paused=False)
            if self.hub is None:
                self._look_away()
        self._keep(lends=True, paused=False, seen=False)

    def be_seen(self, seen: bool) -> None:
        """Say in this network that this machine would lend, and see who uses others; or no longer."""
        require_machines()
        with self._switching:
            if self.hub is None:
                self._look_around() if seen else self._look_away()
        self._keep(seen=seen)

    def pause(self, paused: bool) -> None:
        if self.lending is not None:
            self.lending.pause(paused)
            self._keep(paused=paused)

    def let_fetch(self, fetches: bool) -> None:
        """Let this machine fetch the models that the other one uses, or no longer."""
        if self.lending is not None:
            self.lending.let_fetch(fetches)
            self._keep(fetches=fetches)

    def lend_no_more(self) -> None:
        """Help no more, and forget the other machine."""
        with self._switching:
            lending, self.lending = self.lending, None
            if lending is not None:
                lending.end()
            elif self._read().get("lends"):
                from app.machines import lent_tasks
                from app.machines.joining.join import leave
                from app.machines.lending import lending_folder

                leave(lending_folder(self._keeper.home))
                lent_tasks.clear(self._keeper.home)
        self._keep(lends=False, paused=False, fetches=False)

    def _start_lending(self, paused: bool) -> None:
        from app.machines.lending import Lending

        if self.lending is None and not self._closing:
            self.lending = Lending(self._keeper, paused=paused, fetches=self._read().get("fetches", False), downloads=self._downloads)

    def _stop_lending(self) -> None:
        lending, self.lending = self.lending, None
        if lending is not None:
            lending.close()

    def _look_around(self) -> None:
        """Be seen as what this machine is by now."""
        from app.machines.joining.register import clean_name
        from app.machines.nearby import Announcement, Nearby

        hub = self.hub
        if self._closing or (self.nearby is not None and hub is None):
            return
        self._look_away()
        self.nearby = Nearby(hub.describe if hub is not None else lambda: Announcement("lends", clean_name(socket.gethostname())))

    def _look_away(self) -> None:
        nearby, self.nearby = self.nearby, None
        if nearby is not None:
            nearby.close()

    def _read(self) -> dict[str, Any]:
        kept: dict[str, Any] = self._settings.get(SAVED, {})
        return kept

    def _keep(self, **changes: bool) -> None:
        self.said = None
        self._settings.change(SAVED, {}, lambda kept: {**kept, **changes})


def look_elsewhere(others: OtherMachines, request: Request) -> tuple[Sentence, ...]:
    """Say which machine has room for what is too large for this computer; where none is known, that one could help."""
    if not others.known:
        return (LARGER,)
    name = others.find_room(request)
    return (say("owner.has-room", "{name} has room for it.", name=name),) if name else ()
