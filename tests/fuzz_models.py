"""Fuzz folders and files of models: the page is asked about each, and with --load an engine loads and runs them. Nothing may hang, answer 500, read
elsewhere, connect, unpickle or fail with an unknown error. Run: python tests/fuzz_models.py --mutations 600 --load 60 --seed 1 [--family sd15]"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from json import dumps
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock, patch
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import psutil
import soundfile
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base import notices
from app.base.trouble import Trouble
from app.compat.machine.pretended import machine
from app.compat.planning.types import Choice
from app.engine.jobs.events import END, Failed, Loading
from app.engine.jobs.messages import JobEvent, Ready, Run
from app.engine.jobs.request import Lora, PictureRequest, Request, SpeechRequest, VoicePrompt
from app.engine.keeper.own_inputs import require_own
from app.engine.kinds import admit
from app.engine.models import local_models
from app.engine.models.catalog import CATALOG
from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices
from app.ui import routes, window
from app.ui.api import a1111, openai
from app.ui.state import models_desk
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.tabs import models, paint_form, paint_view
from app.ui.tabs.shared_controls import model_choices
from tests.support import (
    broken_models,
    holes,
    picture_fixtures,
    tiny_pictures,
    tiny_pockets,
    tiny_single_files,
    tiny_voices,
    watched_engine,
)
from tests.support.guests import desk_at
from tests.support.places import TOP
from tests.support.watch import Unread, Watch, list_usual

HANGS_S: Final = 5.0
HUNG_S: Final = 60.0
"""An answer that hangs is waited for so long, so that the next is not slow because of it."""
LOADS_S: Final = 20.0
"""After so long an engine is ended, as Hearth ends one that does not hear Stop."""
HELD_MOST_BYTES: Final = 3 << 30
"""A model of a few megabytes may hold so much memory."""
DRAWS_MOST: Final = 10
ENGINE_RUNS: Final = 200
"""After so many an engine is replaced."""
WINDOW_EVERY: Final = 100
"""The whole window is built for one of so many mutations; for the others, what reads a model in it."""
SCRIPTS: Final = (
    "",
    "Hello there.",
    "[S1] One, two; three. (laughs) [S2] " + "Now the ferry comes in from the fjord, slowly. " * 12 + "😀" * 40 + "x" * 900,
)


PAINTED: Final[dict[str, Any]] = {"width": 64, "height": 64, "steps": 1, "seed": 1, "preview_every": 0}
SPOKEN: Final = "[S1] Hello there."


def _save_file(family: str, folder: Path) -> Path:
    whole, file = tiny_single_files.save(family, folder)
    tiny_single_files.copy_configs(whole, folder / "configs" / family)
    return file


def _base(family: str, folder: Path) -> Path:
    """Return a good model, to which a part from elsewhere is given."""
    place = folder / f"base-{family}"
    if not place.exists():
        tiny_voices.save_voice(place) if family == "dia" else tiny_pictures.save(family, place)
    return place


def _save_lora(folder: Path) -> Path:
    return picture_fixtures.make_lora(_base("sd15", folder), folder / "lora.safetensors", 1)


def _save_gguf(folder: Path) -> Path:
    return picture_fixtures.make_gguf(_base("flux", folder), folder / "flux.gguf")


def _save_kept_voice(folder: Path) -> Path:
    place = folder / "voices"
    place.mkdir(parents=True)
    soundfile.write(place / "ann.wav", 0.3 * np.sin(np.arange(3 * 44100) / 30), 44100)
    (place / "ann.json").write_text(json.dumps({"name": "Ann", "transcript": SPOKEN, "spoken_by": "", "known": []}))
    return place


def _save_phonon(folder: Path) -> Path:
    place = tiny_pockets.save_pocket(folder / "phonon", "phonon")
    tiny_pockets.save_brought(place / "voices")
    return place


def _save_picture_model(family: str, folder: Path) -> Path:
    return tiny_pictures.save(family, folder / family)


FAMILIES: Final[dict[str, Callable[[Path], Path]]] = {
    **{family: partial(_save_picture_model, family) for family in tiny_pictures.MAKERS},
    "dia": lambda folder: tiny_voices.save_voice(folder / "dia"),
    "pocket": lambda folder: tiny_pockets.save_pocket(folder / "pocket"), "phonon": _save_phonon,
    "starter-voice": lambda folder: shutil.copytree(TOP / "assets" / "starter" / "voice", folder / "voice"),
    "sd15-file": lambda folder: _save_file("sd15", folder), "sdxl-file": lambda folder: _save_file("sdxl", folder),
    "lora": _save_lora, "gguf": _save_gguf, "kept-voice": _save_kept_voice,
}  # fmt: skip
"""Each saves a good model, or what is given to one, and returns its folder or file."""
SPEAKING: Final = ("dia", "pocket", "phonon", "starter-voice", "kept-voice")


def make_request(family: str, path: Path, good: Path) -> Request:
    """Return a request that uses all of what was broken."""
    if family == "lora":
        return PictureRequest("a red ball", str(_base("sd15", good)), loras=(Lora(str(path)),), **PAINTED)
    if family == "kept-voice":
        voice = VoicePrompt(str(path / "ann.wav"), SPOKEN)
        return SpeechRequest(SPOKEN, str(_base("dia", good)), voice=voice, seed=1, max_frames=40)
    if family in SPEAKING:
        return SpeechRequest(SPOKEN, str(path), seed=1, max_frames=40)
    return PictureRequest("a red ball", str(path), **PAINTED)


class AsOwner:
    """Everybody is the owner; telling people apart is the guards', and tested there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, KEY: OWNER}, receive, send)


