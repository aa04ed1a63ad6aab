"""Parts of an earlier script: opened from the shelf, redone though some are missing, taken over where the script changed; each by whose they are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.base.duration import word_duration
from app.base.trouble import Trouble
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.journal import State
from app.engine.jobs.request import SpeechRequest
from app.ui import routes
from app.ui.state import guest_limits
from app.ui.state.desk import Desk
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs import shelf, speak_view
from tests.support import light_engine
from tests.support.both_servers import CPU
from tests.support.guests import desk_at

WORDS = ("One is warm.", "Two is cold.", "Three is dry.")
GUEST, STRANGER = Person("visitor-1-a", False), Person("visitor-2-b", False)


def script(*words: str) -> str:
    return "[S1] " + " (pause 0.2s) ".join(words)


def speak(
    desk: Desk, parts: int = 3, person: Person = OWNER, state: State = "finished", seed: int | None = 7, rate: float = 0.0
) -> tuple[str, int]:
    """The job of a script that was spoken as far as that, and its creation. `rate`: frames a second."""
    job = desk.keeper.journal.queue(SpeechRequest(script(*WORDS), seed=seed), desk.machine.read_choice(OWNER), person.name)
    desk.keeper.journal.begin(job.id)
    for index in range(parts):
        light_engine.speak(desk.keeper.folder(job.id), index, f"[S1] {WORDS[index]}")
    shutil.copy(desk.keeper.folder(job.id) / "part-000.wav", result := desk.keeper.folder(job.id) / "speech.wav")
    (made,) = desk.keeper.shelf.keep(job, [result], RunSummary("starter-voice", seconds=1.5, rate=rate, whole=state == "finished"))
    desk.keeper.journal.end(job.id, state)
    return job.id, made.id


def waiting(desk: Desk) -> SpeechRequest:
    request = desk.keeper.journal.list_waiting()[-1].request
    assert isinstance(request, SpeechRequest)
    return request


def names(keep: tuple[str, ...]) -> list[str]:
    return [path and Path(path).name for path in keep]


def test_a_new_start_shows_the_last_script_and_the_shelf_an_earlier_one(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        (first, creation), (last, _) = speak(desk), speak(desk, 1, state="stopped")
        speak(desk, person=GUEST)
    with desk_at(tmp_path) as desk:
        assert desk.jobs.find_current("speech", OWNER) == last
        view = speak_view.job_view(desk, last, "en")
        assert (
            [part["state"] for part in view["parts"]] == ["done", "waits", "waits"]
            and (ended := view["end"])
            and ended["kind"] == "stopped"
        )
        desk.jobs.open_parts(creation, OWNER)
        view = speak_view.job_view(desk, desk.jobs.find_current("speech", OWNER), "en")
        assert view["job"] == first and [part["text"] for part in view["parts"]] == [f"[S1] {words}" for words in WORDS]
        assert [each["id"] for each in view["results"]] == [creation]
        desk.jobs.begin(SpeechRequest("[S1] Another."), OWNER)
        with pytest.raises(Trouble, match="still being spoken"):
            desk.jobs.open_parts(creation, OWNER)
        desk.jobs.stop("speech", OWNER)
        shutil.rmtree(desk.keeper.folder(first))
        with pytest.raises(Trouble, match="not kept any more"):
            desk.jobs.open_parts(creation, OWNER)


@pytest.mark.parametrize("cut", [False, True])
def test_a_part_of_a_stopped_script_is_redone_by_the_model_that_spoke_it(tmp_path: Path, cut: bool) -> None:
    """What the stop cut off is spoken whole with it: it was missing from the result."""
    with desk_at(tmp_path) as desk:
        job, creation = speak(desk, 2, state="stopped")
        if cut:
            light_engine.speak(desk.keeper.folder(job), 2, f"[S1] {WORDS[2]}", whole=False)
        desk.jobs.open_parts(creation, OWNER)
        if not cut:
            with pytest.raises(Trouble, match="no finished part"):
                desk.jobs.redo_part(2, OWNER)
        desk.jobs.redo_part(1, OWNER)
        asked = waiting(desk)
        assert asked.only_parts == ((1, 2) if cut else (1,))
        assert names(asked.keep) == ["part-000.wav", "part-001.wav", "part-002.wav" if cut else ""], "what a stop comes before stays"
        assert asked.model == "starter-voice" and asked.seed is None and str(desk.keeper.folder(job)) in asked.keep[0]
        assert speak_view.job_view(desk, desk.jobs.find_current("speech", OWNER), "en")["taken"].startswith(
            f"Spoken for this result: {'2-3' if cut else '2'}."
        )
        with pytest.raises(Trouble, match="no finished part"):
            desk.jobs.redo_part(0, OWNER)


def test_a_part_of_a_list_that_is_not_shown_any_more_is_no_part_of_another_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page had not heard yet of the script that was opened in another tab, or it is opened in this moment."""
    with desk_at(tmp_path) as desk:
        shown, _ = speak(desk)
        _, other = speak(desk)
        desk.jobs.open_parts(other, OWNER)
        with pytest.raises(Trouble, match="Another script"):
            desk.jobs.redo_part(1, OWNER, shown)
        assert not desk.keeper.journal.list_waiting()
        desk.jobs.show_script(shown, OWNER)
        scripts = iter([desk.jobs.find_ended_script(OWNER)])
        desk.jobs.open_parts(other, OWNER)
        later = desk.jobs.find_ended_script(OWNER)
        monkeypatch.setattr(JobsDesk, "find_ended_script", lambda *asked: next(scripts, later))
        desk.jobs.redo_part(1, OWNER, shown)
        assert str(desk.keeper.folder(shown)) in waiting(desk).keep[0]


