"""Fuzz folders and files of local models, asked as the page asks. Run: python tests/fuzz_models.py --mutations 600 --seed 1 [--family sd15]"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock, patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from app.compat.machine.pretended import machine
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models.catalog import CATALOG
from app.engine.models.precheck import admit
from app.trouble import Trouble
from app.ui import routes, window
from app.ui.api import a1111, openai
from app.ui.state import models_desk
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.tabs import models, paint_form, paint_view
from app.ui.tabs.shared_controls import model_choices
from tests.support import broken_models, tiny_pictures, tiny_single_files, tiny_voices
from tests.support.guests import desk_at
from tests.support.places import TOP

HANGS_S: Final = 5.0
WINDOW_EVERY: Final = 100
"""The whole window is built for one of so many mutations; for the others, what reads a model in it."""
SCRIPTS: Final = (
    "",
    "Hello there.",
    "[S1] One, two; three. (laughs) [S2] " + "Now the ferry comes in from the fjord, slowly. " * 12 + "😀" * 40 + "x" * 900,
)


def _save_file(family: str, folder: Path) -> Path:
    return tiny_single_files.save(family, folder)[1]


FAMILIES: Final[dict[str, Callable[[Path], Path]]] = {
    **{family: lambda folder, family=family: tiny_pictures.save(family, folder / family) for family in tiny_pictures.MAKERS},
    "dia": lambda folder: tiny_voices.save_voice(folder / "dia"),
    "starter-voice": lambda folder: shutil.copytree(TOP / "assets" / "starter" / "voice", folder / "voice"),
    "sd15-file": lambda folder: _save_file("sd15", folder), "sdxl-file": lambda folder: _save_file("sdxl", folder),
}  # fmt: skip
"""Each saves a good model and returns its folder or file."""


class AsOwner:
    """Everybody is the owner; telling people apart is the guards', and tested there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, KEY: OWNER}, receive, send)


class Watch:
    """An audit hook that notes what is opened outside the folders allowed, and every connection. Python removes no hook, so it can be off."""

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] = ()
        self.seen: list[str] = []
        self.on = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
            self.seen.append(f"{event} {given[-1]!r}")
        elif event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], str | bytes | os.PathLike):
            at = os.path.realpath(os.fsdecode(given[0]))
            if not at.startswith(self.allowed):
                self.seen.append(f"{event} {at}")


@dataclass
class Outcome:
    statuses: Counter[int] = field(default_factory=Counter)
    usable: int = 0
    bad: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""