@dataclass(frozen=True, slots=True)
class Answer:
    status_code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Page:
    """Asks an application as a server does, without what a client would add to each request, half the time of most."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._loop = app, asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        return self._ask("GET", path, urlencode(params or {}, errors="surrogatepass").encode(), b"")

    def post(self, path: str, json: object) -> Answer:
        return self._ask("POST", path, b"", dumps(json).encode())

    def _ask(self, method: str, path: str, query: bytes, body: bytes) -> Answer:
        return asyncio.run_coroutine_threadsafe(self._serve(method, path, query, body), self._loop).result()

    async def _serve(self, method: str, path: str, query: bytes, body: bytes) -> Answer:
        statuses: list[int] = []
        pieces: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            pieces.append(message.get("body", b""))

        scope: Scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "path": path,
            "raw_path": path.encode(), "query_string": query, "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
        }  # fmt: skip
        try:
            await self._app(scope, receive, send)
        except Exception:
            if statuses[-1:] != [500]:  # Starlette answers 500 and raises again
                raise
        return Answer(statuses[0], b"".join(pieces))


@dataclass
class Outcome:
    statuses: Counter[int] = field(default_factory=Counter)
    usable: int = 0
    """The page can use so many. Of the engine, they are those that it began to load."""
    ends: Counter[str] = field(default_factory=Counter)
    """It counts how the engine's runs ended."""
    bad: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    how: str
    took_s: float
    reached: bool
    """True: it began to load."""
    bad: tuple[str, ...]


