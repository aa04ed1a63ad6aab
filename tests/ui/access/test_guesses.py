"""Guessing is slow and shuts nobody out; limits hold over all logins of an address, which nobody can forge."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.jobs.owners import household_of
from app.engine.keeper.job_folder import UPLOADS_S
from app.ui.access import guesses
from app.ui.access.guesses import DELAY_MOST_S, DELAY_S, FORGET_S, HOUSEHOLDS_MOST, Guesses
from app.ui.access.login import LOGINS_MOST, LoginRequired, Logins, digest_password, digest_token, find_address, make_password
from app.ui.launch import KEY_VARIABLE, PASSWORD_VARIABLE, build_guards
from app.ui.state import guest_files
from app.ui.state.guest_files import GuestFiles
from tests.support.other_functions import set_in
from tests.support.waiting import WAIT_S

MANY = 300


def client(logins: Logins) -> httpx.AsyncClient:
    app: Any = LoginRequired(PlainTextResponse("in"), logins)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=60)


def opened(**more: Any) -> Logins:
    return Logins(digest_password("a b"), owner=True, api_key_digest=digest_token("key"), behind_tunnel=True, **more)


async def ask_password(asked: httpx.AsyncClient, given: str, address: str = "192.0.2.1") -> int:
    return (await asked.post("/hearth/login", data={"password": given}, headers={"X-Forwarded-For": address})).status_code


async def ask_key(asked: httpx.AsyncClient, given: str, address: str = "192.0.2.1") -> int:
    headers = {"X-Forwarded-For": address, "Authorization": f"Bearer {given}"}
    return (await asked.get("/v1/models", headers=headers)).status_code


COMPOSED, DECOMPOSED = "caf\u00e9 kiln of nine", "cafe\u0301 kiln of nine"


@pytest.mark.parametrize("chosen", [COMPOSED, DECOMPOSED, f" {COMPOSED} \n"])
@pytest.mark.parametrize("given", [COMPOSED.encode(), DECOMPOSED.encode(), COMPOSED.encode("latin-1")])
def test_a_secret_with_accents_is_the_same_however_it_is_encoded(
    chosen: str, given: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, chosen)
    monkeypatch.setenv(KEY_VARIABLE, chosen)
    guards, shown = build_guards(home(tmp_path), "0.0.0.0")
    logins = guards[1].kwargs["logins"]
    assert isinstance(logins, Logins) and shown == ""

    async def ask() -> None:
        async with client(logins) as asked:
            answer = await asked.get("/v1/models", headers=[(b"Authorization", b"Bearer " + given)])
            assert answer.status_code == 200
            if given != COMPOSED.encode("latin-1"):  # forms are UTF-8
                assert await ask_password(asked, given.decode()) == 303

    asyncio.run(ask())


@pytest.mark.parametrize("variable", [PASSWORD_VARIABLE, KEY_VARIABLE])
def test_a_secret_that_is_no_text_is_refused(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "caf\udce9 kiln of nine")
    with pytest.raises(Trouble, match=f"{variable} is not valid UTF-8 text"):
        build_guards(home(tmp_path), "0.0.0.0")


@pytest.mark.parametrize("variable", [PASSWORD_VARIABLE, KEY_VARIABLE])
@pytest.mark.parametrize(
    "soon", ["a", "short one", "1234567890", "0987654321", "aaaaaaaaaaaaaaaa", "hahahahahahaha", "abcabcabcabc", "Password123456", "p a s s w o r d",
    "Hearth-Hearth-2026", "qwertyuiopasdfgh", "iloveyou iloveyou", "admin-admin-admin", "letmein12345"],
)  # fmt: skip
def test_an_own_password_that_is_soon_guessed_is_refused(soon: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else bounds guessing, as the right one is always let in."""
    monkeypatch.setenv(variable, soon)
    assert build_guards(home(tmp_path))[1] == "", "on loopback nobody needs one"
    with pytest.raises(Trouble, match=f"{variable} is too easy to guess. Use at least 10 characters"):
        build_guards(home(tmp_path), "0.0.0.0")


