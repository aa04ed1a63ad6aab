"""Several machines, on the Machine tab: the view of those that help and of the one that is helped, and what its buttons do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.extras import can_add, has_machines, install_command
from app.base.sentence import Sentence, say
from app.ui.page.qr import draw_qr
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.live import CodeView, HelperView, LendingView, MachinesView, NearbyView, UsingView
from app.ui.page.views import step_rate
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import act_route
from app.ui.state.other_machines import OtherMachines

if TYPE_CHECKING:
    from app.machines.helping_machine import HelpingMachine
    from app.machines.hub import Hub
    from app.machines.lending import Lending

WORDS_SHOWN: Final = 80


class MachineAsked(Asked):
    act: Word
    id: Word = ""
    code: Word = ""


def routes(desk: Desk) -> list[Route]:
    return [act_route(desk, "/hearth/machines/{act}", ACTIONS, MachineAsked, send_view)]


def send_view(desk: Desk, request: Request) -> Response:
    return JSONResponse({"machines": machines_view(desk.others, language(request))}, headers={"Cache-Control": "no-store"})


ACTIONS: Final[Mapping[str, Callable[[Desk, MachineAsked], None]]] = {
    "use": lambda desk, _: desk.others.use(),
    "use-not": lambda desk, _: desk.others.use_no_more(),
    "show-code": lambda desk, _: desk.others.show_code(),
    "withdraw-code": lambda desk, _: desk.others.withdraw_code(),
    "rest": lambda desk, asked: desk.others.let_rest(asked.id, True),
    "work": lambda desk, asked: desk.others.let_rest(asked.id, False),
    "remove": lambda desk, asked: desk.others.remove(asked.id),
    "lend": lambda desk, asked: desk.others.lend(asked.code),
    "pause": lambda desk, _: desk.others.pause(True),
    "help-on": lambda desk, _: desk.others.pause(False),
    "fetch": lambda desk, _: desk.others.let_fetch(True),
    "fetch-not": lambda desk, _: desk.others.let_fetch(False),
    "be-seen": lambda desk, _: desk.others.be_seen(True),
    "be-seen-not": lambda desk, _: desk.others.be_seen(False),
    "lend-not": lambda desk, _: desk.others.lend_no_more(),
}


LACKS: Final[Mapping[str, Sentence]] = {
    "no-room": say("helper.no-room", "has no room for the model"),
    "failed": say("helper.not-fetched", "could not fetch the model"),
}


def machines_view(others: OtherMachines, spoken: Language) -> MachinesView:
    """Show both sides; of an extra that is missing, only how to add it."""
    if not has_machines():
        return {"command": install_command("machines"), "adds": can_add()}
    hub, lending = others.hub, others.lending
    return {
        "starting": others.starting,
        "said": translate(others.said, spoken) if others.said is not None else "",
        "nearby": nearby_view(others),
        "using": using_view(hub, others, spoken) if hub is not None else None,
        "lending": lending_view(lending, spoken) if lending is not None else None,
    }


def nearby_view(others: OtherMachines) -> NearbyView:
    """Show what others in this network announce: who would lend, and where a code is taken; the code has to be typed all the same."""
    near, uses = others.nearby, others.hub is not None
    mains = [each for each in near.list_seen("main") if each.announced.pairing_port] if near is not None and not uses else []
    return {
        "seen": near is not None and not uses,
        "lend": sorted({each.announced.name for each in near.list_seen("lends")}) if near is not None and uses else [],
        "mains": [{"name": each.announced.name, "address": f"{each.hosts[0]}:{each.announced.pairing_port}/"} for each in mains],
    }


def using_view(hub: Hub, others: OtherMachines, spoken: Language) -> UsingView:
    """Show the machines that help, and the code for one more."""
    pairing = hub.pairing
    state = pairing.state if pairing is not None else None
    code: CodeView | None = None
    if state is not None and state.code is not None:
        words = str(state.code)
        code = {"text": words, "qr": draw_qr(f"hearth://{words}"), "left_s": max(0.0, state.until_s - time.monotonic())}
    machines = tell_apart(hub.list_machines())
    return {
        "code": code,
        "said": translate(state.said, spoken) if state is not None and state.said is not None else "",
        "machines": [machine_view(each, others.name_model(each.fetching), others.explain_unused(each), spoken) for each in machines],
    }


def tell_apart(machines: Sequence[HelpingMachine]) -> list[HelpingMachine]:
    """Add to names that several machines have how their ids begin, as `machines remove` takes them."""
    named = Counter(each.name for each in machines)
    return [replace(each, name=f"{each.name} ({each.id[:8]})") if named[each.name] > 1 else each for each in machines]


def machine_view(machine: HelpingMachine, fetched: str, unused: Sentence | None, spoken: Language) -> HelperView:
    """`fetched`: the title of the model that it fetches. `unused`: why it has nothing of what runs or waits here."""
    memory = f"{translate(round(machine.free_bytes / (1 << 30), 1), spoken)} GB" if machine.free_bytes else ""
    speed = step_rate(machine.step, spoken) if machine.step is not None else ""
    waiting = max(0, len(machine.tasks) - 1)
    queue = translate(say("helper.queue", "{count} {count:task|tasks} waiting there", count=waiting), spoken) if waiting else ""
    return {
        "id": machine.id,
        "name": machine.name,
        "online": machine.online,
        "resting": machine.resting,
        "cluster": machine.cluster,
        "level": "right" if machine.online and not (machine.resting or machine.paused) else "",
        "doing": translate(describe_work(machine, fetched), spoken),
        "facts": [each for each in (machine.card, memory, speed, queue) if each],
        "done": machine.done,
        "why": " · ".join(
            translate(each, spoken) for each in (machine.why, unused, LACKS.get(machine.lack), machine.failed) if each is not None
        ),
    }


def describe_work(machine: HelpingMachine, fetched: str) -> Sentence:
    """Say what a machine that may help does now."""
    if machine.left:
        return say("helper.left", "has stopped helping; a new code lets it help again")
    if not machine.online:
        return say("helper.offline", "not reachable now")
    if machine.doing:
        return say("helper.doing", "working on: {words}", words=" ".join(machine.doing.split())[:WORDS_SHOWN])
    if machine.fetching and fetched:
        return say("helper.fetching", "fetching {model}: {percent} %", model=fetched, percent=int(100 * machine.fetched))
    if machine.resting:
        return say("helper.resting", "gets no work")
    if machine.paused:
        return say("helper.paused", "busy with its owner's work, or paused there")
    return say("helper.ready", "ready")


def describe_elsewhere(others: OtherMachines) -> Sentence | None:
    """Say, for the strip, which other machines are at work at what; None if none is."""
    machines = tell_apart(others.hub.list_machines()) if others.hub is not None else []
    at_work = [each for each in machines if each.online and each.doing]
    words = " · ".join(dict.fromkeys(" ".join(each.doing.split()) for each in at_work))[:WORDS_SHOWN]
    names, count = tuple(each.name for each in at_work), len(at_work)
    return say("strip.elsewhere", "{names} {count:is|are} working on: {words}", names=names, count=count, words=words) if at_work else None


def lending_view(lending: Lending, spoken: Language) -> LendingView:
    """Show its owner what this machine does for another one."""
    from app.machines.lending import describe_state

    state = lending.state
    return {
        "main": state.main,
        "doing": translate(describe_state(state), spoken),
        "paused": lending.paused_by_owner,
        "removed": state.removed,
        "fetches": lending.fetches,
        "lacked": translate(state.fetching.said, spoken) if state.fetching.said is not None else "",
        "done": state.done,
    }