class Engine:
    """A watched engine (tests/support/watched_engine.py); a new one after each that was ended."""

    def __init__(self, folder: Path, opened: Sequence[str] = ()) -> None:
        self._folder, self._opened, self._runs = folder, opened, 0
        self._child: psutil.Popen | None = None
        for name in ("temp", "jobs"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "heard").touch()

    def _start(self) -> list[str]:
        """Start one; return which of its guards are open."""
        self._pipe, theirs = Pipe()
        self._heard, self._runs = (self._folder / "heard").stat().st_size, 0
        environment = {"HEARTH_SKIP_CHECK": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(self._folder / "temp"),
                       "FUZZ_GGUF_MODEL": str(self._folder / "good" / "base-flux")}  # fmt: skip
        self._child = psutil.Popen(
            [sys.executable, "-m", "tests.support.watched_engine", str(theirs.fileno()), str(self._folder), *self._opened],
            cwd=TOP,
            env=os.environ | environment,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        while not isinstance(self._pipe.recv(), Ready):
            pass
        bad = list[str]()
        for first in (
            SpeechRequest("Hello.", "starter-voice", seed=1, max_frames=20),
            PictureRequest("a boat", "starter-painter", **PAINTED),
        ):
            bad += self.run(first, waits_s=600).bad  # what it imports is not the next one's time
        self._bytes = self._read_bytes()
        return bad

    def run(self, request: Request, waits_s: float = LOADS_S) -> Ended:
        bad = []
        if self._child is None or self._runs >= ENGINE_RUNS:
            self.end()
            self._child = None
            bad = self._start()
        assert self._child is not None
        self._runs += 1
        job, reached, how, begun_s = f"job-{self._runs}", False, "", time.monotonic()
        self._pipe.send(Run(job, request, Choice(), str(self._folder / "jobs" / job)))
        while not how:
            try:
                told = self._pipe.recv() if self._pipe.poll(0.1) else None
            except (EOFError, OSError):
                how, told = f"the engine died ({self._child.wait()})", None
                bad.append(f"{how}: {(self._folder / 'engine.log').read_text('utf-8', 'replace')[-300:]}")
            if isinstance(told, JobEvent) and told.job == job:
                reached = reached or isinstance(told.event, Loading)
                if isinstance(told.event, Failed):
                    how = told.event.sentence.key
                    if how == "session.unknown":
                        bad.append(f"{told.event.sentence} {'; '.join(map(str, told.event.objections))}")
                elif isinstance(told.event, END):
                    how = "worked"
            if not how and waits_s == LOADS_S and self._read_bytes() - self._bytes > HELD_MOST_BYTES:
                how = f"takes more than {HELD_MOST_BYTES >> 30} GB"
                bad.append(how)
            if not how and time.monotonic() - begun_s > waits_s * count_rivals():
                how = "ended after 20 s"
        took_s = time.monotonic() - begun_s
        if how == "ended after 20 s" or bad:
            self.end()
        bad += self._take_heard(job if self._child is not None else "")
        shutil.rmtree(self._folder / "jobs" / job, ignore_errors=True)
        return Ended(how, took_s, reached, tuple(bad))

    def _read_bytes(self) -> int:
        assert self._child is not None
        try:
            return int(self._child.memory_info().rss)
        except psutil.Error:  # it ended just now
            return 0

    def _take_heard(self, job: str = "") -> list[str]:
        """Return what the watch heard since the last call; wait for the end of a job to be heard."""
        for _ in range(50):
            lines = (self._folder / "heard").read_bytes()[self._heard :].decode("utf-8", "replace").splitlines()
            if not job or f"{watched_engine.DONE} {job}" in lines:
                break
            time.sleep(0.1)
        self._heard = (self._folder / "heard").stat().st_size
        return [each for each in lines if not each.startswith(watched_engine.DONE)]

    def end(self) -> None:
        if self._child is not None:
            with contextlib.suppress(psutil.NoSuchProcess):  # it died by itself
                self._child.kill()
            self._child.wait(10)
            self._pipe.close()
            self._child = None


class ModelFuzzer:
    """Breaks a good model, asks the page about it, and counts what is answered."""

    def __init__(self, desk: Desk, folder: Path, seed: int, watch: Watch) -> None:
        self.desk, self.folder, self.seed, self.watch = desk, folder, seed, watch
        desk.keeper.status.set(hardware=machine("t4"))
        served = [*models.routes(desk), *routes.routes(desk), *openai.routes(desk), *a1111.routes(desk)]
        self.page = Page(Starlette(routes=served, middleware=[Middleware(AsOwner)]))
        self.outside = broken_models.save_outside(folder / "outside")
        self.watch.allowed = (*list_usual(), str(folder / "home"), str(folder / "broken"), str(folder / "good"))
        self.unread = Unread(self.outside)

    def run(self, family: str, good: Path, mutations: range) -> Outcome:
        """Ask the page about broken ones."""
        outcome = Outcome()
        for index in mutations:
            with self.broken(family, good, index, outcome) as (name, path):
                if family == "kept-voice":
                    self.ask_voices(name, path, good, outcome)
                else:
                    self.ask_all(name, str(path), "speech" if family in SPEAKING else "picture", index, outcome)
                if family == "lora":
                    asked = make_request(family, path, self.folder / "good")
                    assert isinstance(asked, PictureRequest)
                    ask = partial(paint_view.forecast_html, self.desk, asked, OWNER, "en")
                    self.time(f"{name} -> forecast with it", partial(refuse_or, ask), outcome)
            if (index + 1) % 100 == 0:
                print(f"{family}: {index + 1} mutations, {len(outcome.bad)} bad answers", flush=True)
        return outcome

    @contextlib.contextmanager
    def broken(self, family: str, good: Path, index: int, outcome: Outcome) -> Iterator[tuple[str, Path]]:
        """Break a good one, and tell at the end what was wrong with the answers."""
        chance, known = random.Random(f"{self.seed} {family} {index}"), len(outcome.bad)
        path = self.folder / "broken" / f"{index}" / good.name
        broken_models.copy(good, path)
        name = f"{family} {index}: {'; '.join(broken_models.mutate(chance, path, self.outside))}"
        self.unread.reset()
        yield name, path
        outcome.bad += [f"{name} -> {each} is read" for each in self.unread.take_read()]
        outcome.bad += [f"{name} -> a pickle runs: {each}" for each in broken_models.find_marks(self.outside)]
        end_looks(path)
        shutil.rmtree(path.parent)
        for each in outcome.bad[known:]:
            print(f"  BAD {each[:600]}", flush=True)

    def load(self, family: str, good: Path, wanted: int, engine: Engine, mutations: range | None = None) -> Outcome:
        """Have the engine use broken ones, until so many got past what looks at them first."""
        outcome = Outcome()
        for index in mutations or range(DRAWS_MOST * wanted):
            with self.broken(family, good, index, outcome) as (name, path):
                request = make_request(family, self.keep(path) if family == "kept-voice" else path, self.folder / "good")
                try:
                    require_own(self.desk.keeper.home, request)
                except Trouble as refused:
                    outcome.ends[refused.sentence.key] += 1
                    continue
                ended = engine.run(request)
                outcome.ends[ended.how] += 1
                outcome.bad += [f"{name} -> {each}" for each in ended.bad]
                if ended.took_s > outcome.slowest_s:
                    outcome.slowest_s, outcome.slowest = ended.took_s, f"{name} -> {ended.how}"
                outcome.usable += ended.reached
            if outcome.usable >= wanted:
                break
        return outcome

    def keep(self, path: Path) -> Path:
        """Put a folder of voices where Hearth keeps them."""
        place = self.desk.keeper.home.voices
        shutil.rmtree(place)
        return Path(shutil.copytree(path, place, symlinks=True, copy_function=_move))

    def list_clips(self) -> list[VoicePrompt]:
        """List what can be chosen of the voices that Hearth keeps."""
        return [each.prompt for each in voices.list_voices(self.desk.keeper.home)]

    def ask_voices(self, name: str, path: Path, good: Path, outcome: Outcome) -> None:
        """Ask for the voices that Hearth keeps, with a broken one among them; then delete what is listed."""
        home = self.desk.keeper.home
        self.keep(path)
        for asked, ask in {
            "voices": lambda: voices.list_offered_voices(home, DIA),
            "speaker": lambda: [(voices.find_speaker(Path(each.path)), voices.find_known(Path(each.path))) for each in self.list_clips()],
            "prompt": lambda: [refuse_or(partial(voices.prepare_prompt, each, DIA)) for each in self.list_clips()],
            "keep": lambda: refuse_or(lambda: voices.keep_voice(home, "Ann", good / "ann.wav", SPOKEN, DIA)),
            "check": lambda: self.page.post("/hearth/check", json={"kind": "speech", "text": SPOKEN}),
            "remove": lambda: [voices.forget_voice(home, each) for each in voices.list_voices(home)],
        }.items():
            self.time(f"{name} -> {asked}", ask, outcome)
        if left := self.time(f"{name} -> what is left", lambda: voices.list_voices(home), outcome):
            outcome.bad.append(f"{name} -> {left} cannot be removed")

    def ask_all(self, name: str, path: str, kind: str, index: int, outcome: Outcome) -> None:
        desk, page = self.desk, self.page
        tab = "speak" if kind == "speech" else "paint"
        self.time(f"{name} -> add", lambda: page.post("/hearth/models/add", json={"value": path}), outcome)
        self.wait_for_looks(name, Path(path), outcome)
        desk.settings.put({"models": [path], tab: {"model": path}})
        usable: list[str] = []
        listed = self.time(f"{name} -> models", lambda: page.get("/hearth/models"), outcome)
        if listed is not None and listed.status_code == 200:
            view = listed.json()
            usable, missing = ([each[key] for each in view[part]] for part, key in (("models", "path"), ("missing", "path")))
            outcome.usable += path in usable
            if (path in usable) + (path in missing) != 1:
                outcome.bad.append(f"{name} -> it is not in the list once")
        else:
            outcome.bad.append(f"{name} -> no list from which it could be removed")
        asks: dict[str, Callable[[], object]] = {
            "offer": lambda: page.get("/hearth/offer", params={"model": path}),
            "machine": lambda: page.get("/hearth/machine", params={"model": path}),
            "of programs": lambda: page.get("/v1/models"),
            "of A1111's": lambda: page.get("/sdapi/v1/sd-models"),
            **{
                f"check of {len(text)}": partial(page.post, "/hearth/check", json={"kind": kind, "text": text, "model": path})
                for text in SCRIPTS
            },
            "precheck": lambda: refuse_or(lambda: admit(SpeechRequest(SCRIPTS[-1], path), desk.keeper.home)),
            "forecast": lambda: refuse_or(lambda: paint_view.forecast_html(desk, PictureRequest("a boat", path), OWNER, "en")),
            "start": lambda: self.start(path, kind, index, path in usable),
            "remove": lambda: page.post("/hearth/models/forget", json={"value": path}),
        }
        for asked, ask in asks.items():
            self.time(f"{name} -> {asked}", ask, outcome)
        if path in desk.settings.get("models"):
            outcome.bad.append(f"{name} -> it cannot be removed")

    def wait_for_looks(self, name: str, path: Path, outcome: Outcome) -> None:
        """On a machine with much else to do, the page answers before a look at a large model ends; but each has to end."""
        until_s = time.monotonic() + HANGS_S * count_rivals()
        while local_models._looks and time.monotonic() < until_s:
            time.sleep(0.01)
        if local_models._looks:
            outcome.bad.append(f"{name} -> a look at it does not end")
            end_looks(path)

    def start(self, path: str, kind: str, index: int, usable: bool) -> None:
        """Do what a start does with a chosen model; one that cannot be used is told of, and another takes its place."""
        notices.take_all()
        desk = Desk(self.desk.keeper, self.desk.settings)
        told = [each for each in notices.take_all() if each.key == "models.fallback"]
        if index % WINDOW_EVERY == 0:
            window.build(desk)
        found = paint_form.find_model(desk, path if kind == "picture" else "")
        paint_form.default_size(found)
        choices = [id_ for each in ("speech", "picture") for _, id_ in model_choices(desk, each)]
        assert len(told) == (not usable), f"{len(told)} sentences about what a start does without it"
        assert usable or (found.path != path and path not in choices), "a start uses it all the same"

    def time(self, name: str, ask: Callable[[], Any], outcome: Outcome) -> Any:
        """Ask in a thread, as an answer may never come."""
        answers: list[Any] = []
        faults: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(ask())
            except BaseException as fault:
                faults.append(fault)

        asking = threading.Thread(target=run, daemon=True)
        self.watch.seen.clear()
        self.watch.on = True
        begun_s = time.monotonic()
        asking.start()
        asking.join(HANGS_S * count_rivals())
        took_s = time.monotonic() - begun_s
        if asking.is_alive():
            outcome.bad.append(f"{name} hangs")
            asking.join(HUNG_S)
        self.watch.on = False
        if took_s > outcome.slowest_s:
            outcome.slowest_s, outcome.slowest = took_s, name
        outcome.bad += [f"{name} raises {fault!r}"[:400] for fault in faults]
        outcome.bad += [f"{name} reaches {each}" for each in self.watch.seen]
        status = getattr(answers[0], "status_code", None) if answers else None
        if status is not None:
            outcome.statuses[status] += 1
            if status >= 500:
                outcome.bad.append(f"{name} -> {status}")
        return answers[0] if answers else None


def end_looks(path: Path) -> None:
    """Let looks go that wait for pipes, so that they do not count against the next model."""
    for _ in range(100):
        if not local_models._looks:
            return
        broken_models.release_pipes(path)
        time.sleep(0.05)


def count_rivals() -> float:
    """Return how many programs share a core, by which all takes longer; 1 on a machine with nothing else to do."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _move(file: str, target: str) -> None:
    """Put a file elsewhere, whatever it is; opening it may never end."""
    Path(file).rename(target)


def refuse_or(run: Callable[[], object]) -> None:
    """A Trouble is an answer."""
    with contextlib.suppress(Trouble):
        run()


@contextlib.contextmanager
def fuzzer(folder: Path, seed: int) -> Iterator[ModelFuzzer]:
    """Whatever leaves this machine by itself stays away: whether the hub is there, and the owner's token. Of the catalog the starters are
    enough: a list of all takes ten times as long."""
    starters = tuple(each for each in CATALOG if each.starter)
    with (
        desk_at(folder / "home") as desk,
        patch.object(desk.downloads, "check_line", return_value=None),
        patch.object(models, "hub_token", Mock()) as token,
        patch.object(models, "hub_child", Mock()),
        patch.object(models_desk, "CATALOG", starters),
        patch.object(models_desk, "START_WAIT_S", HANGS_S),
    ):
        token.has_token.return_value, token.terms_page.return_value = False, ""
        yield ModelFuzzer(desk, folder, seed, Watch())


def report(said: str, outcome: Outcome, begun_s: float) -> int:
    print(
        f"{said} in {time.monotonic() - begun_s:.0f} s, answers {dict(sorted(outcome.statuses.items()))} {dict(outcome.ends.most_common())}"
    )
    print(f"  slowest {outcome.slowest_s:.2f} s: {outcome.slowest[:300]}", flush=True)
    return len(outcome.bad)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=600, help="of each family, for the page")
    parser.add_argument("--load", type=int, default=0, help="of each family, so many that the engine begins to load")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--only", type=int, help="one mutation, by its number, to repeat it")
    parser.add_argument("--hole", choices=holes.HOLES, action="append", default=[], help="take a guard out, to see that this is found")
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    logging.getLogger("hearth").setLevel(logging.ERROR)
    bad = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, fuzzer(Path(place).resolve(), asked.seed) as fuzz:
        engine = Engine(fuzz.folder, asked.hole)
        for hole in asked.hole:
            holes.HOLES[hole]()
        for family in asked.family or FAMILIES:
            good, begun_s = FAMILIES[family](fuzz.folder / "good"), time.monotonic()
            mutations = range(asked.mutations) if asked.only is None else range(asked.only, asked.only + 1)
            if mutations:
                outcome = fuzz.run(family, good, mutations)
                bad += report(f"{family}: {len(mutations)} mutations, {outcome.usable} still usable,", outcome, begun_s)
            if asked.load:
                begun_s = time.monotonic()
                outcome = fuzz.load(family, good, asked.load, engine, None if asked.only is None else mutations)
                bad += report(
                    f"{family}: {outcome.ends.total()} mutations for the engine, {outcome.usable} began to load,", outcome, begun_s
                )
        engine.end()
    print(f"bad answers: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
