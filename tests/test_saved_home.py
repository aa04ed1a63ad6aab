"""What earlier versions stored opens as before: jobs, parts, settings, shelf, voices, verdicts, pairings, the launcher's own files.

The fixture is older than the code: tests/fixtures/home-2026-11, see the README beside it."""

from __future__ import annotations

import io
import json
import os
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.base.paths import Home
from app.compat.machine.chunk_curve import Curve, Point, read_curve
from app.compat.machine.verdicts import RunFailure, Subject, load
from app.engine.jobs.events import Failed, Finished, PartDone, Step
from app.engine.jobs.journal import Job
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.shelf import Search
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.made_from import read_request
from app.engine.models.chosen import read_choice, read_chunk
from app.engine.speech.text.voices import list_voices
from app.launcher import slots
from app.ui.state import presets
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import read_allowance
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from tests.support.places import TOP
from tests.support.saved_home import GUEST, LONGER, MACHINE, SCRIPT, open_fixture
from tests.support.waiting import Idle

WORDS = ("[S1] The tide is out.", "[S2] Then we walk.", "[S1] Mind the crabs.")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return open_fixture(tmp_path / "home")


@pytest.fixture
def desk(place: Home) -> Iterator[Desk]:
    """As the window opens it, with an engine that never starts."""
    idle = Idle(place)
    yield Desk(idle, Settings(place.settings))
    idle.close()


def list_jobs(keeper: Keeper) -> list[Job]:
    ids = [row["id"] for row in keeper.database.query("SELECT id FROM jobs ORDER BY created_s")]
    return [keeper.journal.get(id_) for id_ in ids]


def find_job(keeper: Keeper, words: str, state: str) -> Job:
    (found,) = [
        job
        for job in list_jobs(keeper)
        if words == (job.request.text if isinstance(job.request, SpeechRequest) else job.request.prompt) and job.state == state
    ]
    return found


def test_jobs_and_their_states(desk: Desk) -> None:
    told = [
        (job.request.text if isinstance(job.request, SpeechRequest) else job.request.prompt, job.state) for job in list_jobs(desk.keeper)
    ]
    assert told == [
        (SCRIPT, "finished"),
        (LONGER, "stopped"),
        ("a red circle on a blue background", "finished"),
        ("a green square", "finished"),
        ("[S1] Nobody speaks this.", "failed"),
        ("a yellow triangle", "stopped"),
        (LONGER, "interrupted"),
        (SCRIPT, "interrupted"),
        ("a ball in the grass", "interrupted"),
        ("a white circle", "interrupted"),
        ("a white circle", "interrupted"),
        ("a black star", "interrupted"),
    ]
    failed = desk.keeper.get_progress(find_job(desk.keeper, "[S1] Nobody speaks this.", "failed").id).end
    assert isinstance(failed, Failed) and "a voice that is gone" in str(failed.sentence)
    assert find_job(desk.keeper, "a ball in the grass", "interrupted").owner == GUEST


def test_requests_are_as_they_were_asked(desk: Desk) -> None:
    voice = list_voices(desk.keeper.home)[0].prompt
    stopped = find_job(desk.keeper, LONGER, "stopped").request
    assert stopped == SpeechRequest(LONGER, model="starter-voice", voice=voice, seed=5, speed=0.9, temperature=1.2, carry_voice=False)
    assert find_job(desk.keeper, LONGER, "interrupted").request == SpeechRequest(LONGER, seed=8, loudness_lufs=None, format="flac")
    cut = find_job(desk.keeper, "a yellow triangle", "stopped").request
    assert cut == PictureRequest("a yellow triangle", batch=2, seed=40, steps=12, preview_every=1)


def test_parts_can_be_heard_and_redone(desk: Desk) -> None:
    spoken = find_job(desk.keeper, SCRIPT, "finished")
    parts = desk.keeper.get_progress(spoken.id).parts
    assert tuple(part.text for part in parts) == WORDS and all(part.whole and part.seconds > 0.3 for part in parts)
    seed = int((desk.keeper.folder(spoken.id) / "seed").read_text())
    assert [part.seed for part in parts] == [seed, seed + 1, seed + 2]
    desk.jobs.latest[OWNER.name, "speech"] = spoken.id
    changed = desk.jobs.match_script(SCRIPT.replace("crabs", "gulls"), OWNER)
    assert (
        changed is not None and changed.only_parts == (2,) and changed.keep == (parts[0].path, parts[1].path, "") and changed.seed == seed
    )
    again = desk.keeper.journal.get(desk.jobs.redo_part(1, OWNER)).request
    waited = find_job(desk.keeper, SCRIPT, "interrupted").request
    assert isinstance(again, SpeechRequest) and isinstance(waited, SpeechRequest)
    assert (again.only_parts, again.keep) == (waited.only_parts, waited.keep) == ((1,), tuple(part.path for part in parts))
    stopped = find_job(desk.keeper, LONGER, "stopped")
    assert [part.index for part in desk.keeper.get_progress(stopped.id).parts if part.whole] == [0]


