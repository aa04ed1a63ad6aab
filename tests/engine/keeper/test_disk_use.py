"""What takes room on the disk: large, double, long unused; kept once; and a shelf or a model whose disk is unplugged."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.__main__ import main
from app.base.other_disk import MARK, NOTE, hidden, move
from app.base.paths import Home, home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.events import Finished
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import Actor, Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.jobs.shelf import Search
from app.engine.jobs.tasks import Describe, Enlarge, Hear, Pick
from app.engine.keeper import disk_use
from app.engine.keeper.disk_use import Double, find_doubles, keep_one, list_uses
from app.engine.keeper.keeper import Keeper
from app.engine.models import on_disk
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Downloads
from app.engine.models.picture_readers import DEPTH, DESCRIBER, PICKER
from app.engine.models.swin2sr import ROWS as SWIN2SR
from tests.engine.keeper.test_broken_database import make_home
from tests.engine.keeper.test_full_disk import SCRIPT, last_of
from tests.support import light_engine
from tests.support.hub import cached
from tests.support.waiting import Idle, until

SD = BY_ID["sd15"]
LONG_AGO = time.time() - 200 * 86_400


def put_model(place: Home, size: int = 2_000_000) -> Path:
    """A repository as the hub's own programs keep it."""
    assert SD.source is not None
    snapshot = cached(place.models, SD.source.repo)
    folder = on_disk.repo_folder(place.models, SD.source.repo)
    (folder / "blobs").mkdir()
    (folder / "blobs/abc").write_bytes(bytes(size))
    (snapshot / "x.safetensors").symlink_to("../../blobs/abc")
    return folder


def named(place: Home, name: str) -> disk_use.Use:
    return next(each for each in list_uses(place, BY_ID.values()) if each.name == name)


def test_what_is_large_comes_first_and_what_nobody_used_says_so(tmp_path: Path) -> None:
    place = make_home(tmp_path, pictures=2, jobs=0)
    folder = put_model(place)
    (place.models / "models--of--others").mkdir()
    (place.models / "models--of--others/weights").write_bytes(bytes(3_000_000))
    uses = list_uses(place, BY_ID.values())
    assert [each.name for each in uses[:2]] == ["others", SD.source.repo]  # type: ignore[union-attr]
    model = uses[1]
    assert model.bytes >= 2_000_000 and model.movable and not model.unused
    assert named(place, "creations").bytes == sum(each.stat().st_size for each in place.creations.glob("2*"))
    for each in (*folder.rglob("*"),):
        if not each.is_symlink():
            os.utime(each, (LONG_AGO, LONG_AGO))
    assert named(place, model.name).unused
    shelf = Keeper(place)
    try:
        shelf.database.write("UPDATE creations SET model='sd15', created_s=?", time.time())
        assert not named(place, model.name).unused, "a picture of this week was made with it"
    finally:
        shelf.close()


def test_what_a_cast_a_guide_and_tasks_used_is_not_called_unused(tmp_path: Path) -> None:
    """Each counted from its download alone, so what was used daily looked as if it could go."""
    place = make_home(tmp_path, pictures=0, jobs=0)
    spoken = SpeechRequest("[Anna] Hi. [Ben] Ho.", "starter-voice", cast=(Actor("Anna", model="pocket-tts"), Actor("Ben")))
    guided = PictureRequest("a ball", "sd15", guide="guide.png", control="depth.safetensors", guide_as="depth")
    double, fourfold = (str(tmp_path / f"models--caidas--{row.id}" / "snapshots" / ("a" * 40)) for row in SWIN2SR)
    larger = PictureRequest("a ball", "sdxl", upscale=2, enlarger=double)
    with closing(Idle(place)) as keeper:
        for request in (spoken, guided, larger, PictureRequest("a ball", "sdxl", guide_as="edges")):
            keeper.journal.queue(request, Choice(), OWNER)
        for task in (
            Hear("whisper-tiny-en", (), ()),
            Pick(PICKER.id, "", 0.5, 0.5),
            Describe(DESCRIBER.id, ""),
            Enlarge("p.png", 4, fourfold),
        ):
            keeper.start_task(task)
    used = disk_use.read_last_use(place)
    lately = {each for each, at in used.items() if at > time.time() - 600}
    assert lately >= {
        "starter-voice",
        "pocket-tts",
        "sd15",
        "sdxl",
        DEPTH.id,
        PICKER.id,
        DESCRIBER.id,
        "whisper-tiny-en",
        *(row.id for row in SWIN2SR),
    }
    assert set(used) <= {*BY_ID, "starter-voice", "starter-painter"} and "" not in used


