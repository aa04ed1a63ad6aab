"""A share from its beginning to its end, as guests and the owner's panel see it; test_tunnel.py has the tunnel itself."""

from __future__ import annotations

import asyncio
import html
import io
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import gradio as gr
import httpx
import numpy as np
import psutil
import pytest
from PIL import Image
from starlette.responses import Response
from starlette.testclient import TestClient

from app.base import atomic_write
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import ShareEnded, Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Note
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.shelf import Search
from app.ui import live_view, routes, share
from app.ui.access.login import LoginRequired, Logins, digest_password, shorten_name
from app.ui.access.tunnel import OpenTunnel
from app.ui.launch import build_guards
from app.ui.share import Share
from app.ui.state import kept_guests
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import read_allowance
from app.ui.state.kept_guests import KeptGuests
from app.ui.state.person import OWNER, Person
from app.ui.state.settings import Settings
from tests.support import patient_http
from tests.support.guests import AT_HOME, call, desk_at, guest_client, launch, no_tunnel, press, shared

pytestmark = [
    pytest.mark.long,
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def no_tunnel_is_asked(port: int) -> OpenTunnel:
    raise AssertionError(f"a tunnel to {port} was opened")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        yield desk


def test_a_share_from_beginning_to_end(desk: Desk) -> None:
    ended = []

    sharing = Share(desk, lambda port: OpenTunnel(f"http://127.0.0.1:{port}/", lambda: ended.append(port)))
    assert sharing.view()["open"] is False
    sharing.begin(1)
    first, second = sharing.view(), sharing.view()
    assert "password" in first and "password" not in second, "shown once"
    assert first["password"] not in first["address"] + first["qr"] and 3500 < first["left_s"] <= 3600
    assert ElementTree.fromstring(first["qr"]).tag.endswith("svg")
    with pytest.raises(Trouble):
        sharing.begin(1)
    with guest_client(first["address"], first["password"], "Ada") as ada, guest_client(first["address"], first["password"]) as eve:
        assert [each["name"] for each in sharing.view()["guests"]] == ["Ada", ""]
        assert press(ada, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
        assert desk.keeper.journal.list_waiting()[-1].owner == sharing.view()["guests"][0]["id"]
        assert ada.get("/hearth/live").json()["strip"]["doing"] == "your job is number 1 in the queue"
        (waiting,) = live_view.owner_view(desk, OWNER, "en", with_charts=False)["queue"]
        assert waiting["facts"].startswith("by \u2068Ada\u2069 · ") and "Ada" not in ada.get("/hearth/live").text
        desk.keeper.status.set(job=waiting["id"])
        assert live_view.owner_view(desk, OWNER, "en", with_charts=False)["strip"]["guest_name"] == "Ada"
        desk.keeper.status.set(job="")
        assert ada.get("/hearth/live").json()["speech"]["place"] == 1 and "speech" not in eve.get("/hearth/live").json()
        sharing.send_away(sharing.view()["guests"][1]["id"])
        assert eve.get("/hearth/live").status_code == 401 and ada.get("/hearth/live").status_code == 200
        sharing.end()
        with pytest.raises(httpx.TransportError):
            ada.get("/hearth/live")
    assert ended and sharing.view()["open"] is False
    assert not desk.keeper.journal.list_waiting(), "what a guest asked for is not made for nobody"
    sharing.end()


def test_who_is_sent_away_leaves_no_job_behind_and_others_keep_theirs(desk: Desk) -> None:
    mine = desk.jobs.begin(SpeechRequest("[S1] Mine."), OWNER)
    with shared(desk) as (address, words, sharing):
        with guest_client(address, words) as ada, guest_client(address, words) as eve:
            for client in (ada, eve):
                assert press(client, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
            first, second = [job.owner for job in desk.keeper.journal.list_waiting() if job.id != mine]
            sharing.send_away(first)
            assert {job.owner for job in desk.keeper.journal.list_waiting()} == {"owner", second}
        sharing.end()
        assert [job.id for job in desk.keeper.journal.list_waiting()] == [mine]
    desk.keeper.stop(mine)


def test_a_guest_finds_what_they_made_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    with shared(desk) as (address, words, sharing), guest_client(address, words) as ada, guest_client(address, words) as eve:
        names = [each["id"] for each in sharing.view()["guests"]]
        for place, name in enumerate(("owner", *names)):
            job = desk.keeper.journal.queue(PictureRequest(f"of {place}"), Choice(), name)
            desk.keeper.journal.withdraw(job.id)
            Image.new("RGB", (8, 8)).save(file := tmp_path / f"{place}.png")
            desk.keeper.shelf.keep(job, [file], RunSummary("sd15", rate=3.0, unit="steps", highest_bytes=1 << 30))
        for client, text in ((ada, "of 1"), (eve, "of 2")):
            answer = client.get("/hearth/shelf").json()
            (own,) = answer["creations"]
            assert (own["text"], own["title"], own["speed"], own["highest"], answer["models"]) == (text, "", "", 0, [])
            assert client.get(f"/{own['url']}").status_code == 200
            assert client.get("/hearth/shelf", params={"words": "of 0"}).json()["creations"] == []
            assert client.post(f"/hearth/shelf/{own['id']}/favourite", json={}).status_code == 404


def test_a_guest_deletes_what_they_made_into_the_owners_bin(desk: Desk, tmp_path: Path) -> None:
    with shared(desk) as (address, words, sharing), guest_client(address, words) as ada:
        (guest,) = sharing.view()["guests"]
        for name in ("owner", guest["id"]):
            job = desk.keeper.journal.queue(PictureRequest("a ball"), Choice(), name)
            desk.keeper.journal.withdraw(job.id)
            Image.new("RGB", (8, 8)).save(file := tmp_path / "ball.png")
            desk.keeper.shelf.keep(job, [file], RunSummary("sd15"))
        theirs, owners = (desk.keeper.shelf.find(Search(owner=name))[0].id for name in (guest["id"], "owner"))
        for act in ("delete", "restore", "favourite", "reveal"):
            assert ada.post(f"/hearth/shelf/{owners}/{act}", json={}).status_code == 404
        assert ada.post(f"/hearth/shelf/{theirs}/favourite", json={}).status_code == 404, "which the owner's list would show"
        assert ada.post(f"/hearth/shelf/{theirs + owners}/delete", json={}).status_code == 404
        assert ada.post(f"/hearth/shelf/{theirs}/delete", json={}).status_code == 200
        assert not ada.get("/hearth/shelf").json()["creations"] and desk.keeper.shelf.get(theirs).path.is_file(), "it is in the bin"
        assert not desk.keeper.shelf.find(Search(owner=guest["id"])) and desk.keeper.shelf.find(Search(owner="owner"))[0].id == owners
        assert ada.post(f"/hearth/shelf/{theirs}/restore", json={}).status_code == 200
        assert [each["id"] for each in ada.get("/hearth/shelf").json()["creations"]] == [theirs]


def test_the_owner_can_stop_what_a_guest_makes_and_the_guest_hears_of_it(desk: Desk) -> None:
    guest = Person("visitor-a-b", False)
    for person in (OWNER, guest):
        job = desk.jobs.begin(SpeechRequest("[S1] Hello."), person)
        desk.keeper.status.set(job=job)
        desk.keeper.board.post(job, Note(say_to_all("starter.painting", "Painting: {caption}.", caption="a boat")))
        desk.keeper.board.post(job, Note(say("painting.smaller", "The decoder works in tiles.")))
        live = live_view.owner_view(desk, OWNER, "en", with_charts=False)
        assert (live["strip"]["job"], live["strip"]["of_guest"]) == (job, not person.owner)
        assert desk.jobs.owns(job, OWNER) and "stop" in desk.jobs.queue_actions(OWNER)
    said = live_view.guest_view(desk, guest, "en")["speech"]["said"]
    assert [each["text"] for each in said] == ["Painting: a boat."]
    desk.keeper.status.set(job="")
    for each in desk.keeper.journal.list_waiting():
        desk.keeper.stop(each.id)


def test_a_guest_whose_job_waits_hears_of_a_pause(desk: Desk) -> None:
    """It said only that the job was number 1, however long Hearth was paused for."""
    guest = Person("visitor-a-b", False)
    job = desk.jobs.begin(SpeechRequest("[S1] Hello."), guest)
    desk.keeper.status.set(paused=say("pause.held", "Paused: the card and its memory are free. Jobs go on where they were."))
    assert live_view.guest_view(desk, guest, "en")["strip"]["doing"] == "paused"
    desk.keeper.status.set(paused=None)
    assert live_view.guest_view(desk, guest, "en")["strip"]["doing"] == "your job is number 1 in the queue"
    desk.keeper.stop(job)


@pytest.mark.slow
def test_at_home_guests_come_by_an_address_in_digits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "find_home_address", lambda: AT_HOME)
    sharing = Share(desk, no_tunnel_is_asked)
    assert sharing.view()["ways"] == ("home", "link")
    sharing.begin(1, at_home=True)
    try:
        seen = sharing.view()
        port = urlsplit(seen["address"]).port
        assert seen["address"] == f"http://{AT_HOME}:{port}/"
        assert seen["at_home"] and seen["advice"] and not seen["lost"]
        with guest_client(seen["address"], seen["password"], "Ada") as ada:
            assert ada.get("/hearth/live").status_code == 200
            assert ada.get("/hearth/live", headers={"Host": "elsewhere.example"}).status_code == 421
        with pytest.raises(httpx.ConnectError):  # it listens in that network only
            patient_http.get(f"http://127.0.0.1:{port}/")
        monkeypatch.setattr(psutil, "net_if_addrs", dict)
        assert AT_HOME in sharing.view()["lost"]
    finally:
        sharing.end()


def test_on_the_network_the_link_is_in_digits_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "find_home_address", lambda: AT_HOME)
    sharing = Share(desk, no_tunnel_is_asked, "0.0.0.0")
    assert sharing.view()["ways"] == ("home",)
    sharing.begin(1)
    assert urlsplit(sharing.view()["address"]).hostname == AT_HOME
    sharing.end()


@pytest.mark.slow
def test_without_a_network_at_home(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is begun at home; a machine that is on the network by --listen is shared by the address that it has."""
    monkeypatch.setattr(share, "find_home_address", lambda: "")
    monkeypatch.setattr(share, "find_way_out", lambda: "8.8.4.4")
    with pytest.raises(Trouble, match="in no network at home"):
        Share(desk, no_tunnel_is_asked).begin(1, at_home=True)
    listening = Share(desk, no_tunnel_is_asked, "0.0.0.0")
    listening.begin(1)
    assert urlsplit(listening.view()["address"]).hostname == "8.8.4.4"
    listening.end()


@pytest.mark.slow
def test_one_guest_who_logs_in_again_takes_no_more_places(desk: Desk) -> None:
    def speak(guest: httpx.Client) -> str:
        return press(guest, "speak-go", {"speak-text": "[S1] Hello."}).text

    with shared(desk) as (address, words, _), ExitStack() as left:
        greedy = [left.enter_context(guest_client(address, words, via="192.0.2.1, 198.51.100.1")) for _ in range(3)]
        forged = left.enter_context(guest_client(address, words, via="192.0.2.2, 198.51.100.1"))
        modest = left.enter_context(guest_client(address, words, via="198.51.100.2"))
        told = [speak(guest) for guest in (*greedy, forged) for _ in range(2)]
        assert ["queue already" in each for each in told] == [False, False, *[True] * 6]
        assert "queue already" not in speak(modest)
        assert modest.get("/hearth/live").json()["queue"][0]["place"] == 2, "behind one of the other's, not behind all"
    for job in desk.keeper.journal.list_waiting():
        desk.keeper.stop(job.id)


NUMBERS: tuple[object, ...] = (None, 0, 2**63, -(2**70), "seven", [], {"creation": 7}, 1e308)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paint.restore", "speak.restore", "speak.redo"])
def test_any_number_may_be_asked_for(name: str, desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    with shared(desk) as (address, words, _), guest_client(address, words) as guest:
        for number in NUMBERS:
            for carried in (dict.fromkeys(("creation", "part"), number), number):
                answer = call(guest, name, carried)
                assert answer.status_code == 200, number
                assert ("no finished part" if name == "speak.redo" else "is not on the shelf") in answer.text, number
    assert "Traceback" not in capfd.readouterr().err


def test_time_ends_it() -> None:
    now_s = 0.0
    logins = Logins(digest_password("a b"), owner=False, until_s=3600.0, clock=lambda: now_s)
    token = logins.log_in("a b", "Ada")
    assert logins.find_person(token)
    now_s = 3601.0
    assert logins.find_person(token) is None
    with pytest.raises(ShareEnded):
        logins.log_in("a b", "")


@pytest.fixture
def entrances(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the QR codes carry that are drawn."""
    drawn = list[str]()

    def draw(text: str) -> str:
        drawn.append(text)
        return "<svg/>"

    monkeypatch.setattr(share, "draw_qr", draw)
    return drawn


def test_the_code_on_the_screen_lets_in_for_two_minutes_and_no_longer(desk: Desk, entrances: list[str]) -> None:
    """Six English words are a lot to type on a phone. A photo of the screen is soon worth nothing."""
    drawn = entrances
    sharing = Share(desk, no_tunnel)
    sharing.begin(1)
    try:
        sharing.view()
        sharing.view()
        assert drawn[0] == drawn[1] and drawn[0].startswith(sharing.view()["address"])
        now = sharing._open
        assert now is not None
        for name in ("phone", "another phone"):
            with httpx.Client(follow_redirects=True, timeout=60) as phone:
                assert phone.get(drawn[0]).status_code == 200 and phone.get(sharing.view()["address"] + "hearth/live").status_code == 200, (
                    name
                )
        with httpx.Client(timeout=60) as stranger:
            entrance = drawn[0].partition("=")[0]
            assert "set-cookie" not in stranger.get(f"{entrance}=no").headers and "set-cookie" not in stranger.get(f"{entrance}=").headers
            later_s = now.logins.clock() + 121
            now.logins.clock = lambda: later_s
            assert "set-cookie" not in stranger.get(drawn[0]).headers, "it is told the password's form"
            sharing.view()
            assert drawn[-1] != drawn[0] and "set-cookie" in stranger.get(drawn[-1]).headers
            now.logins.close()
            assert now.logins.use_ticket(drawn[-1].partition("=")[2]) is None
    finally:
        sharing.end()


def test_a_browser_stays_the_same_guest_over_shares(desk: Desk, tmp_path: Path) -> None:
    """After each new link a guest was another one, and nothing on the shelf was theirs."""
    with patient_http.Client() as phone, patient_http.Client() as other:
        with shared(desk) as (address, words, sharing):
            assert phone.post(f"{address}hearth/login", data={"password": words, "name": "Ada"}).status_code == 303
            (ada,) = sharing.view()["guests"]
            job = desk.keeper.journal.queue(PictureRequest("a kiln"), Choice(), ada["id"])
            desk.keeper.journal.withdraw(job.id)
            Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
            (kept,) = desk.keeper.shelf.keep(job, [tmp_path / "a.png"], RunSummary("sd15"))
        assert desk.jobs.find_nickname(ada["id"]) == "Ada", "the owner's shelf says who made it"
        with shared(desk) as (address, words, sharing):
            assert phone.get(f"{address}hearth/live").status_code == 401, "what it keeps lets nobody in"
            assert 'value="Ada"' in phone.get(f"{address}hearth/login").text
            assert phone.post(f"{address}hearth/login", data={"password": "no"}).status_code == 401
            assert phone.post(f"{address}hearth/login", data={"password": words}).status_code == 303
            (again,) = sharing.view()["guests"]
            assert (again["id"], again["name"]) == (ada["id"], "Ada")
            assert [each["id"] for each in phone.get(f"{address}hearth/shelf").json()["creations"]] == [kept.id]
            seal = phone.cookies["hearth_visitor"].rpartition(".")[2]
            for forged in (f"{ada['id']}.{'0' * 64}", f"owner.{seal}", f"{ada['id']}0.{seal}", ada["id"], "."):
                headers = {"Cookie": f"hearth_visitor={forged}"}
                assert other.post(f"{address}hearth/login", data={"password": words}, headers=headers).status_code == 303
                assert other.get(f"{address}hearth/shelf").json()["creations"] == []
                assert other.get(f"{address}hearth/creation/{kept.id}").status_code == 404
                other.cookies.clear()
            assert phone.post(f"{address}hearth/login", data={"password": words}).status_code == 303
            assert [each["id"] for each in sharing.view()["guests"]].count(ada["id"]) == 1, "a browser has one login"


def test_who_shares_a_browser_goes_back_to_the_guest_they_were(desk: Desk) -> None:
    """Each change made a new guest, and the shelves of those before were lost for good."""
    with shared(desk) as (address, words, sharing), patient_http.Client(base_url=address) as browser:
        door = "/hearth/login"
        for name in ("Ada", "Ben"):
            assert browser.post(door, data={"password": words, "name": name, "other": ""}).status_code == 303
        ids = {each["name"]: each["id"] for each in sharing.view()["guests"]}
        asked = browser.get(f"{door}?other").text
        assert "I am <bdi>Ada</bdi>" in asked and "I am <bdi>Ben</bdi>" in asked and f"?other={ids['Ada']}" in asked
        form = browser.get(f"{door}?other={ids['Ada']}").text
        assert 'value="Ada"' in form and f'name="other" value="{ids["Ada"]}"' in form
        assert f'name="other" value="{ids["Ada"]}"' in browser.post(door, data={"password": "no", "other": ids["Ada"]}).text
        for name in ("Ada", "Ben", "Ada"):
            assert browser.post(door, data={"password": words, "name": name, "other": ids[name]}).status_code == 303
            assert 'value="' + name in browser.get(door).text, "the last one comes first"
        assert {each["id"] for each in sharing.view()["guests"]} == {*ids.values()}
        browser.post(door, data={"password": words, "name": "Eve", "other": f"{ids['Ada']}0"})
        assert len(sharing.view()["guests"]) == 3, "nobody becomes a guest whom the browser does not keep"
        for name in "FGH":
            browser.post(door, data={"password": words, "name": name, "other": ""})
        asked = browser.get(f"{door}?other").text
        assert "<bdi>Eve</bdi>" in asked and "<bdi>Ada</bdi>" not in asked, "it keeps the last ones"
        for _ in range(4):
            browser.post(door, data={"password": words, "name": "", "other": ""})
        assert "<bdi>H</bdi>" in browser.get(f"{door}?other").text, "who gave no name has no way back, and takes nobody's"


def test_who_shares_a_browser_need_not_be_the_earlier_guest(desk: Desk) -> None:
    """A name that was cleared came back, and whoever came second had the first one's shelf."""
    with shared(desk) as (address, words, sharing), patient_http.Client(base_url=address) as browser:
        door = "/hearth/login"
        assert "?other" not in browser.get(door).text, "nobody came before"
        browser.post(door, data={"password": words, "name": "Ada"})
        assert 'href="/hearth/login?other"' in browser.get(door).text
        browser.post(door, data={"password": words, "name": ""})
        (ada,) = sharing.view()["guests"]
        assert ada["name"] == "" and "Ada" not in browser.get(door).text, "she took it out"
        browser.post(door, data={"password": words, "name": "Ada"})
        asked = browser.get(f"{door}?other").text
        assert 'type="hidden" name="other"' in asked and 'value="Ada"' not in asked
        german = browser.get(f"{door}?language=de&other", follow_redirects=True).text
        assert "?language=ja&amp;other" in german and 'value="Ada"' not in german, "another language is no other wish"
        browser.get(f"{door}?language=en")
        assert browser.get(f"{door}").text.count('value="Ada"') == 1, "asking alone changes nothing"
        assert 'type="hidden" name="other"' in browser.post(door, data={"password": "no", "name": "Ben", "other": ""}).text
        assert browser.post(door, data={"password": words, "name": "Ben", "other": ""}).status_code == 303
        first, second = sharing.view()["guests"]
        assert (first["id"], first["name"], second["name"]) == (ada["id"], "Ada", "Ben") and second["id"] != ada["id"]
        assert 'value="Ben"' in browser.get(door).text, "the browser keeps the later one"


def test_names_are_kept_in_a_thread_and_those_without_one_push_out_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the settings were written, on the server's own thread and under the lock of all logins, everybody waited."""
    write, waited = atomic_write.write_text, list[bool]()
    guests = KeptGuests(Settings(tmp_path / "settings.json"))
    guests.read_key("household")
    logins = Logins(digest_password("a b c"), owner=False, guests=guests)

    def watch(*given: Any) -> None:
        waited.append(logins.lock.locked() or asyncio._get_running_loop() is not None)
        write(*given)

    monkeypatch.setattr(atomic_write, "write_text", watch)
    monkeypatch.setattr(kept_guests, "NAMES_MOST", 2)
    app = LoginRequired(Response(), logins)
    ada = TestClient(app, follow_redirects=False)
    for name in ("Ada", "Ada", "Ada B."):
        assert ada.post("/hearth/login", data={"password": "a b c", "name": name}).status_code == 303
    for given in ({"who": "name", "name": "Ada"}, {"who": "name", "name": "Ada"}):
        assert ada.post("/hearth/login", data=given).status_code == 303
    assert waited == [False] * 3, "a rename to the same name writes nothing"
    for _ in range(3):
        assert TestClient(app, follow_redirects=False).post("/hearth/login", data={"password": "a b c", "name": ""}).status_code == 303
    assert len(waited) == 3 and 'value="Ada"' in ada.get("/hearth/login").text


def test_who_comes_by_the_code_is_asked_for_a_name_once(desk: Desk, entrances: list[str]) -> None:
    with shared(desk) as (address, _, sharing):
        for name, answer in (("Ben", {"who": "name", "name": "Ben"}), ("", {"who": "skip", "name": "Eve"})):
            with patient_http.Client(follow_redirects=True) as phone:
                asked = phone.get(entrances[-1]).text
                assert 'name="who"' in asked and 'name="password"' not in asked
                assert phone.post(f"{address}hearth/login", data=answer).url.path == "/"
                assert sharing.view()["guests"][-1]["name"] == name
                assert "What are you called?" not in phone.get(entrances[-1]).text, "once"
                assert phone.post(f"{address}hearth/login", data={"who": "again"}).url.path == "/"
                assert sharing.view()["guests"][-1]["name"] == name
        with patient_http.Client() as stranger:
            assert stranger.post(f"{address}hearth/login", data={"who": "name", "name": "Eve"}).status_code == 303
            assert stranger.get(address).headers["location"] == "/hearth/login", "nobody comes in by a name"
            assert 'name="password"' in stranger.get(f"{address}hearth/login?who").text


def test_the_code_says_whom_a_browser_keeps_and_lets_in_another(desk: Desk, entrances: list[str]) -> None:
    """In a browser that several use, whoever scanned the code was the earlier guest without a word, with their shelf."""
    with shared(desk) as (address, words, sharing), patient_http.Client(follow_redirects=True) as browser:
        door = f"{address}hearth/login"
        assert browser.post(door, data={"password": words, "name": "עדה"}).url.path == "/"
        (ada,) = sharing.view()["guests"]
        asked = browser.get(entrances[-1]).text
        assert "In this browser you are <bdi>עדה</bdi>." in asked and "I am someone else" in asked
        assert browser.post(door, data={"who": "again"}).url.path == "/"
        assert [each["id"] for each in sharing.view()["guests"]] == [ada["id"]]
        browser.get(entrances[-1])
        assert "What are you called?" in browser.post(door, data={"who": "other"}).text
        assert browser.post(door, data={"who": "name", "name": "Ben"}).url.path == "/"
        (ben,) = sharing.view()["guests"]
        assert ben["name"] == "Ben" and ben["id"] != ada["id"]
        assert "In this browser you are <bdi>Ben</bdi>." in browser.get(entrances[-1]).text
        asked = browser.get(entrances[-1]).text
        assert f'value="{ada["id"]}" class="skip">I am <bdi>עדה</bdi>' in asked, "and back to the earlier one"
        assert browser.post(door, data={"who": ada["id"]}).url.path == "/"
        assert next(each for each in sharing.view()["guests"] if each["name"] == "עדה")["id"] == ada["id"]
        assert "In this browser you are <bdi>עדה</bdi>." in browser.get(entrances[-1]).text


def test_a_second_press_is_no_wrong_guess(desk: Desk, entrances: list[str]) -> None:
    """Of a double click on "I am someone else" the second press had no login any more: "Wrong password", and it was counted."""
    with shared(desk) as (address, words, sharing), patient_http.Client(follow_redirects=True) as browser:
        assert sharing._open is not None
        door, guesses = f"{address}hearth/login", sharing._open.logins.guesses
        browser.post(door, data={"password": words, "name": "Ada"})
        browser.get(entrances[-1])
        late = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        browser.post(door, data={"who": "other"})
        answer = patient_http.post(door, data={"who": "other"}, headers=late)
        assert answer.status_code == 303 and not guesses.wrong
        assert browser.get(f"{address}{answer.headers['location'][1:]}").url.path == "/", (
            "the first press let them in, and they may know no password"
        )
        form = patient_http.get(door, headers=late).text
        assert 'role="alert"' not in form and 'value="Ada"' in form, "whoever comes in by it keeps their name"
        assert patient_http.post(door, data={"who": "other", "password": "no"}).status_code == 401
        assert guesses.wrong, "a guess is one with whatever beside it"


def test_who_is_sent_away_for_good_needs_the_new_password(desk: Desk, entrances: list[str]) -> None:
    with shared(desk) as (address, words, sharing), guest_client(address, words, "Ada") as ada, guest_client(address, words) as eve:
        sharing.send_away(sharing.view()["guests"][0]["id"], for_good=True)
        before = entrances[-1]
        changed = sharing.view()
        assert changed["password"] not in (words, "") and "password" not in sharing.view(), "shown once"
        assert eve.get("/hearth/live").status_code == 200, "who is in stays, be it the same person's second login"
        assert ada.get("/hearth/live").status_code == 401
        assert ada.post("/hearth/login", data={"password": words}).status_code == 401
        assert "set-cookie" not in ada.get(before).headers, "nor by a code of before"
        assert ada.post("/hearth/login", data={"password": changed["password"]}).status_code == 303
        assert ada.get("/hearth/live").status_code == 200


def test_nobody_is_shared_with_where_the_tunnel_fails(desk: Desk) -> None:
    def blocked(port: int) -> OpenTunnel:
        raise Trouble(Sentence("tunnel.test", "blocked"))

    sharing = Share(desk, blocked)
    before = set(threading.enumerate())
    with pytest.raises(Trouble):
        sharing.begin(1)
    assert sharing.view()["open"] is False
    left = [each for each in set(threading.enumerate()) - before if each.is_alive() and isinstance(each, threading.Timer)]
    assert not left
    sharing.end()


@pytest.mark.slow
def test_the_panel_is_the_owners(desk: Desk) -> None:
    sharing = Share(desk, no_tunnel)
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Textbox()
    app_kwargs = {"routes": [*routes.routes(desk), *share.routes(sharing)], "middleware": build_guards(desk.keeper.home)[0]}
    address = launch(blocks, app_kwargs=app_kwargs)
    try:
        with httpx.Client(base_url=address, timeout=60) as owner:
            begun = owner.post("/hearth/share/begin", json={"hours": 4})
            assert begun.json()["open"] and begun.headers["cache-control"] == "no-store" and begun.json()["left_s"] > 4 * 3600 - 60
            assert owner.post("/hearth/share/begin", json={"hours": 4}).status_code == 409
            limited = owner.post("/hearth/share/limits", json={"letters": 77, "owner": True}).json()["limits"]
            assert limited["letters"] == 77
            wrong = owner.post("/hearth/share/limits", json={"letters": 99, "steps": "many"})
            assert wrong.status_code == 400 and wrong.json()["trouble"] == "steps must be a number."
            nearest = owner.post("/hearth/share/limits", json={"letters": 20, "share": 0}).json()["limits"]
            assert (nearest["letters"], nearest["share"]) == (50, 0.05), "what is wished tighter is not made looser"
            assert owner.post("/hearth/share/nothing", json={}).status_code == 404
            assert owner.post("/hearth/share/end", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
            assert owner.post("/hearth/share/end", json={}).json()["open"] is False
    finally:
        sharing.end()
        blocks.close(verbose=False)
        desk.settings.put({"visitors": {}})


def test_the_allowance_takes_only_what_makes_sense() -> None:
    assert read_allowance({}) == Allowance()
    assert read_allowance({"letters": 10**9, "steps": True, "side": "large", "share": 0.25, "batch": 3.0}) == Allowance(share=0.25, batch=3)


def test_a_guest_finds_the_window_in_chinese(desk: Desk) -> None:
    with shared(desk) as (address, _, _), patient_http.Client(base_url=address) as client:
        page = client.get("/hearth/login", headers={"Accept-Language": "zh-CN"}).text
        assert 'lang="zh-CN"' in page


def test_the_door_asks_guests_alone_for_a_name_and_keeps_it() -> None:
    """The owner was invited and asked for a name of no use; a guest's was gone after a wrong password."""
    for owner in (True, False):
        client = TestClient(LoginRequired(Response(), Logins(digest_password("a b c"), owner=owner)))
        page = client.get("/hearth/login").text
        assert ("invited" in page, "machine's owner" in html.unescape(page), 'name="name"' in page) == (not owner, owner, not owner)
        again = client.post("/hearth/login", data={"password": "no", "name": '"Ada"'})
        assert again.status_code == 401 and ('value="&quot;Ada&quot;"' in again.text) is not owner


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  Ada \n Lovelace ", "Ada Lovelace"),
        ("\u202etxt.exe", "?txt.exe"),
        ("a\x00\x1b[2J", "a??[2J"),
        ("\u200b\u2060", ""),
        ("\u202e", ""),
        ("\u200b" * 24 + "Ada", ""),
        ("\u3164", ""),
        ("\u2800 \u115f\u1160\uffa0", ""),
        ("\u200fAda\u200e\u061c", "Ada"),
        ("👩\u200d🎨 می\u200cخواهم", "👩\u200d🎨 می\u200cخواهم"),
        ("x" * 2000, "x" * 24),
    ],
)
def test_a_guests_name_stands_in_one_line_and_steers_nothing(given: str, kept: str) -> None:
    assert shorten_name(given) == kept


def test_a_guest_comes_in_by_the_link(desk: Desk) -> None:
    """Through a tunnel the Host stays the link's, and https ends before this server."""
    host, lost = "0123456789abcdef01.gradio.live", list[Sentence]()
    sharing = Share(desk, lambda port: OpenTunnel(f"https://{host}", find_fault=lambda: lost[0] if lost else None))
    sharing.begin(1)
    try:
        assert sharing._open is not None
        forwarded = {"Host": host, "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
        at = f"http://127.0.0.1:{sharing._open.server.server_port}"
        with httpx.Client(base_url=at, headers=forwarded, timeout=60) as ada:
            assert ada.get("/").headers["location"] == "/hearth/login" and ada.get("/config").status_code == 401
            assert ada.post("/hearth/login", data={"password": "no no"}).status_code == 401
            entered = ada.post("/hearth/login", data={"password": sharing.view()["password"], "name": "Ada"})
            assert entered.status_code == 303 and "; secure" in entered.headers["set-cookie"].lower(), "https only"
            ada.headers["Cookie"] = entered.headers["set-cookie"].partition(";")[0]
            assert "gradio-app" in ada.get("/").text and ada.get("/config").json()["root"] == f"https://{host}"
            assert press(ada, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
            (guest,), job = sharing.view()["guests"], desk.keeper.journal.list_waiting()[-1]
            desk.keeper.stop(job.id)
            assert guest["name"] == "Ada" and job.owner == guest["id"]
        lost.append(say("tunnel.lost", "The link is offline."))
        assert sharing.view()["lost"] == "The link is offline." and sharing.view("zh")["lost"].startswith("链接已离线")
        lost.clear()
        assert sharing.view()["lost"] == ""
    finally:
        sharing.end()


def test_events_come_while_they_happen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No middleware holds them back until the end, which does not come here."""
    monkeypatch.setattr(gr.utils, "get_heartbeat_rate", lambda: 3600.0)
    with (
        shared(desk) as (address, words, _),
        guest_client(address, words) as ada,
        ada.stream("GET", "/gradio_api/heartbeat/adas1") as events,
    ):
        assert events.headers["content-type"].startswith("text/event-stream")
        assert next(events.iter_lines()) == "data: ALIVE"


@pytest.mark.slow
def test_large_bodies_come_through_whole(desk: Desk) -> None:
    noise = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (1100, 1100, 3), np.uint8)).save(noise, "PNG")
    assert len(noise.getvalue()) > 3 << 20
    with shared(desk) as (address, words, _), guest_client(address, words) as ada:
        (path,) = ada.post("/gradio_api/upload", files={"files": ("noise.png", noise.getvalue())}).json()
        assert ada.get(f"/gradio_api/file={path}").content == noise.getvalue()
