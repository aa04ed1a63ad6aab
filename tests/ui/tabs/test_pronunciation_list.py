"""The list of words that are said differently, as the page uses it: searched, changed, taken back, from and to CSV; what it changes of a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.sentence import say
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.jobs.tasks import name_lent
from app.engine.speech.text import voices
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person
from app.ui.tabs import pronunciation_list
from tests.support.guests import desk_at, page_of

GUEST = Person("visitor-1-a", False)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as desk:
        yield desk


@pytest.fixture
def page(desk: Desk) -> TestClient:
    return page_of(desk, OWNER)


def put(page: TestClient, word: str, spoken: str, before: str = "") -> str:
    return str(page.post("/hearth/says/put", json={"word": word, "spoken": spoken, "before": before}).json().get("trouble", ""))


def test_words_are_listed_searched_changed_and_come_back(page: TestClient) -> None:
    assert not put(page, "Siobhan", "Shivawn") and not put(page, "fjord", "fee-ord")
    assert put(page, "fjord", "fjord") == "fjord would be spoken as itself. Spell it as it sounds."
    assert page.get("/hearth/says").json()["all"] == 2
    assert page.get("/hearth/says?words=SHIV").json() == {"rows": [{"word": "Siobhan", "spoken": "Shivawn"}], "found": 1, "all": 2}
    assert not put(page, "Fjord", "fyord", before="fjord")
    assert [row["word"] for row in page.get("/hearth/says").json()["rows"]] == ["Fjord", "Siobhan"]
    page.post("/hearth/says/remove", json={"word": "Siobhan"})
    assert page.get("/hearth/says").json()["all"] == 1
    page.post("/hearth/says/back", json={})
    assert page.get("/hearth/says").json()["all"] == 2
    assert page.post("/hearth/says/check", json={"word": " a  b ", "spoken": "c"}).json() == {"word": "a b", "spoken": "c"}
    assert page.post("/hearth/says/dance", json={}).status_code == 404


def test_a_list_comes_and_goes_as_csv(page: TestClient) -> None:
    put(page, "Siobhan", "Shivonne")
    answer = page.post("/hearth/says", files={"file": ("list.csv", b"word,spoken\nSiobhan,Shivawn\nfjord,fee-ord\nnothing\n")})
    assert answer.json()["text"] == "1 word added, 1 changed. 1 line was left out, for no word or spelling was read there: 4."
    sent = page.get("/hearth/says?download=1")
    assert sent.content.decode("utf-8-sig").split() == ["word,spoken", "Siobhan,Shivawn", "fjord,fee-ord"]
    assert "UTF-8" in page.post("/hearth/says", files={"file": ("list.csv", b"\xff\xfe")}).json()["trouble"]
    assert page.post("/hearth/says", data={"file": "no file"}).status_code >= 400
    page.post("/hearth/says/back", json={})
    assert page.get("/hearth/says").json()["rows"] == [{"word": "Siobhan", "spoken": "Shivonne"}]


def test_the_script_shows_what_is_said_and_a_guests_does_not(desk: Desk, page: TestClient) -> None:
    put(page, "Siobhan", "Shivawn")
    view = page.post("/hearth/check", json={"text": "Siobhan's boat, a fjord.", "says": '{"fjord": "fee-ord"}'}).json()
    assert view["turns"][0]["text"] == "Shivawn's boat, a fee ord." and view["said"] == 2
    guest = page_of(desk, GUEST)
    assert "Siobhan" in guest.post("/hearth/check", json={"text": "Siobhan's boat."}).json()["turns"][0]["text"]
    assert guest.get("/hearth/says").status_code == guest.post("/hearth/says/put", json={}).status_code == 404


def test_a_word_is_heard_beside_the_queue(desk: Desk, page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SpeechRequest] = []
    folder, ends = desk.keeper.folder(name_lent(pronunciation_list.HEARD)), [Finished((), 1.0, 1.0, "", 0), Failed(say("x.y", "It broke."))]

    def run(task: str, request: SpeechRequest) -> str:
        asked.append(request)
        folder.mkdir(parents=True)
        (folder / "speech.wav").write_bytes(b"RIFF")
        return task

    monkeypatch.setattr(desk.keeper, "run_lent", run)
    monkeypatch.setattr(desk.keeper, "follow", lambda job: iter([ends.pop(0)]))
    hear = {"word": "Siobhan", "spoken": "Shivawn", "near": "[Anna] Then Siobhan came (laughs)."}
    answer = page.post("/hearth/says/hear", json=hear)
    assert answer.content == b"RIFF" and answer.headers["content-type"] == "audio/wav" and not folder.exists()
    assert asked[0].text == "Then Siobhan came ." and asked[0].pronunciations == (("Siobhan", "Shivawn"),)
    assert page.post("/hearth/says/hear", json={**hear, "near": "Nothing."}).json()["trouble"] == "It broke."
    assert asked[1].text == "Siobhan", "alone, where it stands in no sentence"
    desk.jobs.begin(SpeechRequest("[S1] One is warm."), OWNER)
    assert "Hearth is at work" in page.post("/hearth/says/hear", json=hear).json()["trouble"]


def test_a_word_is_heard_by_the_voice_that_speaks_there(desk: Desk) -> None:
    first, second, third = (each for each in voices.list_ready_voices()[:3])
    desk.settings.put({"speak": {"voice": third.name}})
    text = "\U0001f6a2 Well now. [Anna] Siobhan is here. [Ben] Siobhan is late."

    def who(asked: Any) -> VoicePrompt | None:
        return pronunciation_list.find_voice(desk, pronunciation_list.RowAsked(act="hear", word="Siobhan", spoken="Shivawn", **asked))[1]

    cast = json.dumps({"Ben": {"voice": second.name}, "Narrator": {"voice": first.name}})
    assert who({"text": text, "at": text.rindex("Siobhan"), "cast": cast}) == second.prompt
    assert who({"text": text, "at": 3, "cast": cast}) == first.prompt
    assert who({"text": text, "at": text.index("Siobhan"), "cast": cast}) == third.prompt, (
        "the voice of the fields is the first one's that has none"
    )
    assert who({"text": "", "at": 0, "cast": cast}) == third.prompt
    plain = "[S1] Siobhan is here. [S2] Siobhan is late, and nobody knows why that is so today."
    assert who({"text": plain, "at": 10}) == third.prompt
    other = who({"text": plain, "at": plain.rindex("Siobhan")})
    assert other is not None and other != third.prompt, "the second speaker's own"