def test_the_shelf_with_its_marks(desk: Desk) -> None:
    shelf = desk.keeper.shelf
    found = shelf.find(Search())
    assert [(each.kind, each.path.suffix, each.condition) for each in found] == [
        ("picture", ".png", ""),
        ("picture", ".png", ""),
        ("picture", ".png", ""),
        ("speech", ".wav", ""),
        ("speech", ".ogg", ""),
    ]
    assert [each.id for each in found if each.favourite] == [found[1].id] and all(each.owner == "owner" for each in found)
    assert [each.model for each in found] == ["starter-painter"] * 3 + ["starter-voice"] * 2
    assert [each.text for each in shelf.find(Search("blue circ"))] == ["a red circle on a blue background"] * 2
    assert [each.whole for each in shelf.find(Search("PIER"))] == [False]
    (binned,) = shelf.find(Search(binned=True))
    assert binned.text == "a green square" and binned.path.is_file() and not binned.condition
    shelf.restore(binned.id)
    assert shelf.get(binned.id).path.parent == desk.keeper.home.creations


def test_settings_come_back_from_a_creation(desk: Desk) -> None:
    _, second, first, stopped, spoken = map(read_request, desk.keeper.shelf.find(Search()))
    wanted = PictureRequest("a red circle on a blue background", negative="a square", seed=21)
    assert isinstance(first, PictureRequest) and isinstance(second, PictureRequest) and first.steps and first.width
    left_open = {
        "steps": first.steps,
        "width": first.width,
        "height": first.height,
        "guidance": first.guidance,
        "scheduler": first.scheduler,
    }
    assert first == replace(wanted, **left_open) and second == replace(wanted, **left_open, seed=22)  # type: ignore[arg-type]
    assert isinstance(spoken, SpeechRequest) and isinstance(stopped, SpeechRequest)
    assert (spoken.text, spoken.format) == (SCRIPT, "ogg") and spoken.seed is not None
    assert (stopped.seed, stopped.speed, stopped.temperature, stopped.carry_voice) == (5, 0.9, 1.2, False)


def test_what_was_chosen_is_chosen(desk: Desk) -> None:
    speak, paint = (desk.settings.get(tab) for tab in ("speak", "paint"))
    assert (speak["seed"], speak["voice"], speak["format"], speak["loudness"], speak["carry"]) == (77, "Evening tide", "mp3", -20, False)
    assert (paint["width"], paint["scheduler"], paint["upscale"], paint["quicker"]) == (64, "Euler", 2, "off")
    assert presets.find_values(desk.settings, "speak", "own:Bedtime") == {**speak, "speed": 0.8}
    assert presets.find_values(desk.settings, "paint", "own:Posters") == {**paint, "batch": 4}
    assert desk.settings.get("drafts") == {"speak-text": "[S1] Not yet said.", "paint-prompt": "not yet painted"}
    assert desk.settings.get("window")["ground"] == "#101418" and desk.settings.get("greeted") is True
    assert (read_allowance(desk.settings.get("visitors")).letters, read_allowance(desk.settings.get("visitors")).share) == (500, 0.25)
    choice = read_choice(desk.keeper.home)
    assert (choice.dtype, read_chunk(desk.keeper.home), desk.keeper.chunk) == ("float32", 128, 128)
    assert desk.settings.get("models") == [f"{desk.keeper.home.root}/a model of my own"]
    assert desk.jobs.grids[OWNER.name].columns == ("10", "20") and len(desk.jobs.grids[OWNER.name].jobs[0]) == 2


def test_a_kept_voice_is_offered(place: Home) -> None:
    (voice,) = list_voices(place)
    assert voice.name == "Evening tide" and voice.seconds > 1 and voice.spoken_by == "starter-voice"
    assert voice.prompt.transcript == " ".join(WORDS)


def test_what_the_machine_has_taught(place: Home) -> None:
    found = load(place.verdicts, MACHINE)
    assert found[Subject.path("linear/float16", "float16")].passed and not found[Subject.part("denoiser", "bfloat16")].passed
    assert found[Subject.fallback("sd15", "chunk")].seen == RunFailure("memory", 3, "float16", 4096, 8192)
    assert read_curve(place, "starter-painter") == Curve("starter-painter", (Point(64, 0.5), Point(128, 0.25)), 128)


def test_a_paused_download_is_listed(desk: Desk) -> None:
    (paused,) = desk.downloads.list_status()
    assert paused.state == "paused"


