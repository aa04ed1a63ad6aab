"""hearth machines list | add | use | remove"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from app.base import paths
from app.base.duration import word_duration
from app.base.extras import require_machines
from app.base.languages import word_help
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.cli.job import FAILED, FINISHED, print_answer
from app.cli.machine_options import add_home_option

if TYPE_CHECKING:
    from app.machines.joining.endpoint import Pairing
    from app.machines.joining.register import Machine

POLL_S: Final = 0.2
SEEN: Final = say("machines-add.window", 'See that "Use other computers" is on, on the Machine tab of the open window.')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=tuple(ACTIONS), help=word_help(say("usage.action", "by default list")))
    parser.add_argument(
        "machine",
        nargs="*",
        help=word_help(
            say("usage.machines-machine", "to remove: names or ids from the list; to use: a Dask scheduler, tls://node.example:8786")
        ),
    )
    for name, help_ in PEM.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=word_help(help_))
    add_home_option(parser)


def main(args: argparse.Namespace) -> int:
    require_machines()
    return ACTIONS[args.action](paths.home(args.home).create(), args)


def list_machines(home: Home, _: argparse.Namespace) -> int:
    """List who was let in; what each does now is known to the window only."""
    from app.machines.existing import find_cluster
    from app.machines.hub import main_folder
    from app.machines.joining.register import Register

    machines, cluster = Register(main_folder(home)).list_machines(), find_cluster(home)
    if cluster is not None:
        print_answer(say("machines-list.cluster", "{address}  a Dask cluster, whose workers may help", address=cluster.address))
    elif not machines:
        print_answer(say("machines-list.none", "No other computer may help this one. Add one: {hearth} machines add"))
    for each in machines:
        since = word_duration(max(0.0, time.time() - each.since_s))
        resting = say("machines-list.resting", "gets no work") if each.resting else say("machines-list.may", "may help")
        line = say(
            "machines-list.row", "{name}  {id}  {state}, added {time} ago", name=each.name, id=each.id[:8], state=resting, time=since
        )
        print_answer(line)
    return FINISHED


def add_machine(home: Home, _: argparse.Namespace) -> int:
    """Show a code, and wait until a machine has come with it."""
    from app.machines.hub import main_folder, reserve_port
    from app.machines.joining.certificates import make_main
    from app.machines.joining.endpoint import Pairing
    from app.machines.joining.register import Register

    folder = main_folder(home)
    make_main(folder)
    pairing = Pairing(folder, Register(folder), socket.gethostname(), reserve_port(folder))
    code = str(pairing.open())
    try:
        print_code(code)
        joined = wait(pairing)
    finally:
        pairing.close()
    if joined is not None:
        print_answer(switch_on(home))
    return FINISHED if joined is not None else FAILED


def print_code(code: str) -> None:
    import segno

    if sys.stdout.isatty():
        segno.make(f"hearth://{code}", error="m").terminal(compact=True)
    print(code, flush=True)
    print_answer(say("machines-add.how", "On the other computer, run in Hearth's folder: python3 start.py lend {code}", code=code))
    print_answer(say("machines-add.waits", "The code works once, within ten minutes, while this command runs. Ctrl+C withdraws it."))


def wait(pairing: Pairing) -> Machine | None:
    told: Sentence | None = None
    while True:
        state = pairing.state
        if state.said is not None and state.said != told:
            told = state.said
            print_answer(told)
        if state.code is None:
            return state.joined
        time.sleep(POLL_S)


def use_cluster(home: Home, args: argparse.Namespace) -> int:
    """Use a Dask cluster that is there already, in place of pairing."""
    from app.machines import existing

    files = [getattr(args, name) for name in PEM]
    if len(args.machine) != 1 or None in files:
        raise Trouble(
            say(
                "cluster.how",
                "To use a Dask cluster, name its scheduler and the files by which it lets clients in: "
                "{hearth} machines use tls://node.example:8786 --ca ca.pem --cert client.pem --key client-key.pem",
            )
        )
    cluster = existing.use_cluster(home, args.machine[0], *files)
    print_answer(say("cluster.used", "The workers of {address} may now help.", address=cluster.address))
    print_answer(
        switch_on(home, say("cluster.restart", 'Switch "Use other computers" off and on again, on the Machine tab of the open window.'))
    )
    return FINISHED


def switch_on(home: Home, seen: Sentence = SEEN) -> Sentence:
    """Switch on that other machines are used; a window that is open does not read its settings again, and `seen` says what to do then."""
    from app.ui.state.other_machines import SAVED
    from app.ui.state.settings import Settings

    try:
        with FileLock(home.open_lock, timeout=0):
            Settings(home.settings).change(SAVED, {}, lambda kept: {**kept, "uses": True})
    except Timeout:
        return seen
    return say("machines-add.used", "It helps whenever Hearth is open on this computer: {hearth} open --no-browser")


def remove_machines(home: Home, args: argparse.Namespace) -> int:
    from app.machines.existing import find_cluster, forget_cluster
    from app.machines.hub import main_folder
    from app.machines.joining.register import Register

    register, cluster, named = Register(main_folder(home)), find_cluster(home), args.machine
    if cluster is not None and cluster.address in named:
        forget_cluster(home)
        print_answer(
            say("cluster.removed", "The workers of {address} no longer help, from the next start of Hearth on.", address=cluster.address)
        )
    for machine in [find_machine(register.list_machines(), name) for name in named if cluster is None or name != cluster.address]:
        register.remove(machine.id)
        print_answer(say("machines-remove.done", "{name} may no longer help. It needs a new code to help again.", name=machine.name))
    if not named:
        raise Trouble(say("machines-remove.which", "Name a computer: {hearth} machines remove NAME. To see all: {hearth} machines list"))
    return FINISHED


def find_machine(machines: Sequence[Machine], name: str) -> Machine:
    """Find a machine by its name, or by how its id begins; raise Trouble unless it is exactly one."""
    found = [each for each in machines if each.name == name] or [each for each in machines if name and each.id.startswith(name)]
    if len(found) != 1:
        known = tuple(f"{each.name} ({each.id[:8]})" for each in found or machines) or "-"
        raise Trouble(say("machines-remove.unknown", "{name} does not name one computer. Choose one of: {known}", name=name, known=known))
    return found[0]


ACTIONS: Final[dict[str, Callable[[Home, argparse.Namespace], int]]] = {
    "list": list_machines,
    "add": add_machine,
    "use": use_cluster,
    "remove": remove_machines,
}
PEM: Final = {
    "ca": say("usage.machines-ca", "to use a Dask scheduler: the authority that signed its certificates, as PEM"),
    "cert": say("usage.machines-cert", "to use a Dask scheduler: a certificate by which it lets this one in, as PEM"),
    "key": say("usage.machines-key", "to use a Dask scheduler: the key of that, as PEM"),
}