@pytest.mark.parametrize("good", ["kettle nine moss", "Tr0ub4dor&31", "oranges-in-winter", "sk-9fK2mQ7xLw3Z", "雪后初晴我们去河边散步"])
def test_any_other_is_taken(good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, good)
    monkeypatch.setenv(KEY_VARIABLE, good)
    assert build_guards(home(tmp_path), "0.0.0.0")[1] == "", "none is generated"


def test_a_generated_one_is_hard_to_guess_too() -> None:
    assert min(guesses.count_letters(make_password()) for _ in range(200)) >= guesses.LETTERS_LEAST


@pytest.mark.parametrize(("ask", "right", "inside"), [(ask_password, "A-b", 303), (ask_key, "key", 200)])
def test_the_right_one_is_let_in_while_wrong_ones_are_slowed(ask: Any, right: str, inside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same address, among hundreds of wrong ones that wait or were refused."""

    async def attack() -> None:
        logins, held_s, over = opened(), list[float](), asyncio.Event()

        async def sleep(delay_s: float) -> None:
            held_s.append(delay_s)
            await over.wait()

        set_in(monkeypatch, guesses, "asyncio", sleep=sleep)
        async with client(logins) as asked:
            wrong = [asyncio.create_task(ask(asked, f"wrong {n}")) for n in range(MANY)]
            while logins.guesses.held.total() < guesses.HELD_OF_ONE:
                await asyncio.sleep(0)
            for _ in range(5):
                assert await asyncio.wait_for(ask(asked, right), WAIT_S) == inside
            assert not any(each.done() and each.result() == 401 for each in wrong), "nobody hears at once that it was wrong"
            over.set()
            told = Counter(await asyncio.gather(*wrong))
            assert told == {401: guesses.HELD_OF_ONE, 429: MANY - guesses.HELD_OF_ONE}
            assert len(held_s) == guesses.HELD_OF_ONE and min(held_s) >= DELAY_S

    asyncio.run(attack())


def test_each_wrong_guess_waits_twice_as_long() -> None:
    tried = Guesses()
    assert [tried.add_wrong("a", 0.0) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 8.0, DELAY_MOST_S]
    assert tried.add_wrong("b", 0.0) == DELAY_S, "others do not wait for it"
    assert tried.add_wrong("a", FORGET_S + 1) == DELAY_S
    tried.forget("a")
    assert tried.add_wrong("a", FORGET_S + 1) == DELAY_S
    for n in range(5 * HOUSEHOLDS_MOST):
        tried.add_wrong(f"household {n}", 0.0)
    assert len(tried.wrong) == HOUSEHOLDS_MOST


def test_few_answers_are_held_at_once() -> None:
    async def attack() -> None:
        tried = Guesses()
        asked = [tried.hold(f"household {n % 100}", 0.01) for n in range(MANY)]
        assert sum(await asyncio.gather(*asked)) == guesses.HELD_MOST
        assert not tried.held, "nothing is kept of those that were held"

    asyncio.run(attack())


@pytest.mark.parametrize(
    ("told", "behind_tunnel", "found"),
    [
        (["203.0.113.9"], True, "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9"], True, "203.0.113.9"),  # the first one is what the guest sent
        (["198.51.100.1", "198.51.100.2 , 203.0.113.9"], True, "203.0.113.9"),
        (["nonsense, 203.0.113.9, <script>"], True, ""),  # not an address: it counts for the link
        (["2001:db8:1:2:aaaa::1"], True, "2001:db8:1::"),
        (["::ffff:203.0.113.9"], True, "203.0.113.9"),
        ([], True, "127.0.0.1"),
        (["203.0.113.9"], False, "127.0.0.1"),  # without a tunnel anybody could write it
    ],
)
def test_an_address_cannot_be_forged(told: list[str], behind_tunnel: bool, found: str) -> None:
    headers = [(b"x-forwarded-for", each.encode()) for each in told]
    scope = {"type": "http", "headers": headers, "client": ("127.0.0.1", 4000)}
    assert find_address(scope, behind_tunnel) == found


def log_in(logins: Logins, address: str) -> str:
    person = logins.find_person(logins.log_in("a b", "", address))
    assert person is not None
    return person.name


def test_logging_in_again_is_the_same_household() -> None:
    logins, others = Logins(digest_password("a b"), owner=False), Logins(digest_password("a b"), owner=False)
    first, again, neighbour = (log_in(logins, each) for each in ("192.0.2.1", "192.0.2.1", "192.0.2.2"))
    assert first != again and household_of(first) == household_of(again) != household_of(neighbour)
    assert household_of(log_in(others, "192.0.2.1")) != household_of(first), "a new link says nothing of the old one"
    assert "192.0.2" not in first, "no address is written down"


def test_one_address_cannot_take_every_login() -> None:
    now_s = 0.0
    logins = Logins(digest_password("a b"), owner=False, clock=lambda: now_s)
    for _ in range(LOGINS_MOST):
        log_in(logins, "192.0.2.1")
    log_in(logins, "192.0.2.1")
    for n in range(2, 12):
        log_in(logins, f"192.0.2.{n}")
    assert len(logins.by_token) == LOGINS_MOST
    assert {household_of(each.person.name) for each in logins.by_token.values()} == {
        household_of(f"visitor-{logins.find_household(f'192.0.2.{n}')}-") for n in range(1, 12)
    }


def test_the_right_password_enters_when_every_login_is_taken() -> None:
    """By as many addresses, all of them seen just now."""
    now_s, busy = 0.0, set[str]()
    logins = Logins(digest_password("a b"), owner=False, clock=lambda: now_s, list_busy=lambda: busy)
    names = []
    for n in range(LOGINS_MOST):
        now_s += 1
        names.append(log_in(logins, f"2001:db8:{n:x}::"))
    busy.update(names[:3])
    for n in range(4):
        log_in(logins, f"192.0.2.{n}")
    left = {each.person.name for each in logins.by_token.values()}
    assert len(left) == LOGINS_MOST and busy <= left and left.isdisjoint(names[3:7]), "who has a job stays, and the idlest leave"
    log_in(logins, "192.0.2.0")
    assert left - {each.person.name for each in logins.by_token.values()} == {
        each for each in left if household_of(each) == household_of(f"visitor-{logins.find_household('192.0.2.0')}-")
    }, "an address that has a place pays with its own"


def test_the_last_place_is_had_even_from_guests_with_jobs() -> None:
    logins = Logins(digest_password("a b"), owner=False)
    logins.list_busy = lambda: {each.person.name for each in logins.by_token.values()}
    for n in range(LOGINS_MOST + 2):
        log_in(logins, f"192.0.2.{n}")
    assert len(logins.by_token) == LOGINS_MOST


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a permission there")
def test_a_refused_request_deletes_nothing_but_what_was_sent_for_it(tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    kept = GuestFiles(uploads, lambda: "... needed ...")
    for name in ("sent", "needed", "new"):
        (uploads / name).mkdir(parents=True)
        (uploads / name / "a.png").write_bytes(b"x")
    (private := tmp_path / "a.png").write_bytes(b"x")
    (link := tmp_path / "link.png").symlink_to(uploads / "new" / "a.png")
    kept.add("b", [uploads / "sent" / "a.png"])
    named = [uploads / "new" / ".." / "sent" / "a.png", uploads / "needed" / "x" / ".." / "a.png", private, uploads / ".." / "a.png", link]
    kept.discard_unknown([*named, uploads, uploads / "new", Path("a\0b"), Path("x" * 300)])
    left = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.png")}
    assert left == {"uploads/sent/a.png", "uploads/needed/a.png", "a.png", "link.png"} and link.is_symlink()


def test_what_guests_hold_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_files, "HOUSEHOLD_BYTES", 100)
    monkeypatch.setattr(guest_files, "GUESTS_BYTES", 250)
    monkeypatch.setattr(guest_files, "HOUSEHOLD_FILES", 4)

    def send(household: str, name: str, size: int = 40) -> str:
        (tmp_path / name).write_bytes(bytes(size))
        try:
            kept.add(household, [tmp_path / name])
        except Trouble as trouble:
            kept.discard_unknown([tmp_path / name])
            assert not (tmp_path / name).exists()
            return trouble.sentence.key
        return ""

    kept = GuestFiles(tmp_path)
    assert [send("a", f"a{n}") for n in range(3)] == ["", "", "upload.full"]
    assert [send("b", f"b{n}", 1) for n in range(5)] == ["", "", "", "", "upload.full"]
    assert [send("c", f"c{n}") for n in range(2)] == ["", ""]
    assert [send("d", f"d{n}") for n in range(3)] == ["", "", "upload.full"]
    assert send("e", "e0") == "upload.all-full"
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= 250
    (tmp_path / "a0").unlink()
    assert send("e", "e1") == "", "what is deleted makes room"


def test_a_guest_whose_space_is_used_up_may_send_again_tomorrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_files, "HOUSEHOLD_FILES", 1)
    kept, (old, new) = GuestFiles(tmp_path), (tmp_path / "old.png", tmp_path / "new.png")
    old.touch()
    kept.add("a", [old])
    with pytest.raises(Trouble, match="come back tomorrow"), kept.receiving("a"):
        pass
    let_pass(monkeypatch, UPLOADS_S + 1)
    with kept.receiving("a"):
        new.touch()
        kept.add("a", [new])
    assert list(kept.sent) == [new] and not old.exists()


@pytest.mark.parametrize("later_s", [UPLOADS_S - 1, UPLOADS_S + 1])
def test_a_file_that_is_sent_again_stays_for_another_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later_s: float) -> None:
    """Files are named by their content, so that the second one has the path of the first."""
    kept, sent = GuestFiles(tmp_path), tmp_path / "face.png"
    for _ in range(3):
        sent.touch()
        kept.add("a", [sent])
        assert sent.exists() and list(kept.sent) == [sent]
        let_pass(monkeypatch, later_s)


def test_an_old_file_stays_while_a_job_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share lasts three days, and an upload one."""
    needed = ""
    kept = GuestFiles(tmp_path, lambda: needed)
    files = [tmp_path / digest / "image.png" for digest in ("0a1b", "2c3d")]
    for each in files:
        each.parent.mkdir()
        each.touch()
    kept.add("a", files)
    needed = json.dumps({"image": str(files[0])})
    let_pass(monkeypatch, UPLOADS_S + 1)
    kept.add("a", [])
    assert [each.exists() for each in files] == [True, False] and list(kept.sent) == files[:1], "it stays, and counts"
    needed = ""
    kept.add("a", [])
    assert not files[0].exists() and not kept.sent


def let_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later_s = time.time() + seconds
    set_in(monkeypatch, guest_files, "time", time=lambda: later_s)


def test_few_uploads_arrive_at_once(tmp_path: Path) -> None:
    kept = GuestFiles(tmp_path)
    held = [kept.receiving(f"household {n // guest_files.UNDER_WAY_OF_ONE}") for n in range(guest_files.UNDER_WAY)]
    for each in held:
        each.__enter__()
    for household in ("household 0", "another"):
        with pytest.raises(Trouble), kept.receiving(household):
            pass
    for each in held:
        each.__exit__(None, None, None)
    with kept.receiving("household 0"):
        assert kept.under_way == {"household 0": 1}