def test_both_sides_of_a_pairing(place: Home) -> None:
    pytest.importorskip("cryptography")
    from app.machines.hub import main_folder, read_port
    from app.machines.joining.certificates import make_main, read_id
    from app.machines.joining.join import find_membership
    from app.machines.joining.register import Register
    from app.machines.lending import lending_folder

    main, helper = main_folder(place), lending_folder(place)
    before = {each.name: each.read_bytes() for each in main.iterdir()}
    identity = make_main(main)
    assert {each.name: each.read_bytes() for each in main.iterdir()} == before, "the authority that helpers believe is kept"
    (machine,) = Register(main).list_machines()
    found = find_membership(helper)
    assert found is not None and (found[0].name, found[0].host, found[0].port) == ("Workshop", "192.0.2.7", 47012)
    assert (machine.name, machine.resting, machine.left) == ("Study", True, False) and read_port(main) == 47011
    assert machine.id == read_id(found[1].certificate.read_text())
    shake_hands(identity.server_context(), found[1].client_context())


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raise ssl.SSLError unless each side lets the other in."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [server.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server)]
    for _ in range(4):
        waiting = []
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting.append(side)
        if not waiting:
            return
    raise AssertionError("the handshake never ends")


def test_the_launchers_environment(place: Home) -> None:
    folder = place.root / "environment"
    slot = slots.current_slot(folder)
    for each in ("a", "b"):
        python = slots.python_of(folder / each)
        python.parent.mkdir()
        python.touch()
        (folder / each / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    said = slots.read_stamp(slot)
    assert slot.name == "b" and said["digest"] == "b" * 16 and said["build"] == "cpu" and said["commit"] == "2" * 40
    assert slots.read_extras(said) == {"window": ["pywebview>=6.2"]} and slots.read_way_back(folder) == {"slot": "a", "commit": "1" * 40}


def test_what_another_machine_was_at_waits_again_by_itself(desk: Desk) -> None:
    lent = find_job(desk.keeper, "a black star", "interrupted")
    desk.keeper.resume_lent_out()
    assert [job.id for job in desk.keeper.journal.list_waiting()] == [lent.id]
    assert [part.index for part in desk.keeper.get_progress(lent.id).parts] == [1]


@pytest.mark.slow
@pytest.mark.long
def test_the_queue_goes_on_from_the_last_part_and_step(place: Home) -> None:
    """With the real engine, which knows what it made by keys of everything that went into it."""
    keeper = Keeper(place)
    try:
        spoken, painted = find_job(keeper, LONGER, "interrupted").id, find_job(keeper, "a yellow triangle", "stopped").id
        made = keeper.folder(spoken) / "part-000.wav"
        before = made.stat().st_mtime_ns, made.read_bytes()
        for job in (spoken, painted):
            keeper.resume(job)
        told = {job: [*keeper.follow(job)] for job in (spoken, painted)}
        for job, count in ((spoken, 1), (painted, 3)):  # the first picture was kept as it was at the stop
            assert isinstance(told[job][-1], Finished), told[job][-1]
            assert len(keeper.shelf.list_of_job(job)) == count
        assert (made.stat().st_mtime_ns, made.read_bytes()) == before
        assert {event.index for event in told[spoken] if isinstance(event, PartDone)} == {0, 1, 2}
        assert min(event.done for event in told[painted] if isinstance(event, Step) and event.part == 1) > 1, "from the checkpoint on"
    finally:
        keeper.close()


THEN: Final = "8dacea32"
"""The fixture was made by the code of this commit."""
OPENED_THEN: Final = """
import json, sys
from pathlib import Path
from app.paths import home
from app.engine.jobs.shelf import Search, Shelf
from app.engine.process.open_database import open_database

place = home(Path(sys.argv[1]))
database = open_database(place, alone=True)
shelf = Shelf(database, place.creations)
found = shelf.find(Search())
shelf.set_favourite(found[0].id, not found[0].favourite)
print(json.dumps([[each.text, str(each.path)] for each in found]))
database.close()
"""


def test_the_code_of_then_opens_what_this_one_leaves(place: Home, tmp_path: Path) -> None:
    """As after `start.py back`: nothing is put aside, though there are albums now."""
    idle = Idle(place)
    shelf = idle.shelf
    before = shelf.find(Search())
    idle.gallery.put(before[:1], idle.gallery.make_album("reds"))
    idle.close()
    packed = subprocess.run(["git", "archive", THEN, "app"], cwd=TOP, capture_output=True)
    if packed.returncode:
        pytest.skip("this copy has no history")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(tmp_path / "then", filter="data")
    command = [sys.executable, "-c", OPENED_THEN, str(place.root)]
    told = subprocess.run(command, cwd=tmp_path / "then", capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ""})
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == [[each.text, str(each.path)] for each in before]
    assert not [*place.root.glob("*.damaged")]
    again = Idle(place)
    assert [each.favourite for each in again.shelf.find(Search())] == [not before[0].favourite, *(each.favourite for each in before[1:])]
    assert [album.name for album in again.gallery.list_albums()] == ["reds"]
    again.close()