def test_only_the_parts_that_changed_are_spoken(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        job, creation = speak(desk, seed=None)
        desk.jobs.open_parts(creation, OWNER)

        def offer(*words: str) -> str:
            return str(speak_view.script_view(desk, script(*words), "", OWNER, "en")["changed"])

        one, two, three = WORDS
        assert not offer(one, two, three) and not offer("Quite another one.") and not offer("")
        assert "1 of 3 parts needs to be spoken" in offer(one, "Two is mild.", three)
        assert "2 of 4 parts need to be spoken" in offer("Zero.", one, three, "Four.")
        assert "all its parts are spoken already" in offer(three, one)
        assert desk.jobs.match_script(f"[S2] Who? (pause 0.2s) {script(*WORDS)}", OWNER) is None, (
            "voices known by name go by who speaks first"
        )
        for words, fresh, keep in (
            ((one, "Two is mild.", three), (1,), ["part-000.wav", "", "part-002.wav"]),
            ((three, one), (), ["part-002.wav", "part-000.wav"]),
        ):
            desk.jobs.speak_changed(script(*words), OWNER)
            asked, drawn = waiting(desk), int((desk.keeper.folder(job) / "seed").read_text())
            assert (asked.text, asked.only_parts, names(asked.keep), asked.seed) == (script(*words), fresh, keep, drawn)
            assert not offer(one, "Two is mild.", three), "not while it is spoken"
            desk.jobs.stop("speech", OWNER)
            desk.jobs.open_parts(creation, OWNER)
        with pytest.raises(Trouble, match="Speak the whole script"):
            desk.jobs.speak_changed(script("Quite another one."), OWNER)


def test_how_long_the_changed_parts_take_is_told_where_it_was_measured(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=CPU)
        desk.jobs.open_parts(speak(desk)[1], OWNER)
        changed = script(WORDS[0], "Two is mild, and the wind is warm again.", WORDS[2])
        assert "takes" not in speak_view.script_view(desk, changed, "", OWNER, "en")["changed"]
        speak(desk, rate=1.0)
        view = speak_view.script_view(desk, changed, "", OWNER, "en")
        one = desk.jobs.split_script("", SpeechRequest(changed))[1]
        taken_s = speak_view.forecast_parts(desk, [one], *desk.models.read_limits(""), OWNER)
        assert taken_s is not None and (whole_s := view["eta_s"]) is not None and taken_s < 0.6 * whole_s
        assert view["changed"].endswith(f"That takes about {word_duration(taken_s)}.")


def test_what_was_not_spoken_yet_counts_as_changed(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.jobs.open_parts(speak(desk, 2, state="stopped")[1], OWNER)
        desk.jobs.speak_changed(script("One is mild.", *WORDS[1:]), OWNER)
        assert waiting(desk).only_parts == (0, 2) and names(waiting(desk).keep) == ["", "part-001.wav", ""]


@pytest.mark.parametrize("only", [(), (1,)])
def test_a_result_names_what_was_taken_over(only: tuple[int, ...]) -> None:
    told = speak_view.word_taken(SpeechRequest(script(*WORDS), only_parts=only, keep=("a", "" if only else "b", "c")))
    assert str(told) == (
        "Spoken for this result: 2. Taken over as they were: 1, 3." if only else "All parts were taken over as they were: 1-3."
    )
    assert speak_view.word_taken(SpeechRequest(script(*WORDS))) is None


def test_guests_open_and_redo_their_own_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_limits, "locate", lambda *_: object())
    with desk_at(tmp_path) as desk:
        desk.settings.put({"speak": {"model": "dia-1.6b"}})
        job, creation = speak(desk, person=GUEST)
        for person in (GUEST, STRANGER):
            assert not desk.jobs.find_current("speech", person)
        with pytest.raises(Trouble, match="You have no creation"):
            desk.jobs.open_parts(creation, STRANGER)
        desk.jobs.open_parts(creation, GUEST)
        assert desk.jobs.find_current("speech", GUEST) == job and not desk.jobs.find_current("speech", OWNER)
        longest = max(200, len(script(*WORDS)))
        desk.settings.put({guest_limits.SAVED: {"letters": longest, "waiting": 1}})
        with pytest.raises(Trouble, match="guests may use up to 200"):
            desk.jobs.speak_changed(script(*WORDS, "Four." * 60), GUEST)
        desk.jobs.speak_changed(script("One is mild.", *WORDS[1:]), GUEST)
        asked = desk.keeper.journal.list_waiting()[-1]
        assert asked.owner == GUEST.name and asked.request.model == "starter-voice", "the parts' own, though the owner chose another since"
        with pytest.raises(Trouble, match="in the queue already"):
            desk.jobs.begin(SpeechRequest("[S1] One more."), GUEST)


def test_the_shelf_offers_parts_that_are_there_and_tells_what_they_take(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        (kept, _), (_, gone) = speak(desk), speak(desk)
        shutil.rmtree(desk.keeper.folder(desk.keeper.shelf.get(gone).job))

        def ask(do: Callable[[TestClient], object], person: Person = OWNER) -> object:
            app = Starlette(routes=[*routes.routes(desk), *shelf.routes(desk)])

            async def let_in(scope, receive, send):  # type: ignore[no-untyped-def]
                await app({**scope, KEY: person}, receive, send)

            with TestClient(let_in) as client:
                return do(client)

        page = ask(lambda client: client.get("/hearth/shelf").json())
        assert [each["parts"] for each in page["creations"]] == [False, True]  # type: ignore[index]
        taken = page["kept"]  # type: ignore[index]
        assert taken["scripts"] == 1 and 0 < taken["bytes"] < taken["most_bytes"]
        assert "kept" not in ask(lambda client: client.get("/hearth/shelf").json(), GUEST)  # type: ignore[operator]
        desk.jobs.open_parts(desk.keeper.shelf.list_of_job(kept)[0].id, OWNER)
        for each in page["creations"]:  # type: ignore[index]
            desk.keeper.shelf.delete(each["id"])
        assert ask(lambda client: client.post("/hearth/shelf/empty").json()) == {}
        assert not desk.keeper.folder(kept).is_dir() and not desk.jobs.find_current("speech", OWNER)
