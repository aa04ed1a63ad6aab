"""An engine as Hearth starts it, watched from its first line: what it opens, asks and unpickles, and whether its guards are up.

Run by tests/fuzz_models.py as a program: its own pipe's handle, then the folder of the fuzzer, then holes to open (holes.py)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.base.paths import home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed, Finished, Loading
from app.engine.jobs.messages import JobEvent, Run
from app.engine.keeper import worker
from tests.support import holes
from tests.support.watch import Watch, list_usual

if TYPE_CHECKING:
    from app.engine.session.session import Session

DONE = "done"
VOICES = {"_DiaModel", "DacModel"}
TINY = {"AutoencoderTiny"}
"""Previews use it, beside a family's parts."""


def main(handle: int, folder: Path, opened: list[str]) -> None:
    heard = os.open(folder / "heard", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    watch = Watch(
        lambda said: os.write(heard, f"{said}\n".encode("utf-8", "backslashreplace"))
    )  # before the engine's own hook, which refuses
    watch.allowed = (*list_usual(), *(str(folder / each) for each in ("home", "broken", "good", "temp", "jobs")))
    run_usual, work_usual = worker.Worker._run, worker.Worker.work

    def run(self: worker.Worker, session: Session, order: Run) -> None:
        from app.engine.models import on_disk

        find, file = on_disk.find_snapshot, Path(getattr(order.request, "model", ""))
        watch.on = True
        try:
            if file.suffix == ".gguf":
                _load_gguf(self, order)
            else:
                if file.suffix == ".safetensors":  # its settings, which Hearth downloads
                    on_disk.find_snapshot = lambda home, source: folder / "good" / "configs" / file.stem
                run_usual(self, session, order)
        finally:
            watch.on, on_disk.find_snapshot = False, find
            os.write(heard, f"{DONE} {order.job}\n".encode())

    def work(self: worker.Worker, session: Session) -> None:
        for fault in list_open_guards():
            os.write(heard, f"{fault}\n".encode())
        watch_classes(lambda said: os.write(heard, f"{said}\n".encode()))
        for hole in opened:
            holes.HOLES[hole]()
        work_usual(self, session)

    worker.Worker._run, worker.Worker.work = run, work  # type: ignore[assignment,method-assign]
    worker.Worker._do_piece = lambda *_: False  # type: ignore[method-assign] # nothing is measured meanwhile
    for hole in opened:
        holes.EARLY.get(hole, lambda: None)()
    worker.main(Connection(handle), home(folder / "home").create(), "", folder / "engine.log")


def list_open_guards() -> list[str]:
    """Try what the guards of this process refuse; return what they let through."""
    import socket

    import torch

    faults = []
    for name, act, refused in (
        ("connects", lambda: socket.create_connection(("127.0.0.1", 9), 1), PermissionError),
        ("asks for a name", lambda: socket.getaddrinfo("localhost", 9), PermissionError),
        ("unpickles", lambda: torch.load("/nowhere/x.bin"), Trouble),
    ):
        try:
            act()
        except refused:
            continue
        except Exception as fault:
            faults.append(f"the engine {name}: {fault!r}")
        else:
            faults.append(f"the engine {name}")
    return faults


def watch_classes(tell: Callable[[str], object]) -> None:
    """Tell of each class of a model's part that is loaded and that no family has."""
    import diffusers
    import transformers

    from app.engine.models.picture_families import FAMILIES

    known = {name for family in FAMILIES.values() for names in family.parts.values() for name in names} | VOICES | TINY
    bases: tuple[Any, ...] = (diffusers.ModelMixin, transformers.PreTrainedModel)
    for base in bases:
        usual = base.from_pretrained.__func__

        def from_pretrained(cls: type, /, *args: Any, usual: Callable[..., Any] = usual, **kwargs: Any) -> Any:
            if cls.__name__ not in known:
                tell(f"{cls.__name__} is built")
            return usual(cls, *args, **kwargs)

        base.from_pretrained = classmethod(from_pretrained)


def _load_gguf(engine: worker.Worker, order: Run) -> None:
    """Load a GGUF file in the place of the denoiser of a good model, as a download of the catalog would be."""
    from app.engine.models import catalog
    from app.engine.pictures.run import painter
    from tests.support.tiny_pictures import make_plan

    file: Any = getattr(order.request, "model", "")
    good = Path(os.environ["FUZZ_GGUF_MODEL"])
    engine.report(JobEvent(order.job, Loading(file, say("session.loading", "Loading {model}.", model=file))))
    try:
        row = catalog.find(str(good))
        painter.load(good, row, make_plan(row, quantised="gguf"), {"gguf": Path(file)}).close()
    except Trouble as trouble:
        engine.report(JobEvent(order.job, Failed(trouble.sentence, trouble.objections, trouble.cure)))
    except Exception as fault:
        words = say("session.words", "Error message: {words}", words=f"{type(fault).__name__}: {fault}"[:500])
        engine.report(JobEvent(order.job, Failed(say("session.unknown", "The model stopped with an unknown error."), (words,))))
    else:
        engine.report(JobEvent(order.job, Finished((), 0, 0, "steps", 0)))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
