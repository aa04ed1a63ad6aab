"""A start that fails, watched by start.py: the page over HTTP and in a real browser, Repair that works and Repair that does not."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from app.base.sentence import say
from app.launcher import repair_page, slot_lock, slots, supervisor
from app.launcher.console import Refused
from app.launcher.failure import StartFailure
from app.launcher.repair_page import Repair
from app.ui.page import translate
from tests.support.checkout import Checkout
from tests.support.waiting import until
from tests.support.window import CHROMIUM, FLAGS

pytestmark = pytest.mark.long

MAIN = """
import os, sys, time
if "--wait" in sys.argv:
    print("waiting", flush=True)
    time.sleep(60)
import small
print("Hearth is open", sys.argv[1:])
"""
FAILED = StartFailure({"en": "It <b>broke</b>.", "zh": "坏了。"}, "Python 3\nline")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Made and started well once; then a package went away."""
    if sys.platform == "win32":
        pytest.skip("the browser's stand-in is a shell script")
    folder = tmp_path_factory.mktemp("broken")
    checkout = Checkout(folder)
    (checkout.top / "app" / "__main__.py").write_text(MAIN)
    done = checkout.start()
    assert done.stdout == "Hearth is open []\n" and "app.launcher.supervisor" not in done.stderr, done.stderr
    for name in checkout.packages.glob("small*"):
        shutil.rmtree(name)
    seen = folder / "browser"
    told = shlex.quote(str(folder / "seen"))
    seen.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}\n')  # not in Python, whose path may have a space
    seen.chmod(0o755)
    checkout.env["BROWSER"] = f"{seen} %s"
    return checkout


def seen(checkout: Checkout) -> str:
    """The address that the browser was told."""
    file = Path(checkout.env["BROWSER"].removesuffix(" %s")).with_name("seen")
    until(file.is_file, 60)
    until(lambda: file.read_text().endswith("/"), 5)
    address = file.read_text()
    file.unlink()
    return address


def token(page: str) -> str:
    found = re.search(r'name="token" value="([\w-]+)"', page)
    assert found, page
    return found[1]


@pytest.mark.slow
def test_repair_fails_with_its_reason_then_works_and_hearth_starts(broken: Checkout) -> None:
    """Twice: first something is in the way of the new environment, then it is gone."""
    before, in_the_way = broken.slot, slots.other_slot(broken.slot)
    in_the_way.touch()
    child = broken.begin("--lang", "en")
    with httpx.Client(base_url=seen(broken), trust_env=False) as browser:
        page = browser.get("/").text
        assert "No module named" in page and "Traceback" in page and broken.env["HOME"] not in page
        first = token(page)
        assert browser.post("/repair", data={"token": "guessed"}).status_code == 403
        assert browser.post("/repair", data={"token": first}).headers["location"] == "/"
        assert browser.post("/repair", data={"token": first}).status_code == 403, "used up"
        assert browser.get("/state").json()["state"] == "repairing" and 'name="token"' not in browser.get("/").text
        until(lambda: browser.get("/state").json()["state"] == "failed", 120)
        page = browser.get("/").text
        assert "cannot be removed. Close Hearth" in page and "was rebuilt" not in page
        in_the_way.unlink()
        assert token(page) != first
        assert browser.post("/repair", data={"token": token(page)}).status_code == 303
        until(lambda: browser.get("/state").json()["state"] == "repaired", 120)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and out == "Hearth is open ['--lang', 'en']\n", err
    assert broken.slot == in_the_way and not before.exists(), "the old one is taken away"


