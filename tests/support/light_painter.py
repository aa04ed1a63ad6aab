"""An engine's process without torch: a colour or a level for each seed, in steps of a length that the home's folder names. It stops, and it can be killed."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save_file

from app.base import atomic_write
from app.base.paths import Home
from app.base.sentence import say
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import find_machine
from app.engine.jobs.events import Event, Failed, Finished, PartDone, Preview, Step, Stopped
from app.engine.jobs.messages import Beat, JobEvent, Quit, Ready, Report, Run
from app.engine.jobs.messages import Stop as StopOrder
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import PictureRequest, SpeechRequest, to_json
from app.engine.jobs.seed import draw_seed
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.models import catalog
from app.engine.models.on_disk import find_limits
from app.engine.pictures.steps import count_steps
from app.engine.speech.sound import join_sound, spoken_parts
from app.engine.speech.sound.join_sound import Finish, Segment
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import script

PACE = "pace.json"
"""In the home it holds seconds of a step, "fails" for one whose every picture fails, "previews" for one that shows them, "keeps" for one that
stores how far it is."""
STEPS = 10
MADE = "made.txt"
"""In the home it has a line for each picture that was begun, finished or stopped, with the time."""


def main(pipe: Connection, home: Home, pretended: str, log: Path) -> None:
    sending, stopping, orders, loaded = threading.Lock(), dict[str, float](), list[Run | Quit](), [""]
    arrived = threading.Condition()

    def tell(report: Report) -> None:
        with sending:
            pipe.send(report)

    def beat() -> None:
        with contextlib.suppress(OSError):
            while True:
                tell(Beat(Reading(), loaded[0], None))
                time.sleep(0.5)

    def listen() -> None:
        while True:
            try:
                order = pipe.recv()
            except (EOFError, OSError):
                order = Quit()
            if isinstance(order, StopOrder):
                stopping[order.job] = time.time()
            elif isinstance(order, Run | Quit):
                if isinstance(order, Run):
                    stopping.pop(order.job, None)  # here, as the engine does: a stop may come before the job begins
                with arrived:
                    orders.append(order)
                    arrived.notify()

    tell(Ready(find_machine(pretended) if pretended else Hardware(kind="cpu", name=f"light {home.root.name}")))
    for needed in (beat, listen):
        threading.Thread(target=needed, daemon=True).start()
    while True:
        with arrived:
            arrived.wait_for(lambda: bool(orders))
            order = orders.pop(0)
        if isinstance(order, Quit):
            return
        if isinstance(order.request, PictureRequest | SpeechRequest):
            loaded[0] = order.request.model
        for event in carry_out(home, order, stopping):
            tell(JobEvent(order.job, event))


def pace(folder: Path, **values: object) -> None:
    """Say anew how a home's engine works, as PACE describes; it may read that just now."""
    atomic_write.write_text(folder / PACE, json.dumps(values))


def note(home: Home, word: str, seed: int, when_s: float = 0.0) -> None:
    """`when_s`: now, where it is not given."""
    with (home.root / MADE).open("a") as file:
        file.write(f"{word} {seed} {when_s or time.time()}\n")


def read_made(home: Path) -> list[tuple[str, int, float]]:
    """What an engine did, in order: (word, seed, time)."""
    file = home / MADE
    lines = [line.split() for line in file.read_text().splitlines()] if file.is_file() else []
    return [(word, int(seed), float(when)) for word, seed, when in lines]


def carry_out(home: Home, order: Run, stopping: dict[str, float]) -> Iterator[Event]:
    """`stopping`: when it heard that a job is to stop."""
    yield from (speak if isinstance(order.request, SpeechRequest) else paint)(home, order, stopping)


