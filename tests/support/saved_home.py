"""Make and open tests/fixtures/home-2026-11: what Hearth's folder holds after some use, as a Hearth of that time wrote it.

`python -m tests.support.saved_home FOLDER` makes it again with the code that is checked out, which is not what a fixture is for: a
Hearth that stores something otherwise gets a fixture of its own beside it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from unittest.mock import patch

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.base.paths import Home, assets, home
from app.compat.machine.chunk_curve import Curve, Point, keep_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, learn
from app.engine.jobs.events import END, PartDone
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper.keeper import Keeper
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import _Download
from app.engine.speech.text.voices import list_voices
from app.launcher import slots
from app.machines.hub import keep_port, main_folder
from app.machines.joining import certificates, join
from app.machines.joining.register import Register
from app.machines.lending import lending_folder
from app.ui.state import presets
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, Idle, until

FIXTURE: Final = TOP / "tests" / "fixtures" / "home-2026-11"
PLACES: Final = {"{{HOME}}": "", "{{ASSETS}}": assets().as_posix()}
"""In the fixture these stand for folders of the machine it is opened on; the home's own is filled in."""
MACHINE: Final = Hardware(
    kind="cuda", name="A card", capability=(8, 6), system="linux", system_version="6.8", driver="550.1", torch="2.13.0"
)
"""Its verdicts lie in the fixture, not those of the machine that made it."""
SCRIPT: Final = "[S1] The tide is out. (pause 0.5s) [S2] Then we walk. (pause 0.5s) [S1] Mind the crabs."
LONGER: Final = (
    "[S1] One boat is red. (pause 0.5s) Two boats are blue. (pause 0.5s) And the last one, far out by the old pier, has no colour at all."
)
GUEST: Final = "visitor-20bd1ac1-0123456789abcdef"
TEXTS: Final = frozenset({".json", ".sql", ".txt", ""})


# The keys of the fixture's pairing are no secret: each is made from its file's name, so that none lies in the repository.


def make_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(hashlib.sha256(f"Hearth's tests: {name}".encode()).digest()), ec.SECP256R1())


KEYS: Final = ("machines/main/authority.key", "machines/main/own.key", "machines/lending/own.key")


def write_keys(root: Path) -> None:
    for name in KEYS:
        pem = make_key(name).private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (root / name).write_bytes(pem)


def open_fixture(root: Path, fixture: Path = FIXTURE) -> Home:
    """Put a copy of the fixture into `root`, as it would lie there if it had always been there."""
    shutil.copytree(fixture, root, ignore=shutil.ignore_patterns("README.md"))
    for file in [each for each in root.rglob("*") if each.is_file() and each.suffix in TEXTS]:
        words = file.read_text("utf-8")
        for stands_for, folder in PLACES.items():
            words = words.replace(stands_for, folder or root.as_posix())
        file.write_text(words, "utf-8")
    with closing(sqlite3.connect(root / "hearth.sqlite3")) as database:
        database.executescript((root / "hearth.sql").read_text("utf-8"))
    (root / "hearth.sql").unlink()
    write_keys(root)
    return Home(root, root / "models")


# Making it.


def dump(database: Path) -> str:
    """Write tables and rows as SQL; the search's own tables are filled again by the triggers."""
    said = []
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        made = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'words\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        said += [f"{sql};" for (sql,) in connection.execute(f"{made} ORDER BY rowid")]
        for table in ("jobs", "creations"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            quoted = ", ".join(f"quote({column})" for column in columns)
            for row in connection.execute(f"SELECT {quoted} FROM {table} ORDER BY created_s"):
                said.append(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)});")
        said.append(f"PRAGMA user_version={connection.execute('PRAGMA user_version').fetchone()[0]};")
    return "\n".join(said) + "\n"