@contextmanager
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, repairing: str) -> Iterator[tuple[str, list[str]]]:
    """The page in this process, its repair a script of the test's own."""
    script = tmp_path / "start.py"
    script.write_text(repairing)
    monkeypatch.setattr(slots, "TOP", tmp_path)
    monkeypatch.setattr(repair_page, "BYE_S", 1.5)
    told: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: told.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":9")
    result: list[str] = []
    worker = threading.Thread(target=lambda: result.append(repair_page.offer_repair(FAILED, tmp_path, True, 0)))
    worker.start()
    until(lambda: bool(told))
    yield told[0], result
    worker.join(timeout=60)
    assert not worker.is_alive()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_in_a_real_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pressed twice: the first repair fails, the second goes well. Both looks and both languages."""
    repairing = (
        "import pathlib, sys, time\ngo, mark = (pathlib.Path(__file__).with_name(each) for each in ('go', 'mark'))\n"
        "while not go.exists(): time.sleep(0.1)\n"
        "if not mark.exists(): mark.touch(); sys.exit('hearth: The disk is full. Make room.')\n"
    )
    with offered(monkeypatch, tmp_path, repairing) as (address, result), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        looks: tuple[tuple[Literal["dark", "light"], str], ...] = (("dark", "zh-CN"), ("light", "en"))
        for light, language in looks:
            page = browser.new_page(color_scheme=light, locale=language)
            page.goto(address)
            page.locator("summary").click()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            assert ("修复" in page.get_by_role("button").first.inner_text()) == (language == "zh-CN")
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(22, 19, 17)") == (light == "dark"), ground
        assert page.locator("main > p").first.inner_text() == "It <b>broke</b>."
        page.get_by_role("button", name="Repair").click()
        page.get_by_text("Rebuilding the environment").wait_for()
        (tmp_path / "go").touch()
        page.get_by_text("The disk is full. Make room.").first.wait_for()
        page.get_by_role("button", name="Repair").click()
        page.get_by_text("you can close this page").wait_for()
        browser.close()
    assert result == ["repair"]


def test_only_this_page_can_press(tmp_path: Path) -> None:
    repair = Repair(FAILED, tmp_path, 0)
    with ThreadingHTTPServer(("127.0.0.1", 0), repair_page.make_handler(repair)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", trust_env=False) as client:
            page = client.get("/")
            given = {"token": token(page.text)}
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
            for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1"}, {"Host": f"localhost:{server.server_port + 1}"}):
                assert client.get("/", headers=headers).status_code == 421
                assert client.post("/repair", data=given, headers=headers).status_code == 421
            for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
                assert client.post("/repair", data=given, headers={"Origin": origin}).status_code == 403
            assert client.post("/repair", data={}).status_code == 403
            assert client.post("/repair", data={**given, "deed": "update"}).status_code == 403
            assert client.post("/repair", content=b"x" * 5000).status_code == 413
            assert client.get("/repair").status_code == client.post("/state", data=given).status_code == 404
            assert client.get("/../start.py").status_code == 404 and repair.state == "failed"
        server.shutdown()


def test_the_way_back_from_an_update_is_offered_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that does not start is left without a word in a terminal."""
    script = "import pathlib, sys\npathlib.Path(__file__).with_name('told').write_text(' '.join(sys.argv[1:]))\n"
    with offered(monkeypatch, tmp_path, script) as (address, result), httpx.Client(base_url=address, trust_env=False) as browser:
        assert 'value="back"' not in browser.get("/").text
        slots.write_way_back(tmp_path, {"slot": "b", "version": ""})
        page = browser.get("/").text
        assert 'name="deed" value="back"' in page and "Back to the version before the update" in page
        assert browser.post("/repair", data={"token": token(page), "deed": "back"}).status_code == 303
        until(lambda: browser.get("/state").json()["state"] == "repaired")
        assert "The version before the update now opens" in browser.get("/").text
    assert result == ["back"] and (tmp_path / "told").read_text() == "back"


def test_after_the_way_back_start_py_of_that_version_opens_hearth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(supervisor, "ensure_ready", lambda folder, want: folder)
    monkeypatch.setattr(supervisor, "run_once", lambda command: (1, FAILED))
    monkeypatch.setattr(repair_page, "offer_repair", lambda *_: "back")
    monkeypatch.setattr(supervisor, "run_command", lambda command: (ran.append([*map(str, command)]), 0)[1])
    assert supervisor.run_window(["--lang", "de"], tmp_path) == 0
    assert ran == [[sys.executable, str(slots.find_place() / "start.py"), "--lang", "de"]]