def test_a_file_that_came_today_with_an_old_time_is_not_called_unused(tmp_path: Path) -> None:
    place = make_home(tmp_path, pictures=0, jobs=0)
    place.loras.mkdir()
    (place.loras / "a.safetensors").write_bytes(bytes(disk_use.SELDOM_BYTES))
    os.utime(place.loras / "a.safetensors", (LONG_AGO, LONG_AGO))
    assert not named(place, "loras").unused and "not used" not in str(named(place, "loras").why)


def test_of_what_is_used_file_by_file_the_unused_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_use, "_read_came", lambda facts: facts.st_mtime)  # nothing sets the other times
    place = make_home(tmp_path, pictures=0, jobs=0)
    folders = {
        "loras": place.loras,
        "enlargers": place.enlargers,
        "controlnet": place.controls,
        "ipadapter": place.adapters,
        "voices": place.voices,
    }

    def seldom() -> dict[str, bool]:
        return {name: f"{name}.used" in str(named(place, name).why) for name in folders}

    for name, folder in folders.items():
        folder.mkdir(exist_ok=True)
        for file in (folder / f"{name}.used", folder / f"{name}.never"):
            file.write_bytes(bytes(disk_use.SELDOM_BYTES))
            os.utime(file, (LONG_AGO, LONG_AGO))
        assert named(place, name).unused and f"not used for half a year: {name}.used, {name}.never" in str(named(place, name).why)
    path = {name: str(folder / f"{name}.used") for name, folder in folders.items()}
    voice = VoicePrompt(path["voices"], "Hi.")
    picture = PictureRequest("a ball", "sdxl", loras=(Lora(path["loras"]),), upscale=2, enlarger=path["enlargers"])
    with closing(Idle(place)) as keeper:
        for request in (
            replace(picture, guide="g.png", control=path["controlnet"], reference="r.png", adapter=path["ipadapter"]),
            SpeechRequest("[Anna] Hi.", "dia", cast=(Actor("Anna", voice=voice),)),
        ):
            keeper.journal.queue(request, Choice(), OWNER)
        assert seldom() == dict.fromkeys(folders, False)
        assert all(f": {name}.never." in str(named(place, name).why) and not named(place, name).unused for name in folders)
        keeper.start_task(Enlarge("p.png", 4, str(place.enlargers / "enlargers.never")))
    assert named(place, "enlargers").why == say("disk.yours", "You put them there."), "a task used it"


def test_what_an_earlier_move_left_is_known_by_the_shelfs_list_or_as_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = make_home(tmp_path / "home", pictures=2, jobs=0)
    place.loras.mkdir()
    (place.loras / "a.safetensors").write_bytes(b"a")
    for folder in (place.creations, place.loras):
        move(folder, tmp_path / "E/Hearth" / folder.name)
        assert MARK not in [path.name for path, _ in disk_use._list_files(folder)], "which came now, and is no file of theirs"
        (tmp_path / "E/Hearth" / folder.name / MARK).unlink()
        hidden(folder, NOTE).unlink()
    (tmp_path / "E").rename(tmp_path / "F")
    for name, file in (("creations", "holiday.jpg"), ("loras", "b.safetensors")):
        (tmp_path / "others" / name).mkdir(parents=True)
        (tmp_path / "others" / name / file).write_bytes(b"b")
        for wrong in ("others", "~nobodyatall/x", "x" * 300):
            assert main(["disk", "here", name, wrong if wrong[0] == "~" else str(tmp_path / wrong), "--home", str(place.root)]) == 2
            assert "there is nothing that was in" in capsys.readouterr().err
        assert main(["disk", "here", name, str(tmp_path / "F"), "--home", str(place.root)]) == 0


