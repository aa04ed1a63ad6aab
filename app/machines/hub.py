"""The main machine's side, in the keeper's process: its machines processes, the machines that help, and the tasks that they have."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.base import atomic_write
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import END, Event, Failed, Preview, Step
from app.machines.existing import find_cluster, forget_cluster
from app.machines.helping_machine import HelpingMachine, Judged, read_facts
from app.machines.joining.certificates import make_main, read_authority
from app.machines.joining.code import PORT_MOST
from app.machines.joining.endpoint import Pairing
from app.machines.joining.register import Machine, Register, clean_name
from app.machines.joining.versions import explain_refusal, read_versions
from app.machines.nearby import Announcement
from app.machines.pipe import Message
from app.machines.side_process import AGAIN_S, EXISTING, MAIN, SideProcess
from app.machines.tasks import event_json
from app.machines.tasks.portable import Portable

LISTENING_S: Final = 60.0
CLUSTER_ID: Final = "cluster"
"""It names the row of a cluster none of whose workers is known yet."""
GONE_S: Final = 60.0
"""A worker that has gone is shown so long; a cluster may have others each hour."""
NO_WORKERS: Final = say("unused.no-workers", "its scheduler answers, but it has no workers now")
NO_HEARTH: Final = say(
    "unused.no-hearth", "gets no work: the Python environment of this Dask worker has no Hearth, or one that cannot start"
)
LATE: Final = say("unused.late", "gets no work yet: this Dask worker has not reported what it has; Hearth will ask again")
BROKEN: Final = Failed(say("machines.no-end", "The other computer ended the task without a result."))
End = Callable[["TaskEnd"], None]


def main_folder(home: Home) -> Path:
    return home.root / "machines" / "main"


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """`files` lie in a folder of the task's own, which the receiver empties."""

    id: str
    machine: str
    event: Event
    files: Mapping[str, Path]


@dataclass(slots=True)
class _Given:
    portable: Portable
    machine: str
    tell: Callable[[str, Event], None]
    """It is called with the machine and each of its events."""
    end: End
    why: Sentence | None
    begun: Callable[[str, Path], None]
    """It is called with the name and the place of a file from which another machine would go on."""
    step: Step | None = None
    """The machine reported this step last."""