def test_a_page_that_nobody_looks_at_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_page, "FIRST_S", 0.2)
    with offered(monkeypatch, tmp_path, "") as (_, result):
        until(lambda: bool(result))
        assert result == [""]


def test_where_there_is_no_browser_a_text_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "h"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert repair_page.offer_repair(FAILED, tmp_path, True, 0) == ""
    file = tmp_path / "h" / "logs" / "hearth-did-not-start.txt"
    assert str(file) in capsys.readouterr().err and file.read_text("utf-8") == "It <b>broke</b>.\n\nPython 3\nline\n"
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("asked not to"))
    monkeypatch.setenv("DISPLAY", ":9")
    assert repair_page.offer_repair(FAILED, tmp_path, False, 0) == ""


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("sys.exit(0)", None),
        ("sys.exit(130)", None),
        ("sys.exit(2)", None),  # ended, stopped, mistyped
        pytest.param("os.kill(os.getpid(), 15)", None, marks=pytest.mark.skipif(sys.platform == "win32", reason="signals")),
        ("sys.exit('no kernel')", "no kernel (1)"),
        ("os.environ.pop('HEARTH_FAILURE'); 1 / 0", "ZeroDivisionError: division by zero (1)"),
        ("import json; json.dump({'words': {'en': 'a'}, 'report': 'c'}, open(os.environ['HEARTH_FAILURE'], 'w')); sys.exit(2)", "a"),
        ("open(os.environ['HEARTH_FAILURE'], 'w').write('{}'); sys.exit('torn')", "torn (1)"),
    ],
)
def test_what_counts_as_a_failure(code: str, shown: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    _, failed = supervisor.run_once([sys.executable, "-c", f"import os, sys; {code}"])
    assert (failed.words["en"] if failed else None) == shown
    if shown and shown != "a":
        assert failed and failed.report and failed.report.splitlines()[-1] in capfd.readouterr().err, "passed on"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_who_ends_the_start_ends_hearth(broken: Checkout) -> None:
    child = broken.begin("--wait")
    assert child.stdout and child.stdout.readline() == "waiting\n"
    inner = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout.split()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode != 0 and len(inner) == 1
    until(lambda: not Path(f"/proc/{inner[0]}").exists(), 10)


@pytest.mark.parametrize("accept", ["", "en", "zh", "zh-TW,en", "xx,zh"])
@pytest.mark.parametrize("cookie", ["", "hearth_language=en", "a=b; hearth_language=zh"])
def test_the_page_speaks_the_windows_language(accept: str, cookie: str) -> None:
    from email.message import Message

    from starlette.requests import Request

    message = Message()
    message["Cookie"], message["Accept-Language"] = cookie, accept
    scope = {"type": "http", "headers": [(b"cookie", cookie.encode()), (b"accept-language", accept.encode())]}
    assert repair_page.language_of(message) == translate.language(Request(scope))


def test_a_window_that_asks_for_it_is_opened_anew_once_nothing_runs_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the start.py that the owner has, with the same words; and the window's code for it is no failure."""
    (tmp_path / "window.py").write_text(f"raise SystemExit({supervisor.RESTART})")
    code, failed = supervisor.run_once([sys.executable, str(tmp_path / "window.py")])
    assert (code, failed) == (supervisor.RESTART, None)
    monkeypatch.setattr(supervisor, "ensure_ready", lambda *_: tmp_path)
    monkeypatch.setattr(supervisor, "run_once", lambda command: (code, None))
    begun: list[list[str]] = []
    left = [True, True, False]

    def require_unused(*_: Path) -> None:
        assert not begun
        if left.pop(0):
            raise Refused(say("start.changed", "Hearth was updated meanwhile. Start it again."))

    monkeypatch.setattr(slot_lock, "require_unused", require_unused)
    monkeypatch.setattr(supervisor, "run_command", lambda command: begun.append(command) or 0)
    assert supervisor.run_window(["--browser", "--port", "1"], tmp_path) == 0
    assert begun == [[sys.executable, str(slots.find_place() / "start.py"), "--browser", "--port", "1"]] and not left
