"""What the tests of the window share: one Hearth with its engine and tiny models, one Chromium, and pages that look at it."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright
from playwright.sync_api import TimeoutError as TooLateError
from safetensors.torch import load_file, save_file

from app.ui.state.desk import Desk
from tests.support.places import TOP
from tests.support.tiny_pictures import save
from tests.support.tiny_voices import STARTER, save_voice
from tests.support.waiting import LOADING_S, WAIT_S, until

WHOLE_CHROMIUM = next(
    (path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome") if Path(path).exists()), None
)
CHROMIUM = next((path for path in ("/usr/bin/chromium-headless-shell",) if Path(path).exists()), WHOLE_CHROMIUM)
"""Without the half that draws windows a page takes 1.3 s of the processor instead of 2.4. It has no microphone, though."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = WAIT_S * 1000
LOADING_MS = LOADING_S * 1000
ROWS = 160
"""So many rows the voice has room for. It never ends by itself, so each part lasts as long as that allows."""
SCRIPT = "[S1] It is warm, you know. (pause 0.2s) [S2] And was I wrong?"
"""It makes two parts."""
LONG_SCRIPT = " (pause 0.2s) ".join(["[S1] It is warm, you know."] * 40)

AUDITED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in its background without
def look(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        to = args[0] if event == "socket.getaddrinfo" else args[1]
        with open(sys.argv[-1] + ".sockets", "a") as log:
            print(to[0] if isinstance(to, tuple) else to, file=log)
sys.addaudithook(look)
if {patient}:
    from tests.support import patient_engine
    patient_engine.replace_engines()
from app.__main__ import main
sys.exit(main(sys.argv[1:-1]))
"""

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@dataclass
class Open:
    """A Hearth that is open, and what lies in its folder."""

    address: str
    home: Path
    process: subprocess.Popen[str]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "hearth.sqlite3", timeout=30)) as database:
            return database.execute(query).fetchall()

    def jobs(self) -> list[dict[str, Any]]:
        rows = self.rows("SELECT id, state, request, attempts, words FROM jobs ORDER BY created_s")
        return [
            {"id": id_, "state": state, "request": json.loads(request), "attempts": attempts, "words": words}
            for id_, state, request, attempts, words in rows
        ]

    def settings(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads((self.home / "settings.json").read_text("utf-8"))
        return kept

    def engine(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return max(children, key=lambda child: child.memory_info().rss)


def start(home: Path, audit: Path, *more: str, patient: bool = False) -> Open:
    """`python -m app open`, with every connection that it makes written down. `patient`: for a voice that never ends by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", AUDITED.format(patient=patient), "open", "--no-browser", "--home", str(home), *more, str(audit)],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(r"http://127\.0\.0\.1:\d+/?", line):
            return Open(found[0], home, process)
    raise AssertionError(f"it said no address: {said}")


def end(hearth: Open, audit: Path) -> None:
    hearth.process.send_signal(signal.SIGINT)
    assert hearth.process.wait(timeout=60) == 0
    assert hearth.process.stdout is not None
    hearth.process.stdout.close()
    log = audit.with_suffix(".sockets")
    asked = set(log.read_text().split()) if log.exists() else set()
    assert asked <= {"127.0.0.1", "localhost", "::1", "None", "0.0.0.0"}, f"the server asked for {asked}"


def small_voice(folder: Path) -> Path:
    """Each of its parts is equally long, whatever the seed: its cache holds few rows, and it never draws the end itself."""
    voice = save_voice(folder, STARTER)
    config = json.loads((voice / "config.json").read_text())
    config["decoder_config"]["max_position_embeddings"] = ROWS
    (voice / "config.json").write_text(json.dumps(config))
    weights = load_file(voice / "model.safetensors")
    weights["logits_dense.weight"][config["decoder_config"]["eos_token_id"]] = 0  # of 260 some always lie above it
    save_file(weights, voice / "model.safetensors", {"format": "pt"})
    return voice


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("window")
    voice, painter = small_voice(folder / "small voice"), save("sd15", folder / "small painter")
    home = folder / "home"
    home.mkdir()
    settings = {
        "models": [str(voice), str(painter)],
        "speak": {"model": str(voice)},
        "paint": {"model": str(painter), "steps": 4, "width": 128, "height": 128},
        "greeted": True,
    }
    (home / "settings.json").write_text(json.dumps(settings))
    hearth = start(home, folder / "audit", patient=True)
    yield hearth
    end(hearth, folder / "audit")


@contextmanager
def chromium() -> Iterator[Browser]:
    """While it is open its event loop runs, which tests of other things may not like."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@dataclass
class Contexts:
    """One for each kind of guest, kept: what the page is made of is fetched once. The usual one has a profile on the disk, in which
    Chromium keeps its scripts compiled, too: a page takes 1.6 s of the processor instead of 2.5."""

    browser: Browser
    profile: Path
    kept: dict[str, BrowserContext] = field(default_factory=dict)

    def of(self, options: dict[str, Any]) -> BrowserContext:
        told: dict[str, Any] = {"viewport": {"width": 1400, "height": 900}, "locale": "en-US", "reduced_motion": "reduce", **options}
        name = json.dumps(told, sort_keys=True)
        if name not in self.kept and options:
            self.kept[name] = self.browser.new_context(**told)
        elif name not in self.kept:
            launch = self.browser.browser_type.launch_persistent_context
            self.kept[name] = launch(self.profile, executable_path=CHROMIUM, args=FLAGS, **told)
        return self.kept[name]


@pytest.fixture(scope="module")
def contexts(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contexts]:
    kept = Contexts(browser, tmp_path_factory.mktemp("profile"))
    yield kept
    for each in kept.kept.values():
        each.close()


@contextmanager
def open_page(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page in a context of its own, once its strip says what Hearth is doing and its script is back."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    await_script(page)
    yield page
    end_answers(page)
    context.close()


SCRIPT_IS_BACK = """async () => {
    const answer = await fetch("hearth/drafts"), own = JSON.parse(sessionStorage.getItem("hearth_drafts") ?? "{}");
    const draft = { ...(answer.ok ? await answer.json() : {}), ...own }["speak-text"];
    return !draft || document.querySelector("#speak-text textarea")?.value === draft;
}"""


def await_script(page: Page) -> None:
    """Wait until the page, opened or reloaded, has the script of the page before: what is filled in sooner may be mixed with it, as a browser
    first selects what is there, then types."""
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    page.wait_for_function(SCRIPT_IS_BACK, polling=50)


def end_answers(page: Page) -> None:
    """A request that a test answers may be under way when its page closes; what that raises would come up in the next test."""
    page.unroute_all(behavior="ignoreErrors")


Visit = Callable[..., Page]


@pytest.fixture
def visit(contexts: Contexts, opened: Open) -> Iterator[Visit]:
    """A page that is ready; whatever it throws or asks of another machine fails the test."""
    pages: list[Page] = []
    outside: list[str] = []
    faults: list[str] = []

    def visit(tab: str = "speak", address: str = "", **options: Any) -> Page:
        home = address or opened.address
        page = contexts.of(options).new_page()
        pages.append(page)
        page.set_default_timeout(WAIT_MS)
        mine = (home, "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(mine) else outside.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        with page.expect_response("**/hearth/drafts"):
            page.goto(home)
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
        go(page, tab)
        return page

    yield visit
    for page in pages:
        if not page.is_closed():
            end_answers(page)
        page.close()
    assert not outside, "the page asked for something outside"
    assert not faults


def until_seen(page: Page, condition: Callable[..., bool], seconds: float = WAIT_S) -> None:
    """Wait as `until` does while the page goes on: Playwright hears of requests only while it is asked something."""
    until(lambda: page.wait_for_timeout(20) is None and condition(), seconds)


LOOKED = """async (count) => {
  for (; count; count--) {
    const before = Hearth.live.state;
    for (Hearth.soon(); Hearth.live.state === before; ) await new Promise((go) => setTimeout(go, 20));
  }
}"""


def pass_looks(page: Page, count: int = 2) -> None:
    """Wait until the page has asked the server so many times more what there is, and has drawn it: what was begun before and has not come by
    then does not come."""
    page.evaluate(LOOKED, count)  # the first may have been on its way already
    page.evaluate(SETTLED)


SETTLED = """() => new Promise(done => {
  const wait = left => left ? requestAnimationFrame(() => setTimeout(() => wait(left - 1), 30)) : done();
  wait(6);
})"""
"""Fields that come into the page take their values a moment later, over what was typed meanwhile.

It waits by the page's own clock, which is slow where the machine is."""


STORED = """([what, field]) => new Promise((done) => {
  const asked = indexedDB.open("hearth", 1);
  asked.onsuccess = () => {
    const own = asked.result.transaction("pictures").objectStore("pictures").get(sessionStorage.getItem("hearth_window") + what);
    own.onsuccess = () => done(Boolean([own.result?.[field]].flat().filter(Boolean).length));
  };
})"""


def await_stored(page: Page, field: str, what: str = "") -> None:
    """Wait until this window has stored the start picture's mask, frame or the like, with which it comes back; `what`: another picture of it."""
    page.wait_for_function(STORED, arg=[f" {what}" if what else "", field])


DROP = """([selector, name, type, bytes]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([new Uint8Array(bytes)], name, { type }));
  document.querySelector(selector).dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


def drop(page: Page, selector: str, name: str, content: bytes, kind: str = "text/plain") -> None:
    """Drop a file on what the selector finds first."""
    page.evaluate(DROP, [selector, name, kind, list(content)])


def go(page: Page, tab: str) -> None:
    """By the script's own way: on a narrow screen some tabs hide in a menu."""
    page.wait_for_function("window.Hearth?.openTab && window.Hearth.live.state")
    page.wait_for_selector(f'button[role="tab"][data-tab-id="{tab}"]', state="attached")  # may come after the strip
    page.evaluate("tab => Hearth.openTab(tab)", tab)
    first = {"speak": "#speak-go", "paint": "#paint-go", "shelf": "#h-shelf", "models": "#h-models", "machine": "#h-words"}[tab]
    page.wait_for_selector(first, state="attached")
    if tab == "machine":
        unfold_tinkerers(page)
    page.evaluate("Hearth.redraw()")  # puts what was left as a draft into the fields that came
    page.evaluate(SETTLED)


def unfold_tinkerers(page: Page) -> None:
    """What most tests of the Machine tab are about."""
    if not page.locator("#h-plan").count():
        page.locator("#machine-more > button.label-wrap").evaluate(UNFOLD)
        page.wait_for_selector("#h-plan", state="attached")


GRADIOS = {"aria-valid-attr-value", "aria-required-children"}
"""Its tabs have an empty aria-controls, and its listboxes too while they are closed."""
AUDIT = """options => axe.run(options).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => [id, target])))"""
"""Only what is wrong is sent: to describe and to send every node that is right takes longer than to look at it."""

CUT_OFF = """() => [...document.querySelectorAll("input[placeholder]")].filter((field) => {
  const style = getComputedStyle(field), pen = document.createElement("canvas").getContext("2d");
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return field.offsetParent && pen.measureText(field.placeholder).width > room + 1;
}).map((field) => ["cut off", field.placeholder])"""


STICKS_OUT = """() => [...document.querySelectorAll(".h-card")].filter((card) => card.checkVisibility()).flatMap((card) => {
  const edge = card.getBoundingClientRect().right + 1;
  const scrolls = (each) => each !== card && (getComputedStyle(each).overflowX !== "visible" || scrolls(each.parentElement));
  const seen = (each) => !each.children.length && each.checkVisibility({visibilityProperty: true});
  const beyond = (each) => seen(each) && each.getBoundingClientRect().right > edge && !scrolls(each);
  return [...card.querySelectorAll("*")].filter(beyond).map((each) => ["sticks out of its card", each.textContent]);
})"""


PREDICT = "/run/predict"
PRESSED = """(selector) => {
  const { components, dependencies } = gradio_config, button = components.find((each) => `#${each.props.elem_id}` === selector);
  return dependencies.filter((each) => each.targets.some(([part]) => part === button.id)).map((each) => each.id);
}"""


def asked_by(page: Page, button: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the request that a press of a button would begin; the page has the answer by then, as Gradio drops a press that comes before it."""
    begun: list[Any] = []
    monkeypatch.setattr(type(desk.jobs), "begin", lambda self, request, person: begun.append(request))
    calls = page.evaluate(PRESSED, button)
    with page.expect_response(
        lambda answer: (answer.request.post_data_json or {}).get("fn_index") in calls if PREDICT in answer.url else False
    ) as told:
        page.click(button)
    told.value.finished()
    page.evaluate(SETTLED)
    return begun[0]


def shut_out(page: Page) -> list[Any]:
    """What axe-core finds, but for what Gradio's own parts bring, which is named, so that nothing else hides behind it; a page wider than
    its screen; what sticks out of its card; and a field too narrow for its placeholder."""
    page.evaluate(Axe().axe_script)
    found = page.evaluate(AUDIT, {"runOnly": ["wcag2a", "wcag2aa", "best-practice"], "resultTypes": ["violations"]})
    ours = [(rule, target) for rule, target in found if rule not in GRADIOS]
    wide = page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
    return [*ours, *page.evaluate(CUT_OFF), *page.evaluate(STICKS_OUT), *(["wider than the screen"] if wide else [])]


def held(page: Page, which: Callable[[list[Any]], bool]) -> list[Route]:
    """The first question to the server whose values are such stays on its way, and is put here, until the test lets it go on."""
    found: list[Route] = []

    def hold(route: Route) -> None:
        if not found and which((route.request.post_data_json or {}).get("data", [])):
            found.append(route)
        else:
            route.continue_()

    page.route("**/run/predict*", hold)
    return found


UNFOLD = "(fold) => fold.classList.contains('open') || fold.click()"
"""After a reload the page may have opened it already."""


def unfold(page: Page, title: str) -> None:
    """What is folded away is not in the page until it is opened."""
    page.locator("button.label-wrap", has_text=re.compile(f"^{title}")).locator("visible=true").evaluate(UNFOLD)
    page.evaluate(SETTLED)


def choices(page: Page, field: str) -> str:
    """What a dropdown offers, which stays open. New choices that come at that moment shut it, and it is opened again."""
    offered = list[str]()

    def seen() -> bool:
        page.locator(f"{field} input").blur()
        page.locator(f"{field} input").click()
        offered[:] = page.locator(f"{field} ul[role=listbox]").all_inner_texts()
        return bool(offered)

    until(seen)
    return offered[0]


def choose(page: Page, field: str, option: str) -> None:
    """As `choices`, until one of them is taken."""

    def taken() -> bool:
        choices(page, field)
        try:
            page.get_by_role("option", name=option, exact=True).click(timeout=3000)
        except TooLateError:
            return False
        return True

    until(taken)
