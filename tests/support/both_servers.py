"""The owner's window and a share on real servers, with every route and guard, and without an engine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import gradio as gr
import numpy as np
import soundfile
from PIL import Image

from app.compat.machine.hardware import Hardware
from app.engine.jobs.creation import Creation, RunSummary
from app.engine.jobs.request import Request, SpeechRequest
from app.engine.speech.sound import sound
from app.ui import launch, share, single_instance
from app.ui.launch import LaunchOptions
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs import models, shelf
from tests.support.guests import desk_at, no_tunnel

CPU = Hardware(kind="cpu", name="light")
"""The engine that is never started has told this of this machine."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[Desk, str, share.Share]]:
    """Serve the owner's window and a share, with every route and guard. The engine is never started; jobs that wait are ended at once.

    What leaves this machine, opens a window on it or changes its environment is left out: file managers, downloads and upkeep."""
    with desk_at(folder) as desk:
        place, done = desk.keeper.home, threading.Event()
        sharing = share.Share(desk, no_tunnel)
        middleware, _ = launch.build_guards(place)
        more = [single_instance.ping_route("fuzz"), *share.routes(sharing)]
        address = launch.start_server(LaunchOptions(place), desk, None, more, middleware)
        keep_creations(desk)
        desk.keeper.status.set(hardware=CPU)
        sharing.begin(1)

        def end_jobs() -> None:
            while not done.wait(0.02):
                for job in desk.keeper.journal.list_waiting():
                    if desk.keeper.board.find(job.id) is not None:  # its follower has begun to listen
                        desk.keeper.stop(job.id)

        ending = threading.Thread(target=end_jobs)
        ending.start()
        try:
            with (
                patch.object(models, "reveal"),
                patch.object(shelf, "reveal"),
                patch.object(desk.downloads, "start"),
                patch.object(desk.upkeep.beside, "start"),
            ):
                yield desk, address, sharing
        finally:
            done.set()
            ending.join()
            sharing.end()
            gr.close_all(verbose=False)


def keep_creations(desk: Desk) -> None:
    """Put one sound and one picture on the shelf."""
    for name in ("a.wav", "b.png"):
        keep_creation(desk, SpeechRequest("hello"), name)


def keep_creation(desk: Desk, request: Request, name: str, of: str = "") -> Creation:
    """Put a result on the shelf. `of`: the job that it is of, where there is one."""
    job = desk.keeper.journal.get(of) if of else desk.keeper.journal.queue(request, desk.machine.read_choice(OWNER))
    if not of:
        desk.keeper.journal.withdraw(job.id)
    folder = desk.keeper.folder(job.id)
    folder.mkdir(parents=True)
    if name.endswith(".wav"):
        sound.write(folder / name, np.zeros(16_000, np.float32), 16_000)
    elif name.endswith(".mp3"):
        soundfile.write(folder / name, np.zeros(16_000, np.float32), 16_000)
    else:
        Image.new("RGB", (8, 8)).save(folder / name)
    made = RunSummary(model="", seconds=0.0, rate=0.0, unit="", elapsed_s=0.0, highest_bytes=0, whole=True, plan="{}")
    (kept,) = desk.keeper.shelf.keep(job, [str(folder / name)], made)
    return kept
