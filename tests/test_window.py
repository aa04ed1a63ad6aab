"""The window in a real browser, its engine in a real process, tiny models in the place of large ones."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.tiny import STARTER, save_voice
from tests.tiny_pictures import made

TOP = Path(__file__).parent.parent
CHROMIUM = next(
    (
        path
        for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
        if Path(path).exists()
    ),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LONG_MS = 45_000
expect.set_options(timeout=LONG_MS)
SCRIPT = "[S1] The old card in the attic still has some warmth left in it, you know. [S2] You said that about the toaster, too. (pause 0.2s) [S1] And was I wrong?"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

AUDITED = """
import sys
def look(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        to = args[0] if event == "socket.getaddrinfo" else args[1]
        with open(sys.argv[-1] + ".sockets", "a") as log:
            print(to[0] if isinstance(to, tuple) else to, file=log)
sys.addaudithook(look)
from app.__main__ import main
sys.exit(main(sys.argv[1:-1]))
"""


@dataclass
class Open:
    address: str
    home: Path
    process: subprocess.Popen[str]

    def jobs(self) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.home / "hearth.sqlite3")) as database:
            rows = database.execute("SELECT id, state, request, attempts FROM jobs ORDER BY created_s").fetchall()
        return [
            {"id": id_, "state": state, "request": json.loads(request), "attempts": attempts}
            for id_, state, request, attempts in rows
        ]

    def engine(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return max(children, key=lambda child: child.memory_info().rss)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("window")
    voice, painter = save_voice(folder / "small voice", STARTER), made("sd15", folder / "small painter")
    home = folder / "home"
    home.mkdir()
    settings = {
        "models": [str(voice), str(painter)], "speak": {"model": str(voice)}, "paint": {"model": str(painter)}, "greeted": True,
    }  # fmt: skip
    (home / "settings.json").write_text(json.dumps(settings))
    process = subprocess.Popen(
        [sys.executable, "-c", AUDITED, "open", "--no-browser", "--home", str(home), str(folder / "audit")],
        cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    address = ""
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:\d+/?", line):
            address = found[0]
            break
    assert address, "it said no address"
    yield Open(address, home, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    process.stdout.close()
    sockets = set((folder / "audit.sockets").read_text().split()) if (folder / "audit.sockets").exists() else set()
    assert sockets <= {"127.0.0.1", "localhost", "::1", "None", "0.0.0.0"}, f"the server asked for {sockets}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, opened: Open) -> Iterator[Visit]:
    contexts: list[BrowserContext] = []
    outside: list[str] = []
    faults: list[str] = []

    def visit(tab: str = "speak", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LONG_MS)
        page.on(
            "request",
            lambda request: (
                outside.append(request.url) if not request.url.startswith((opened.address, "data:", "blob:")) else None
            ),
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(opened.address)
        page.wait_for_selector('button[role="tab"]')
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
        go(page, tab)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not outside, "the page asked for something outside"
    assert not faults


def go(page: Page, tab: str) -> None:
    page.click(f'button[role="tab"][data-tab-id="{tab}"]')


def unfold(page: Page, title: str) -> None:
    """What is folded away is not in the page until it is opened."""
    page.locator("button.label-wrap", has_text=re.compile(f"^{title}")).locator("visible=true").click()


def speak(page: Page, text: str, seed: int = 5) -> None:
    page.fill("#speak-text textarea", text)
    page.keyboard.press("Control+Enter")


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_a_script_is_checked_spoken_and_a_part_done_again(visit: Visit, opened: Open) -> None:
    page = visit()
    page.fill("#speak-text textarea", SCRIPT + " [S3] Who?")
    expect(page.locator("#h-script .h-check .h-badge")).to_have_class(re.compile("wrong"))
    expect(page.locator("#h-script .h-turns li").first).to_contain_text("attic")
    speak(page, SCRIPT)
    expect(page.locator("#h-parts .h-part")).to_have_count(2)
    expect(page.locator("#h-sound audio")).to_be_visible(timeout=LONG_MS)
    expect(page.locator("#h-parts .h-number.right")).to_have_count(2)
    href = page.locator("#h-sound a[download]").get_attribute("href")
    sound = page.request.get(f"{opened.address.rstrip('/')}/{href}")
    assert sound.ok and sound.body()[:4] == b"RIFF"
    first = opened.jobs()[-1]
    page.locator("#h-parts .h-again").nth(1).click()
    until(lambda: opened.jobs()[-1]["id"] != first["id"] and opened.jobs()[-1]["state"] == "finished")
    again = opened.jobs()[-1]["request"]
    assert again["only_parts"] == [1] and len(again["keep"]) == 2


def test_stop_keeps_what_is_there(visit: Visit, opened: Open) -> None:
    page = visit()
    speak(page, SCRIPT)
    page.wait_for_selector("#h-parts .h-number.careful")
    page.keyboard.press("Escape")
    until(lambda: opened.jobs()[-1]["state"] == "stopped")
    with closing(sqlite3.connect(opened.home / "hearth.sqlite3")) as database:
        kept = database.execute("SELECT path, whole FROM creations WHERE job=?", (opened.jobs()[-1]["id"],)).fetchall()
    assert len(kept) == 1 and not kept[0][1] and Path(kept[0][0]).stat().st_size > 44, kept


@pytest.mark.slow
def test_a_job_outlives_the_page_and_a_killed_engine(visit: Visit, opened: Open) -> None:
    page = visit()
    speak(page, SCRIPT)
    page.wait_for_selector("#h-parts .h-number.right")
    page.reload()
    expect(page.locator("#h-parts .h-part")).to_have_count(2)
    if opened.jobs()[-1]["state"] == "running":
        opened.engine().kill()
        expect(page.locator("#h-parts .h-said")).to_contain_text("ended the engine")
    expect(page.locator("#h-sound audio")).to_be_visible(timeout=LONG_MS)
    until(lambda: opened.jobs()[-1]["state"] == "finished")


def test_a_picture_is_painted_and_its_settings_come_back_from_its_file(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    page.fill("#paint-prompt textarea", "a small boat at sunset")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#h-canvas .h-acts a")).to_be_visible(timeout=LONG_MS)
    painted = opened.jobs()[-1]["request"]
    assert painted["prompt"] == "a small boat at sunset"
    (file,) = sorted((opened.home / "creations").glob("*.png"))[-1:]
    page.fill("#paint-prompt textarea", "something else")
    page.set_input_files("#paint-dropped input[type=file]", file)
    expect(page.locator("#paint-prompt textarea")).to_have_value("a small boat at sunset")
    unfold(page, "Settings")
    seed = page.locator("#paint-seed input").input_value()
    assert seed.isdigit()


def test_a_mask_is_painted_over_a_picture(visit: Visit, opened: Open, tmp_path: Path) -> None:
    start = tmp_path / "start.png"
    Image.new("RGB", (128, 128), "teal").save(start)
    page = visit("paint")
    unfold(page, "Start from a picture")
    page.set_input_files("#paint-image input[type=file]", start)
    canvas = page.locator("#paint-image canvas").last
    canvas.wait_for()
    page.wait_for_timeout(1500)
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 10, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 20, box["y"] + box["height"] / 2 + 10, steps=6)
    page.mouse.up()
    page.wait_for_timeout(800)
    page.fill("#paint-prompt textarea", "a red ball")
    before = len(opened.jobs())
    page.click("#paint-go")
    until(lambda: len(opened.jobs()) > before)
    request = opened.jobs()[-1]["request"]
    assert request["image"] and request["mask"], request
    with Image.open(request["mask"]) as mask:
        light = sum(mask.histogram()[128:])
        assert 0 < light < mask.width * mask.height / 2
    until(lambda: opened.jobs()[-1]["state"] == "finished")


def test_the_chunk_size_acts_in_the_middle_of_a_run(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    page.fill("#paint-prompt textarea", "a slow picture")
    unfold(page, "Settings")
    page.get_by_label("Steps").fill("120")
    page.click("#paint-go")
    expect(page.locator("#h-strip .h-doing")).to_contain_text("painting step")
    go(page, "machine")
    page.fill("#machine-exact input, #machine-exact textarea", "64")
    page.keyboard.press("Enter")
    until(lambda: json.loads((opened.home / "settings.json").read_text()).get("choice", {}).get("chunk") == 64)
    seen = page.evaluate("async () => (await (await fetch('hearth/live')).json()).strip")
    assert "64" in seen["machine"] or not seen["job"], seen
    go(page, "paint")
    page.keyboard.press("Escape")
    until(lambda: opened.jobs()[-1]["state"] in ("stopped", "finished"))
    page.request.get(opened.address)


def test_the_shelf_finds_favours_bins_and_restores(visit: Visit) -> None:
    page = visit("shelf")
    cards = page.locator("#h-shelf .h-creation")
    expect(cards.first).to_be_visible()
    page.fill("#h-shelf input[type=search]", "boat")
    expect(cards).to_have_count(1)
    cards.first.get_by_role("button", name="favourite").click()
    expect(cards.first.get_by_role("button", name="favourite")).to_have_attribute("aria-pressed", "true")
    cards.first.get_by_role("button", name="delete").click()
    expect(cards).to_have_count(0)
    page.check("#h-shelf .h-bin")
    cards.first.get_by_role("button", name="restore").click()
    page.uncheck("#h-shelf .h-bin")
    expect(cards).to_have_count(1)
    cards.first.get_by_role("button", name="reuse").click()
    expect(page.locator("#paint-prompt textarea")).to_have_value("a small boat at sunset")


def test_the_machine_is_told_with_its_reasons(visit: Visit) -> None:
    page = visit("machine")
    expect(page.locator("#h-plan table").first).to_contain_text("precision")
    expect(page.locator("#h-curve svg")).to_be_visible()
    expect(page.locator("#h-words")).to_contain_text("torch")


@pytest.mark.parametrize("tab", ["speak", "paint", "shelf", "models", "machine"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(visit: Visit, tab: str, scheme: str) -> None:
    """axe-core finds no violation; what Gradio's own parts bring is named here, so that nothing else hides behind it."""
    page = visit(tab, color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_timeout(1200)
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
    ours = [(rule["id"], node["target"]) for rule in found for node in rule["nodes"] if rule["id"] not in GRADIOS]
    assert not ours, ours


GRADIOS = {"aria-valid-attr-value", "aria-required-children"}
"""Empty aria-controls of its tabs, and its listboxes while they are closed."""


def test_chinese_dark_and_narrow(visit: Visit) -> None:
    page = visit(locale="zh-CN", color_scheme="dark", viewport={"width": 390, "height": 800})
    expect(page.locator('button[role="tab"]').first).to_have_text("朗读")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert page.evaluate("document.body.classList.contains('dark')")
    for tab in ("speak", "paint", "shelf", "machine"):
        if page.locator(f'button[role="tab"][data-tab-id="{tab}"]').is_visible():
            go(page, tab)
            page.wait_for_timeout(400)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= 390, tab


def test_the_language_switch_overrides_the_browser(visit: Visit) -> None:
    page = visit(locale="en-US")
    page.click('[data-h-act="language"]')
    page.wait_for_selector('button[role="tab"]')
    expect(page.locator('button[role="tab"]').first).to_have_text("朗读")


def test_everything_by_keyboard(visit: Visit, opened: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    reached: set[str] = set()
    for _ in range(60):
        reached.add(
            page.evaluate(
                "document.activeElement.closest('[id]')?.id + ' ' + (document.activeElement.dataset.tabId ?? document.activeElement.dataset.hAct ?? '')"
            )
        )
        page.keyboard.press("Tab")
    text = " ".join(reached)
    for wanted in ("speak-text", "speak-go", "speak-stop", "speak-voice", "light", "language"):
        assert wanted in text, f"{wanted} cannot be reached by Tab: {sorted(reached)}"
