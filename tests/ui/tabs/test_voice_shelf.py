"""The shelf of voices over its routes: listed with what is measured, heard, renamed, removed, sent and taken; for the owner alone."""

from __future__ import annotations

from pathlib import Path

from app.engine.jobs.creation import RunSummary
from app.engine.jobs.shelf import Search
from app.engine.models.voice_limits import DIA
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.ui.state.person import NOBODY, OWNER
from app.ui.tabs.voice_shelf import AUDITION, list_groups, list_shelf
from tests.support.cached_pockets import put, put_phonon
from tests.support.guests import desk_at, page_of
from tests.support.tiny_vibevoices import save_as_on_the_hub

VIBEVOICE = "vibevoice-1.5b"
FIRST = voices.list_ready_voices()[0]


def test_voices_are_listed_with_how_they_sound(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        put_phonon(desk.keeper.home, tmp_path)
        phonon, starter = list_shelf(desk, "phonon-31m", OWNER, "en")
        assert phonon["id"] == "phonon-31m" and not phonon["voices"][0]["heard"] and starter["voices"][0]["name"] == FIRST.name
        assert starter["voices"][0]["words"] and starter["voices"][0]["heard"] and not starter["voices"][0]["kept"]
        (guests,) = list_groups(desk, "phonon-31m", NOBODY, "en")
        assert guests["title"] == "" and set(guests["voices"][0]) == {"name"}, "guests are told nothing of models"


def test_a_kept_voice_is_heard_changed_sent_and_taken_again(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        home = desk.keeper.home
        voices.keep_voice(home, "Tom", Path(FIRST.prompt.path), FIRST.prompt.transcript, DIA)
        page = page_of(desk, OWNER)
        assert page.get("/hearth/voice", params={"name": "Tom"}).content[:4] == b"RIFF"
        assert page.get("/hearth/voice", params={"name": FIRST.name}).status_code == 200
        assert page.get("/hearth/voice", params={"name": "../../settings.json"}).status_code == 404
        for act, value in (("rename", "Old Tom"),):
            assert page.post(f"/hearth/voices/{act}", json={"name": "Tom", "value": value}).status_code == 200
        page.post("/hearth/voices/describe", json={"name": "Old Tom", "value": "An old sailor"})
        sent = page.get("/hearth/voice", params={"name": "Old Tom", "download": "1"})
        assert sent.content[:4] == b"RIFF" and "Old%20Tom.voice.wav" in sent.headers["content-disposition"]
        page.post("/hearth/voices/remove", json={"name": "Old Tom"})
        assert not voices.list_voices(home)
        page.post("/hearth/voices/restore", json={"name": "Old Tom"})
        took = page.post("/hearth/voice", files={"file": ("tom.wav", sent.content, "audio/wav")})
        assert took.json() == {"name": "Old Tom 2"} and [each.about for each in voices.list_voices(home)] == ["An old sailor"] * 2
        odd = page.post("/hearth/voice", files={"file": ("tom.exe", b"MZ" + bytes(100), "audio/wav")})
        assert odd.status_code == 400 and "tom.exe is no voice" in odd.json()["trouble"]
        assert page.post("/hearth/voice", data={"file": "words"}).status_code == 400
        assert (
            page.post("/hearth/voices/rename", json={"name": "Nobody", "value": "X"}).json()["trouble"]
            == "There is no saved voice named Nobody."
        )
        assert page.post("/hearth/voices/explode", json={"name": "Old Tom"}).status_code == 404


def test_a_voice_that_lies_with_a_model_speaks_a_sample(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        put_phonon(desk.keeper.home, tmp_path)
        page = page_of(desk, OWNER)
        assert page.post("/hearth/voices/speak", json={"name": "Max", "value": "phonon-31m"}).status_code == 200
        (job,) = desk.keeper.journal.list_waiting()
        assert job.request.model == "phonon-31m" and job.request.voice is not None and "read a story" in job.request.words
        assert page.post("/hearth/voices/speak", json={"name": "Nobody", "value": "phonon-31m"}).status_code == 400


def test_a_model_makes_new_voices_of_seeds_that_are_named_by_their_sound_and_kept(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        put(desk.keeper.home, "vibevoice/VibeVoice-1.5B-hf", save_as_on_the_hub(tmp_path / "vibevoice"))
        put_phonon(desk.keeper.home, tmp_path)
        page = page_of(desk, OWNER)
        assert page.get("/hearth/voices").json()["able"] == [VIBEVOICE], "others have voices of their own"
        assert page.post("/hearth/voices/audition", json={"name": "x", "value": "phonon-31m"}).status_code == 400
        assert page.post("/hearth/voices/audition", json={"name": VIBEVOICE, "value": VIBEVOICE}).status_code == 200
        jobs = desk.keeper.journal.list_waiting()
        assert {(each.request.model, each.request.words) for each in jobs} == {(VIBEVOICE, AUDITION)} and len(
            {each.request.seed for each in jobs}
        ) == 4
        for job, clip in zip(jobs[:3], (FIRST, FIRST, voices.list_ready_voices()[1]), strict=True):
            sound.write(tmp_path / "new.wav", *sound.read(Path(clip.prompt.path)))
            desk.keeper.shelf.keep(job, [tmp_path / "new.wav"], RunSummary(VIBEVOICE, seconds=5.0, whole=True))
        found = page.get("/hearth/voices").json()["auditions"]
        first, again, other = (each["name"] for each in found)
        assert again == f"{first} 2" and other != first and "," in first, "low or high, slow or quick, and a number where that is taken"
        assert page.post("/hearth/voices/keep", json={"name": first, "value": str(found[0]["id"])}).status_code == 200
        assert page.post("/hearth/voices/discard", json={"name": other, "value": str(found[2]["id"])}).status_code == 200
        (kept,) = voices.list_voices(desk.keeper.home)
        assert kept.name == first and kept.spoken_by == VIBEVOICE and "long winters" in kept.prompt.transcript
        assert [each["id"] for each in page.get("/hearth/voices").json()["auditions"]] == [found[1]["id"]]
        assert len(desk.keeper.shelf.find(Search(binned=True))) == 2, "nothing is lost"
        assert page.post("/hearth/voices/keep", json={"name": first, "value": str(found[0]["id"])}).status_code == 400
        assert page.post("/hearth/voices/keep", json={"name": first, "value": "x"}).status_code == 400


def test_guests_reach_none_of_it(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        page = page_of(desk, NOBODY)
        assert page.get("/hearth/cast").status_code == 200 and page.get("/hearth/voices").status_code == 404
        for path in ("/hearth/voices/remove", "/hearth/voices/audition", "/hearth/voice", "/hearth/voices"):
            assert page.post(path, json={"name": FIRST.name}).status_code in (404, 405)
        assert page.get("/hearth/voice", params={"name": FIRST.name}).status_code == 404