class ModelFuzzer:
    """Breaks a good model, asks the page about it, and counts what is answered."""

    def __init__(self, desk: Desk, folder: Path, seed: int, watch: Watch) -> None:
        self.desk, self.folder, self.seed, self.watch = desk, folder, seed, watch
        desk.keeper._loop.status.set(hardware=machine("t4"))
        served = [*models.routes(desk), *routes.routes(desk), *openai.routes(desk), *a1111.routes(desk)]
        self.page = TestClient(Starlette(routes=served, middleware=[Middleware(AsOwner)]), raise_server_exceptions=False)
        self.outside = broken_models.save_outside(folder / "outside")
        self.watch.allowed = (
            *(os.path.realpath(each) for each in sys.path if each),  # an import lists them
            str(TOP), os.path.realpath(sys.prefix), sys.base_prefix, sys.pycache_prefix or str(TOP), str(folder / "home"), str(folder / "broken"),
            "/proc", "/sys", "/dev/null", "/usr/share", "/usr/lib", "/etc/mime.types", "/etc/localtime", "/etc/fonts",
        )  # fmt: skip

    def run(self, family: str, good: Path, mutations: range) -> Outcome:
        outcome = Outcome()
        for index in mutations:
            chance = random.Random(f"{self.seed} {family} {index}")
            known, broken = len(outcome.bad), self.folder / "broken" / f"{index}" / good.name
            broken_models.copy(good, broken)
            told = broken_models.mutate(chance, broken, self.outside)
            self.ask_all(
                f"{family} {index}: {'; '.join(told)}",
                str(broken),
                "speech" if family in ("dia", "starter-voice") else "picture",
                index,
                outcome,
            )
            shutil.rmtree(broken.parent)
            for each in outcome.bad[known:]:
                print(f"  BAD {each[:600]}", flush=True)
            if (index + 1) % 100 == 0:
                print(f"{family}: {index + 1} mutations, {len(outcome.bad)} bad answers", flush=True)
        return outcome

    def ask_all(self, name: str, path: str, kind: str, index: int, outcome: Outcome) -> None:
        desk, page = self.desk, self.page
        tab = "speak" if kind == "speech" else "paint"
        self.time(f"{name} -> add", lambda: page.post("/hearth/models/add", json={"value": path}), outcome)
        desk.settings.put({"models": [path], tab: {"model": path}})
        listed = self.time(f"{name} -> models", lambda: page.get("/hearth/models"), outcome)
        if listed is not None and listed.status_code == 200:
            view = listed.json()
            usable, missing = ([each[key] for each in view[part]] for part, key in (("models", "path"), ("missing", "path")))
            outcome.usable += path in usable
            if (path in usable) + (path in missing) != 1:
                outcome.bad.append(f"{name} -> it is not in the list once")
        for asked, ask in {
            "offer": lambda: page.get("/hearth/offer", params={"model": path}),
            "machine": lambda: page.get("/hearth/machine", params={"model": path}),
            "of programs": lambda: page.get("/v1/models"),
            "of A1111's": lambda: page.get("/sdapi/v1/sd-models"),
            **{
                f"check of {len(text)}": lambda text=text: page.post("/hearth/check", json={"kind": kind, "text": text, "model": path})
                for text in SCRIPTS
            },
            "precheck": lambda: refuse_or(lambda: admit(SpeechRequest(SCRIPTS[-1], path), desk.keeper.home)),
            "forecast": lambda: refuse_or(lambda: paint_view.forecast_html(desk, PictureRequest("a boat", path), OWNER, "en")),
            "start": lambda: self.start(path, kind, index),
            "remove": lambda: page.post("/hearth/models/forget", json={"value": path}),
        }.items():
            self.time(f"{name} -> {asked}", ask, outcome)
        if path in desk.settings.get("models"):
            outcome.bad.append(f"{name} -> it cannot be removed")

    def start(self, path: str, kind: str, index: int) -> None:
        """Do what a start does with a chosen model."""
        desk = Desk(self.desk.keeper, self.desk.settings)
        if index % WINDOW_EVERY == 0:
            window.build(desk)
        paint_form.default_size(paint_form.find_model(desk, path if kind == "picture" else ""))
        for each in ("speech", "picture"):
            model_choices(desk, each)

    def time(self, name: str, ask: Callable[[], Any], outcome: Outcome) -> Any:
        """Ask in a thread, as an answer may never come."""
        answers: list[Any] = []
        faults: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(ask())
            except Exception as fault:
                faults.append(fault)

        asking = threading.Thread(target=run, daemon=True)
        self.watch.seen.clear()
        self.watch.on = True
        begun_s = time.monotonic()
        asking.start()
        asking.join(HANGS_S)
        took_s = time.monotonic() - begun_s
        if asking.is_alive():
            outcome.bad.append(f"{name} hangs")
            asking.join(60)
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
    ):
        token.has_token.return_value, token.terms_page.return_value = False, ""
        fuzz = ModelFuzzer(desk, folder, seed, Watch())
        with fuzz.page:
            yield fuzz


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=600, help="of each family")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--only", type=int, help="one mutation, by its number, to repeat it")
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    logging.getLogger("hearth").setLevel(logging.ERROR)
    bad = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, fuzzer(Path(place).resolve(), asked.seed) as fuzz:
        for family in asked.family or FAMILIES:
            good, begun_s = FAMILIES[family](fuzz.folder / "good"), time.monotonic()
            outcome = fuzz.run(family, good, range(asked.mutations) if asked.only is None else range(asked.only, asked.only + 1))
            count, took_s = asked.mutations if asked.only is None else 1, time.monotonic() - begun_s
            print(
                f"{family}: {count} mutations in {took_s:.0f} s, {outcome.usable} still usable, answers {dict(sorted(outcome.statuses.items()))}"
            )
            print(f"  slowest {outcome.slowest_s:.2f} s: {outcome.slowest[:300]}")
            bad += len(outcome.bad)
            sys.stdout.flush()
    print(f"bad answers: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
