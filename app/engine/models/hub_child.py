"""Start the process that talks to the hub, and hear from it. It alone imports the hub's client, makes connections and gets the access token."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final, Literal

from app.base.sentence import Sentence, Value, say
from app.base.trouble import Trouble
from app.engine.models import hub_token
from app.launcher import slot_lock

CLIENT: Final = "app.engine.models.hub_process"
UNWIND_S: Final = 1.0
"""A child whose parent leaves or is gone may take this long to end its writes and give back its locks."""
PATIENCE_S: Final = 60.0
"""An answer that is no download may take this long."""
_NO_KEYRING: Final = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
Act = Literal["download", "line", "token"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a download consists of: repository, blob name, size of each file."""

    blobs: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Received:
    bytes: int


@dataclass(frozen=True, slots=True)
class Waits:
    """What it waits for; None once it goes on."""

    sentence: Sentence | None


@dataclass(frozen=True, slots=True)
class Ended:
    """`sentence`: what stood in the way; None if nothing did. `without`: what did not come and is not needed."""

    sentence: Sentence | None = None
    cure: str = ""
    without: Sentence | None = None


Message = Found | Received | Waits | Ended
Tell = Callable[[Message], None]


class ProcessDiedError(Exception):
    """The process ended without a last message; `how` says how, for a person."""

    def __init__(self, how: Sentence | str) -> None:
        super().__init__(str(how))
        self.how = how


def word_fault(title: Value, how: Value) -> Sentence:
    return say(
        "download.fault",
        "The download of {model} failed: {fault}. The part already downloaded is kept; try again later.",
        model=title,
        fault=how,
    )


class HaltedError(Exception):
    """In the child: the parent wants no more, or is gone."""


class HubChild:
    """One act in a process of its own, which ends with this one, however that ends."""

    def __init__(self, act: Act, *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        hub_token.take_from_environment()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=run, args=(theirs, _make_environment(act), act, given), name="hearth-hub", daemon=True)
        try:
            self._process.start()
        except OSError as fault:
            self._pipe.close()
            raise ProcessDiedError(fault.strerror or type(fault).__name__) from fault
        finally:
            theirs.close()

    def receive(self, wait_s: float) -> Message | None:
        """Return the next message; None if there is none within this time."""
        try:
            return self._pipe.recv() if self._pipe.poll(wait_s) else None
        except (EOFError, OSError):
            self._process.join(UNWIND_S)
            raise ProcessDiedError(
                say("download.process", "its process ended with code {code}", code=str(self._process.exitcode))
            ) from None

    def close(self) -> None:
        """End it: it sees that nobody listens, gives back its locks and leaves."""
        self._pipe.close()
        self._process.join(2 * UNWIND_S)
        self._process.kill()
        self._process.join()


def _make_environment(act: Act) -> dict[str, str]:
    """Return what the child has beyond this process's own environment. It asks no keyring for what it is given: some ask the person each time."""
    token = hub_token.get_token() if act == "download" else None
    return (_NO_KEYRING if act != "token" else {}) | ({"HF_TOKEN": token} if token else {})


def ask(act: Act, *given: Any) -> None:
    """Have an act done, and wait for it; raise the Trouble that it ends with."""
    child, limit_s = HubChild(act, *given), time.monotonic() + PATIENCE_S
    try:
        while (left_s := limit_s - time.monotonic()) > 0:
            match child.receive(left_s):
                case Ended(None):
                    return
                case Ended(sentence, cure) if sentence is not None:
                    raise Trouble(sentence, cure=cure)
        raise ProcessDiedError(say("download.silent", "no answer within a minute"))
    finally:
        child.close()


def store_token(token: str) -> None:
    """Check an access token with the hub and store it."""
    try:
        ask("token", token)
    except ProcessDiedError as died:
        raise Trouble(say("token.died", "Could not check the token: {how}. Try again.", how=died.how)) from None
    hub_token.forget_what_was_read()


def run(pipe: Connection, environment: dict[str, str], act: Act, given: tuple[Any, ...]) -> None:
    """Be the child. What libraries read from the environment is set before they are imported."""
    slot_lock.hold()
    # Ctrl+C reaches every process of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)
    halted = threading.Event()
    threading.Thread(target=_end_with_parent, args=(pipe, halted), name="parent", daemon=True).start()

    def tell(message: Message) -> None:
        if halted.is_set():
            raise HaltedError
        try:
            pipe.send(message)
        except OSError:
            raise HaltedError from None

    with contextlib.suppress(HaltedError):
        import_module(CLIENT).serve(tell, halted, act, given)


def _end_with_parent(pipe: Connection, halted: threading.Event) -> None:
    """Wait for the end of the pipe: the parent never sends anything."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv_bytes()
    halted.set()
    time.sleep(UNWIND_S)
    os._exit(0)