def pack(root: Path, fixture: Path) -> None:
    """Copy a home into the fixture, without what names this machine and what is only for watching."""
    with closing(sqlite3.connect(root / "hearth.sqlite3")) as database:
        database.execute("UPDATE jobs SET runner='999999:1.00'")
        database.commit()
    shutil.rmtree(fixture, ignore_errors=True)
    left_out = (
        "hearth.sqlite3*",
        "backups",
        "logs",
        "models",
        "*.lock",
        "*.key",
        "preview-*",
        "sound-*",
        "open.json",
        "open-port",
        "delivered",
        "bin",
    )
    shutil.copytree(root, fixture, ignore=shutil.ignore_patterns(*left_out))
    (fixture / "hearth.sql").write_text(dump(root / "hearth.sqlite3"), "utf-8")
    for file in [each for each in fixture.rglob("*") if each.is_file() and each.suffix in TEXTS]:
        words = file.read_text("utf-8")
        for stands_for, path in {**PLACES, "{{HOME}}": str(root), "{{TOP}}": str(TOP)}.items():
            words = words.replace(path, stands_for)
        file.write_text(words, "utf-8")
    for folder in sorted((each for each in fixture.rglob("*") if each.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def run(keeper: Keeper, job: str) -> None:
    next(event for event in keeper.follow(job) if isinstance(event, END))


def when_part_is_done(keeper: Keeper, job: str) -> None:
    next(event for event in keeper.follow(job) if isinstance(event, PartDone))


def make_ended_jobs(place: Home) -> None:
    desk = Desk(Keeper(place), Settings(place.settings))
    keeper = desk.keeper
    try:
        spoken = keeper.submit(SpeechRequest(SCRIPT, format="ogg")).id
        run(keeper, spoken)
        desk.keep_voice(keeper.shelf.list_of_job(spoken)[0].id, "Evening tide")
        voice = list_voices(place)[0].prompt
        stopped = keeper.submit(
            SpeechRequest(LONGER, model="starter-voice", voice=voice, seed=5, speed=0.9, temperature=1.2, carry_voice=False)
        ).id
        when_part_is_done(keeper, stopped)
        keeper.stop(stopped)
        run(keeper, stopped)
        painted = keeper.submit(PictureRequest("a red circle on a blue background", negative="a square", batch=2, seed=21)).id
        run(keeper, painted)
        binned = keeper.submit(PictureRequest("a green square", model="starter-painter", seed=3, steps=4, guidance=2.5)).id
        run(keeper, binned)
        run(keeper, keeper.submit(SpeechRequest("[S1] Nobody speaks this.", model="{{HOME}}/a voice that is gone")).id)
        keeper.shelf.set_favourite(keeper.shelf.list_of_job(painted)[1].id, True)
        keeper.shelf.delete(keeper.shelf.list_of_job(binned)[0].id)
        half = keeper.submit(PictureRequest("a yellow triangle", batch=2, seed=40, steps=12, preview_every=1)).id
        until(lambda: any(keeper.folder(half).glob("latent-*.safetensors")), LOADING_S)
        keeper.stop(half)
        run(keeper, half)
        cut = keeper.submit(SpeechRequest(LONGER, seed=8, loudness_lufs=None, format="flac")).id
        when_part_is_done(keeper, cut)
        until(lambda: (keeper.folder(cut) / "unfinished-001.json").is_file(), LOADING_S)
    finally:
        keeper.close()


def make_waiting_jobs(place: Home) -> None:
    """And what the desk keeps, in a window whose engine never starts."""
    desk = Desk(Idle(place), Settings(place.settings))
    keeper = desk.keeper
    try:
        spoken = keeper.find_last_script() and next(job for job in scripts(keeper) if keeper.journal.get(job).state == "finished")
        desk.jobs.latest[OWNER.name, "speech"] = spoken
        desk.jobs.redo_part(1, OWNER)
        keeper.submit(PictureRequest("a ball in the grass", model="starter-painter", seed=1), owner=GUEST)
        desk.jobs.begin_grid(PictureRequest("a white circle", seed=9), ("steps", [10, 20]), ("guidance", [2.0]), OWNER)
        lent = keeper.submit(PictureRequest("a black star", batch=2, seed=60)).id
        keeper.lend_out(lent, "starter-painter", lambda: None)
        elsewhere = place.scratch / "elsewhere.png"
        shutil.copy(next(place.creations.glob("*.png")), elsewhere)
        keeper.take_over(lent, PartDone(1, 2, "", "a black star", 61), {"picture-1.png": elsewhere}, "Study")
        make_settings(desk)
        downloads = desk.downloads
        downloads._save_record(
            _Download(BY_ID["sd15"], "none", 4_265_000_000, [("stable-diffusion-v1-5/stable-diffusion-v1-5", "0" * 64, 3_000_000)])
        )
    finally:
        keeper.close()


def scripts(keeper: Keeper) -> Iterable[str]:
    return (folder.name for folder in keeper.stores.jobs_folder.iterdir() if keeper.has_parts(folder.name))


def make_settings(desk: Desk) -> None:
    speak = {
        "seed": 77, "voice": "Evening tide", "model": "starter-voice", "speed": 1.1, "format": "mp3", "own": True, "guidance": 3.5,
        "temperature": 1.4, "top_p": 0.9, "cfg_filter": 40, "loudness": -20, "carry": False,
    }  # fmt: skip
    paint = {
        "model": "starter-painter", "width": 64, "height": 64, "steps": 12, "guidance": 3.0, "scheduler": "Euler", "batch": 2, "upscale": 2,
        "strength": 0.4, "quicker": "off",
    }  # fmt: skip
    desk.settings.put(
        {
            "speak": speak,
            "paint": paint,
            "greeted": True,
            "drafts": {"speak-text": "[S1] Not yet said.", "paint-prompt": "not yet painted"},
            "choice": {"dtype": "float32", "chunk": 128},
            "models": ["{{HOME}}/a model of my own"],
            "visitors": {"letters": 500, "share": 0.25},
            "window": {"x": 10, "y": 20, "width": 1200, "height": 800, "maximized": False, "ground": "#101418"},
            "machines": {"uses": False, "lends": False, "paused": True, "fetches": False, "seen": False},
        }
    )
    presets.save_preset(desk.settings, "speak", "Bedtime", {**speak, "speed": 0.8})
    presets.save_preset(desk.settings, "paint", "Posters", {**paint, "batch": 4})


def make_learned(place: Home) -> None:
    learn(
        place.verdicts,
        MACHINE,
        Verdict(Subject.path("linear/float16", "float16"), True, 0.001, 0.2),
        Verdict(Subject.part("denoiser", "bfloat16"), False, float("inf")),
        Verdict(Subject.fallback("sd15", "chunk"), False, seen=RunFailure("memory", 3, "float16", 4096, 8192)),
    )
    keep_curve(place, Curve("starter-painter", (Point(64, 0.5), Point(128, 0.25)), 128))


def make_pairing(place: Home) -> None:
    main, helper = main_folder(place), lending_folder(place)
    with patch.object(certificates, "_make_key", side_effect=[make_key(name) for name in KEYS]):
        certificates.make_main(main)
        id_, certificate = certificates.sign_request(main, certificates.make_request(helper))
    certificates.keep_membership(helper, (main / "authority.pem").read_text(), certificate)
    register = Register(main)
    register.add(id_, "Study")
    register.let_rest(id_, True)
    keep_port(main, 47011)
    join._keep(helper, join.Membership("Workshop", "192.0.2.7", 47012))


def make_environment(folder: Path) -> None:
    """The launcher's own, beside the home: two slots, one of them in use."""
    for name, commit in (("a", "1" * 40), ("b", "2" * 40)):
        (folder / name / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
        proof = {"name": "CPU", "torch": "2.13.0+cpu", "kind": "cpu"}
        slots.write_stamp(
            folder / name,
            digest=name * 16,
            extras={"window": ["pywebview>=6.2"]},
            build="cpu",
            because="no card",
            proof=proof,
            commit=commit,
            made="2026-11-20T10:00:00",
        )
        shutil.rmtree(folder / name / "lib")
    slots.replace_text(folder / "current", "b")
    slots.write_way_back(folder, {"slot": "a", "commit": "1" * 40})


def make(fixture: Path) -> None:
    place = home(Path(tempfile.mkdtemp()) / "home").create()
    make_ended_jobs(place)
    make_waiting_jobs(place)
    make_learned(place)
    make_pairing(place)
    make_environment(place.root / "environment")
    pack(place.root, fixture)
    shutil.rmtree(place.root.parent)


if __name__ == "__main__":
    os.environ["HEARTH_SKIP_CHECK"] = "1"
    make(Path(sys.argv[1]))