def test_doubles_are_found_by_all_they_hold_and_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = home(tmp_path / "home").create()
    place.loras.mkdir()
    place.enlargers.mkdir()
    ends = bytes(1 << 20)
    for file, middle in (
        (place.loras / "a.safetensors", b"1"),
        (place.enlargers / "b.safetensors", b"1"),
        (place.loras / "c.safetensors", b"2"),
    ):
        file.write_bytes(ends + middle * 100 + ends)
    read, hash_all = list[Path](), disk_use._hash_all

    def note(path: Path, halt: threading.Event) -> str:
        read.append(path)
        return hash_all(path, halt)

    monkeypatch.setattr(disk_use, "_hash_all", note)
    (place.loras / "other size.safetensors").write_bytes(ends * 2)
    (double,) = find_doubles(place, BY_ID.values(), threading.Event())
    assert {double.kept.name, double.others[0].name} == {"a.safetensors", "b.safetensors"} and len(read) == 3, "no other size is read"
    assert keep_one(place, double) == double.bytes
    assert double.kept.samefile(double.others[0]) and not find_doubles(place, BY_ID.values(), threading.Event())
    double.others[0].unlink()
    double.others[0].write_bytes(b"changed meanwhile")
    with pytest.raises(Trouble, match="they changed meanwhile"):
        keep_one(place, double)
    foreign = tmp_path / "of others.safetensors"
    foreign.write_bytes(double.kept.read_bytes())
    with pytest.raises(Trouble):
        keep_one(place, Double(double.kept, (foreign,), double.bytes))
    assert not foreign.samefile(double.kept), "what lies elsewhere is not Hearth's to change"


def test_a_moved_model_is_found_and_an_unplugged_one_is_said_and_not_got_again(tmp_path: Path) -> None:
    place = home(tmp_path / "home").create()
    folder = put_model(place)
    held = on_disk.measure_bytes(place, SD)
    assert main(["disk", "move", SD.source.repo, str(tmp_path / "nowhere"), "--home", str(place.root)]) == 2  # type: ignore[union-attr]
    (tmp_path / "disk").mkdir()
    assert main(["disk", "move", SD.source.repo, str(tmp_path / "disk"), "--home", str(place.root)]) == 0  # type: ignore[union-attr]
    assert folder.is_symlink() and on_disk.measure_bytes(place, SD) == held
    (tmp_path / "disk").rename(tmp_path / "drawer")
    assert on_disk.find_away(place, SD) == folder and named(place, SD.source.repo).away  # type: ignore[union-attr]
    downloads = Downloads(place)
    with pytest.raises(Trouble, match="not connected"):
        downloads.start(SD)
    with pytest.raises(Trouble, match="not connected"):
        downloads.remove(SD, BY_ID.values())
    assert folder.is_symlink(), "nothing is forgotten"
    (tmp_path / "drawer").rename(tmp_path / "disk")
    assert downloads.remove(SD, BY_ID.values()) == held
    assert not os.path.lexists(folder) and not (tmp_path / "disk/Hearth/models" / folder.name).exists()


@pytest.mark.slow
def test_a_shelf_whose_disk_is_unplugged_keeps_its_list_and_jobs_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light_engine.replace_engines(monkeypatch)
    place = make_home(tmp_path / "home", pictures=3, jobs=0)
    move(place.creations, tmp_path / "disk/creations")
    (tmp_path / "disk").rename(tmp_path / "drawer")
    keeper = Keeper(home(place.root).create())
    try:
        until(lambda: keeper.state.obstacle is not None)
        assert "which is not connected" in str(keeper.state.obstacle)
        shown = keeper.shelf.find(Search(most=-1))
        assert shown and {each.condition for each in shown} == {"missing"}
        binned = len(keeper.shelf.find(Search(binned=True)))
        for act in (lambda: keeper.shelf.delete(shown[0].id), keeper.empty_bin):
            with pytest.raises(Trouble, match="not connected"):
                act()
        job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
        (tmp_path / "drawer").rename(tmp_path / "disk")
        assert isinstance(last_of(keeper, job), Finished)
        assert not [each for each in keeper.shelf.find(Search(most=-1)) if each.condition], "all of it is there again"
        assert len(keeper.shelf.find(Search(binned=True))) == binned
    finally:
        keeper.close()


def test_the_command_lists_and_refuses_what_cannot_be_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = make_home(tmp_path, pictures=2, jobs=0)
    assert main(["disk", "--home", str(place.root)]) == 0
    assert "creations  The shelf" in capsys.readouterr().out
    assert main(["disk", "move", "bin", str(tmp_path), "--home", str(place.root)]) == 2
    assert "can be moved is called bin" in capsys.readouterr().err
    assert main(["disk", "move", "creations", "--home", str(place.root)]) == 2
    assert "disk move NAME FOLDER" in capsys.readouterr().err