class Hub:
    """Any thread may call; what is told comes in a thread of its own."""

    def __init__(self, home: Home, host: str = "") -> None:
        """`host`: what to listen on; empty: everywhere. Raise Trouble if nothing can listen."""
        self._home, self._host, self._folder = home, host, main_folder(home)
        make_main(self._folder)
        self.register = Register(self._folder)
        self._lock, self._listening = threading.RLock(), threading.Event()
        self.port, self.judged = read_port(self._folder), Judged()
        self._online = set[str]()
        self._facts = dict[str, dict[str, Any]]()
        self._given = dict[str, _Given]()
        """Each task goes by its id."""
        self._refused = dict[str, Sentence | None]()
        """Each says why a machine may not come, until it does."""
        self._workers = dict[str, Machine]()
        """They belong to the cluster that is used beside the paired machines."""
        self._pairing: Pairing | None = None
        self._cluster_side: SideProcess | None = None
        self.id = read_authority(self._folder)
        """Helpers know this machine by it, wherever it is."""
        self._answered: Callable[[str, str, object], None] = lambda machine, question, answer: None
        shutil.rmtree(self._incoming, ignore_errors=True)
        self.cluster = find_cluster(home)
        """This Dask cluster was there already."""
        log = home.logs / "machines.log"
        self._side = SideProcess(MAIN, self._describe_main, log, self._hear, self._side_ended, self._send_again)
        if self.cluster is not None:
            where = {"folder": str(self.cluster.folder), "address": self.cluster.address}
            self._cluster_side = SideProcess(EXISTING, lambda: where, log, self._hear, self._cluster_ended, self._send_again)
        if not self._listening.wait(LISTENING_S):
            self.close()
            raise Trouble(
                say(
                    "machines.not-started",
                    "Other computers cannot be used now: the part of Hearth for them does not start. {log} says why.",
                    log=str(log),
                )
            )

    @property
    def _incoming(self) -> Path:
        return self._home.scratch / "machines" / "incoming"

    @property
    def pid(self) -> int | None:
        """Of the machines process."""
        return self._side.pid

    def list_machines(self) -> list[HelpingMachine]:
        """List those that were let in; drop who no longer is, as `hearth machines remove` says in another process."""
        with self._lock:
            known = [*self.register.list_machines(), *self._list_workers()]
            for removed in self._online - {each.id for each in known}:
                self._online.discard(removed)
                self._side.tell("drop", machine=removed)
            tasks = defaultdict[str, list[str]](list)
            for task, given in self._given.items():
                tasks[given.machine].append(task)
            return [self._describe(each, tasks.get(each.id, []) if each.id in self._online else []) for each in known]

    def _list_workers(self) -> list[Machine]:
        """List the cluster's workers, with those that have just gone; or itself while it has none, as somebody waits for it."""
        if self.cluster is None:
            return []
        now_s, online = time.time(), self._online
        shown = [each for each in self._workers.values() if each.id in online or now_s - each.since_s < GONE_S]
        return shown or [Machine(CLUSTER_ID, clean_name(self.cluster.address), 0.0)]

    def _describe(self, machine: Machine, tasks: Sequence[str]) -> HelpingMachine:
        """Build it at once: there may be hundreds, and they are listed several times a second."""
        id_, judged = machine.id, self.judged
        first = self._given[tasks[0]] if tasks else None
        in_cluster = id_ in self._workers or id_ == CLUSTER_ID
        return HelpingMachine(
            id=id_,
            name=machine.name,
            online=id_ in self._online,
            resting=machine.resting,
            left=machine.left,
            tasks=tuple(tasks),
            doing=first.portable.words if first is not None else "",
            why=first.why if first is not None else None,
            step=first.step if first is not None else None,
            silent=first is not None and judged.is_silent(id_),
            done=judged.done[id_],
            failed=judged.failed.get(id_),
            refused=self._refused.get(id_),
            cluster=clean_name(self.cluster.address) if self.cluster is not None and in_cluster else "",
            **self._facts.get(id_, {}),
        )

    def name(self, id_: str) -> str:
        """Return what a machine is called; "" if it is no longer known."""
        known = self.register.find(id_) or self._workers.get(id_)
        return known.name if known is not None else ""

    # Joining.

    @property
    def pairing(self) -> Pairing | None:
        """The latest code."""
        return self._pairing

    def describe(self) -> Announcement:
        """Return what may be said of this machine to its network."""
        code = self._pairing.state.code if self._pairing is not None else None
        return Announcement("main", clean_name(socket.gethostname()), self.id, self.port, code.port if code is not None else 0)

    def open_pairing(self) -> Pairing:
        """Make a code for one machine; the one before is withdrawn."""
        self.close_pairing()
        self._pairing = Pairing(self._folder, self.register, socket.gethostname(), self.port, host=self._host)
        self._pairing.open()
        return self._pairing

    def close_pairing(self) -> None:
        if self._pairing is not None:
            self._pairing.close()
            self._pairing = None

    def remove(self, id_: str) -> None:
        """Revoke a machine: its connections end now, and what it had goes elsewhere. With one of the cluster's workers all of them go."""
        if id_ in self._workers or id_ == CLUSTER_ID:
            self._leave_cluster()
            return
        self.register.remove(id_)
        self._side.tell("drop", machine=id_)

    def _leave_cluster(self) -> None:
        forget_cluster(self._home)
        with self._lock:
            side, self.cluster, self._cluster_side = self._cluster_side, None, None
        if side is not None:
            side.close()
            self._cluster_ended()  # its process may be waited for just now

    def let_rest(self, id_: str, resting: bool) -> None:
        """Give a machine no work; what it has comes back, for who gave it looks at the list. A cluster's worker rests until this Hearth ends."""
        with self._lock:
            if worker := self._workers.get(id_):
                self._workers[id_] = replace(worker, resting=resting)
                return
        self.register.let_rest(id_, resting)

    # Tasks.

    def submit(
        self,
        id_: str,
        portable: Portable,
        machine: str,
        tell: Callable[[str, Event], None],
        end: End,
        *,
        why: Sentence | None = None,
        begun: Callable[[str, Path], None] = lambda name, path: None,
    ) -> None:
        """Give a task to a machine, which gets it once it is there; a second one with its id is the same. `end` is called once, unless it is
        stopped before. `why` is shown beside the machine. `begun` is called with each file from which another machine would go on."""
        with self._lock:
            if id_ in self._given:
                return
            self.judged.hear(machine)
            self._given[id_] = _Given(portable, machine, tell, end, why, begun)
            self._send(id_)

    def _send(self, id_: str) -> None:
        portable, machine = self._given[id_].portable, self._given[id_].machine
        files = {sha256: str(path) for sha256, path in portable.files.items()}
        self._find_side(machine).tell(
            "submit", id_=id_, body=portable.body, files=files, machine=machine, incoming=str(self._incoming / id_)
        )

    def ask(self, machine: str, question: str, body: str, answered: Callable[[str, str, object], None]) -> None:
        """Ask a machine about a request. `answered` is called with the machine, the question and what it says; one that is asleep says
        nothing."""
        self._answered = answered
        self._find_side(machine).tell("ask", machine=machine, question=question, body=body)

    def want(self, machine: str, model: str, body: str, files: Mapping[str, Path]) -> None:
        """Ask a machine to fetch a model. `files`: by hash, what it may have of this one's."""
        self._find_side(machine).tell(
            "want", machine=machine, model=model, body=body, files={sha256: str(path) for sha256, path in files.items()}
        )

    def stop(self, id_: str) -> None:
        """Forget a task, and stop it where it runs."""
        with self._lock:
            if (given := self._given.pop(id_, None)) is not None:
                self._find_side(given.machine).tell("stop", id_=id_)

    def close(self) -> None:
        """Listen no more; helpers keep trying to come back."""
        self.close_pairing()
        self._side.close()
        if self._cluster_side is not None:
            self._cluster_side.close()

    # The machines process.

    def _describe_main(self) -> Message:
        return {"folder": str(self._folder), "host": self._host, "port": self.port}

    def _find_side(self, machine: str) -> SideProcess:
        """Return the process that reaches a machine."""
        return self._cluster_side if self._cluster_side is not None and machine in self._workers else self._side

    def _side_ended(self) -> float:
        with self._lock:
            self._online &= self._workers.keys()
        return AGAIN_S

    def _cluster_ended(self) -> float:
        """It died, or the scheduler is away: whoever gave it tasks takes them back from machines that are not there."""
        with self._lock:
            self._online -= self._workers.keys()
            self._refused.pop(CLUSTER_ID, None)
            if self.cluster is None:  # it is used no more
                self._workers.clear()
        return AGAIN_S

    def _send_again(self, side: SideProcess) -> None:
        """Give another process the tasks that have not ended: the list here is the truth."""
        with self._lock:
            for id_ in [id_ for id_, given in self._given.items() if self._find_side(given.machine) is side]:
                self._send(id_)

    def _hear(self, message: Message) -> None:
        given = self._given.get(message.get("id", ""))
        if given is not None:
            self.judged.hear(given.machine)
        match message["op"]:
            case "connected":
                self._refused[CLUSTER_ID] = NO_WORKERS
            case "listening":
                self.port = message["port"]
                with suppress(OSError):
                    keep_port(self._folder, message["port"])
                self._listening.set()
            case "busy":
                self.port = 0  # another program has it; helpers that know the old one have to be paired again
            case "machine":
                self._note_machine(message["machine"], message["online"], message.get("name"))
            case "versions":
                refused = explain_refusal(read_versions(), message["versions"]) if message["versions"] else NO_HEARTH
                self._refused[message["machine"]] = refused
            case "late":
                self._refused[message["machine"]] = LATE
            case "facts":
                self._refused.pop(message["machine"], None)
                facts = read_facts(message["facts"])
                if facts.pop("left"):
                    self.register.note_left(message["machine"])
                self._facts[message["machine"]] = facts
            case "answer":
                self._answered(message["machine"], message["question"], message["answer"])
            case "event" if given is not None:
                event = self._read_event(message)
                if isinstance(event, Step):
                    given.step = event
                if event is not None and not isinstance(event, END):
                    given.tell(given.machine, event)
            case "begun":
                path = Path(message["path"])
                if given is not None:
                    given.begun(message["name"], path)
                with suppress(OSError):  # a newer one comes while it is looked at
                    path.unlink(missing_ok=True)
            case "end":
                self._end(message)

    def _note_machine(self, id_: str, online: bool, name: str | None) -> None:
        """`name`: of a cluster's worker, which no register has."""
        with self._lock:
            if name is not None:
                before = self._workers.get(id_)
                self._workers[id_] = Machine(id_, clean_name(name), time.time(), before is not None and before.resting)
            (self._online.add if online else self._online.discard)(id_)
            if online:
                self._refused.pop(id_, None)
                self.judged.hear(id_)

    def _read_event(self, message: Message) -> Event | None:
        """Return what a machine tells of its task; the picture of a preview lies in the task's folder until the next one."""
        if (shown := event_json.read_picture(message["event"])) is None:
            return event_json.from_json(message["event"])
        path = self._incoming / message["id"] / "preview.jpg"
        try:
            with atomic_write.replacing(path) as unfinished:
                unfinished.write_bytes(shown[1])
        except OSError:  # the disk is full
            return None
        return Preview(shown[0], str(path))

    def _end(self, message: Message) -> None:
        with self._lock:
            given = self._given.pop(message["id"], None)
        event = event_json.from_json(message["event"])
        if given is not None:
            files = {name: Path(path) for name, path in message["files"].items()}
            given.end(TaskEnd(message["id"], given.machine, event if isinstance(event, END) else BROKEN, files))
        shutil.rmtree(self._incoming / message["id"], ignore_errors=True)


_PORT_FILE: Final = "port.json"


def read_port(folder: Path) -> int:
    """Return the port that helpers know; 0 if there is none yet."""
    try:
        port = json.loads((folder / _PORT_FILE).read_text())
    except (OSError, ValueError):
        return 0
    return port if isinstance(port, int) and 0 < port <= PORT_MOST else 0


def keep_port(folder: Path, port: int) -> None:
    atomic_write.write_text(folder / _PORT_FILE, json.dumps(port))


def reserve_port(folder: Path) -> int:
    """Return the port that helpers know; choose one that is free now where nobody knows any."""
    port = read_port(folder)
    if not port:
        with socket.socket() as listener:
            listener.bind(("", 0))
            port = listener.getsockname()[1]
        keep_port(folder, port)
    return port