def speak(home: Home, order: Run, stopping: dict[str, float]) -> Iterator[Event]:
    """Each part in steps as a picture has; one that lies in the folder, made of the same, is taken as it is."""
    request, folder = order.request, Path(order.folder)
    assert isinstance(request, SpeechRequest)
    folder.mkdir(parents=True, exist_ok=True)
    limits = find_limits(home, request.model)
    first, parts, made = draw_seed(request, folder), script.parse_script(request.text, limits).parts, list[Segment]()
    began_s, frames = time.monotonic(), 0.0
    for index in request.only_parts or range(len(parts)):
        path, seed, text = SPOKEN.shown(folder, index), (first + index) % SEED_LIMIT, parts[index].text
        key, found = spoken_parts.hash_inputs(request.model, text, seed), spoken_parts.find(path)
        if found is None or found.key != key:
            note(home, "began", seed)
            paced = json.loads((home.root / PACE).read_text()) if (home.root / PACE).is_file() else {}
            for step in range(STEPS):
                time.sleep(paced.get("step_s", 0.01))
                yield Step(step + 1, STEPS, 1.0, "frames", None, Reading(), part=index, parts=len(parts))
                if order.job in stopping:
                    note(home, "stopped", seed)
                    yield Stopped((), 1.0)
                    return
            codes = np.full((8, 1), index, np.int16)
            spoken_parts.save(SpokenPart(text, seed, key, 0.5, True, codes, path), np.full(4000, 0.1 + index / 100, np.float32), 8000)
            note(home, "finished", seed)
            frames += parts[index].seconds * limits.frame_rate
        made.append(Segment(path, 0.0))
        yield PartDone(index, len(parts), str(path), text, seed, 0.5)
    target = folder / f"speech.{request.format}"
    join_sound.join(made, target, Finish(request.format, 1.0, None, 0.0), to_json(request))
    elapsed_s = time.monotonic() - began_s
    yield Finished((str(target),), elapsed_s, frames / elapsed_s, "frames", 0, 0.5 * len(made))


def paint(home: Home, order: Run, stopping: dict[str, float]) -> Iterator[Event]:
    request, folder = order.request, Path(order.folder)
    assert isinstance(request, PictureRequest)
    folder.mkdir(parents=True, exist_ok=True)
    first, files, began_s, painted = draw_seed(request, folder), list[str](), time.monotonic(), 0
    for index in range(request.batch):
        path, seed, kept = folder / f"picture-{index}.png", (first + index) % SEED_LIMIT, folder / f"latent-{index}.safetensors"
        if not path.is_file():
            note(home, "began", seed)
            paced = json.loads((home.root / PACE).read_text()) if (home.root / PACE).is_file() else {}
            if before := read_done(kept):
                note(home, f"from-{before}", seed)
            for step in range(before, STEPS):
                time.sleep(paced.get("step_s", 0.01))
                if paced.get("keeps"):
                    save_tensors({"latents": np.zeros(4, np.float32)}, kept, {"done": str(step + 1), "whole": "0"})
                yield Step(step + 1, STEPS, 1.0, "steps", None, Reading(), part=index, parts=request.batch)
                if paced.get("previews"):
                    shown = folder / f"preview-{index}-{step}.jpg"
                    Image.new("RGB", (400, 300), (255, 0, 0)).save(shown)
                    yield Preview(step + 1, str(shown))
                if order.job in stopping:
                    note(home, "heard", seed, stopping[order.job])
                    note(home, "stopped", seed)
                    yield Stopped(tuple(files), 1.0)
                    return
                if path.is_file():
                    break
            if path.is_file():
                note(home, "overtaken", seed)
                files.append(str(path))
                continue
            if paced.get("fails"):
                yield Failed(say("test.fails", "it fails"))
                return
            draw(request, seed, path)
            note(home, "finished", seed)
            painted += 1
        files.append(str(path))
        yield PartDone(index, request.batch, str(path), request.prompt, seed)
    elapsed_s, model = time.monotonic() - began_s, catalog.find(request.model)
    yield Finished(tuple(files), elapsed_s, painted * count_steps(request, model) / elapsed_s, "steps", 0)


def save_tensors(tensors: dict[str, np.ndarray], path: Path, about: dict[str, str]) -> None:
    with atomic_write.replacing(path) as unfinished:
        save_file(tensors, unfinished, about)


def read_done(kept: Path) -> int:
    if not kept.is_file():
        return 0
    with safe_open(kept, "np") as file:
        return int(file.metadata()["done"])


def draw(request: PictureRequest, seed: int, path: Path) -> None:
    """The same bytes for the same seed, prompt and starting picture, on every machine."""
    picture = Image.new("RGB", (64, 64), (seed % 256, seed // 256 % 256, len(request.prompt) % 256))
    if request.image:
        with Image.open(request.image) as start:
            picture.paste(start.convert("RGB").resize((32, 32)))
    unfinished = path.with_suffix(".part")
    picture.save(unfinished, "PNG")
    unfinished.replace(path)
