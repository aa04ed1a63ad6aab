"""What guests and the sharing owner see, in a real browser: axe-core in both lights and languages, and that nothing is offered that does nothing."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from starlette.middleware import Middleware

from app.base.sentence import Sentence
from app.compat.planning.types import Choice
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.request import PictureRequest
from app.engine.pictures.files import picture_settings
from app.ui import routes as page_routes
from app.ui import share, window
from app.ui.access.request_guard import limit_idle_connections
from app.ui.access.tunnel import OpenTunnel
from app.ui.launch import build_guards
from app.ui.page.theme import theme
from app.ui.page.translate import i18n
from app.ui.share import Share
from app.ui.state.desk import Desk
from app.ui.tabs import models, shelf, welcome
from app.ui.window import HeadInjection
from tests.support.guests import AT_HOME, desk_at, guest_client, shared
from tests.support.window import CHROMIUM, FLAGS, WAIT_MS, shut_out

pytestmark = [
    pytest.mark.long,
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0)), transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "image/png" }));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        desk.settings.put({"greeted": True})
        yield desk


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


Light = Literal["dark", "light"]


def look(browser: Browser, address: str, light: Light, language: str, width: int) -> Page:
    viewport: ViewportSize = {"width": width, "height": 800}
    page = browser.new_context(color_scheme=light, locale=language, viewport=viewport).new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    return page


def enter(page: Page, words: str) -> None:
    page.locator("input[type=password]").fill(words)
    page.locator("form button").click()
    page.locator("#paint-prompt textarea, #speak-text textarea").first.wait_for()
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")  # the names of the head's switches have come, too


def test_the_door_and_the_guests_window(desk: Desk, browser: Browser, tmp_path: Path) -> None:
    picture = tmp_path / "kept.png"
    picture_settings.write(Image.new("RGB", (64, 64), "red"), picture, PictureRequest("a lighthouse in fog", steps=7, seed=11), "sd15")
    with shared(desk) as (address, words, sharing):
        looks: list[tuple[Light, str, str, int]] = [("dark", "en-US", "Password", 1280), ("light", "zh-CN", "密码", 390)]
        for light, language, title, width in looks:
            page = look(browser, address, light, language, width)
            expect(page.get_by_text(title).first).to_be_visible()
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == {"dark": "rgb(22, 19, 17)", "light": "rgb(250, 246, 240)"}[light]
            assert not shut_out(page)
        refused: list[str] = []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.locator(".other a[lang=en]").click()
        expect(page.get_by_text("Password").first).to_be_visible()
        field, seen = page.locator("[name=password]"), page.get_by_label("Show the password")
        seen.check()
        expect(field).to_have_attribute("type", "text")
        seen.uncheck()
        enter(page, words)
        assert page.evaluate("document.documentElement.lang") == "en", "the language chosen at the door stays"
        assert not shut_out(page)
        page.evaluate(DROP, [picture.name, base64.b64encode(picture.read_bytes()).decode()])
        expect(page.locator("#paint-prompt textarea")).to_have_value("a lighthouse in fog")
        strip = page.locator("#h-strip").bounding_box()
        assert strip and strip["height"] <= 44 and page.locator("#h-strip .h-model").is_hidden(), "on a phone one line, of what is theirs"
        heard = page.evaluate("gradio_config.dependencies.flatMap((each) => each.targets.map(([, event]) => event))")
        assert "paint.restore" in heard and "paint.use" not in heard, "which is the owner's"
        job = desk.keeper.journal.queue(PictureRequest("a kiln"), Choice(), sharing.view()["guests"][0]["id"])
        desk.keeper.journal.withdraw(job.id)
        desk.keeper.shelf.keep(job, [shutil.copy(picture, tmp_path / "mine.png")], RunSummary("sd15"))
        page.evaluate("Hearth.openTab('shelf')")
        expect(page.locator(".h-creation .h-words")).to_have_text("a kiln")
        expect(page.locator(".h-creation .h-does").get_by_role("button")).to_have_text(
            ["Reuse settings", "Use as starting picture", "Delete"]
        )
        page.get_by_role("button", name="Use as starting picture").click()
        expect(page.locator(".h-force").locator("visible=true").locator("li").first).to_contain_text(re.compile("starting from .*kiln.png"))
        assert not refused, "the page asks for what guests may not have"
        assert not shut_out(page)


LOOKS = [("light", "en-US", 1280), pytest.param("dark", "zh-CN", 390, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("light", "language", "width"), LOOKS)
def test_the_owners_panel(light: Light, language: str, width: int, desk: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "find_home_address", lambda: AT_HOME)
    lost: list[Sentence] = []
    sharing = Share(desk, lambda port: OpenTunnel(f"http://127.0.0.1:{port}/", find_fault=lambda: lost[0] if lost else None))
    blocks = window.build(desk)
    routes = [*page_routes.routes(desk), *shelf.routes(desk), *models.routes(desk), *welcome.routes(desk), *share.routes(sharing)]
    _, address, _ = blocks.launch(
        prevent_thread_lock=True,
        quiet=True,
        run_history=False,
        theme=theme(),
        i18n=i18n(),
        footer_links=[],
        ssr_mode=False,
        app_kwargs={"routes": routes, "middleware": [*build_guards(desk.keeper.home)[0], Middleware(HeadInjection)]},
    )
    limit_idle_connections(blocks.server)
    try:
        page = look(browser, address, light, language, width)
        page.locator("[data-h-share]").click()
        page.get_by_role("radio", name=re.compile("Anywhere|任何地方")).check()
        page.locator(".h-begin button").click()
        page.locator(".h-running").wait_for()
        password = page.locator(".h-secret code").inner_text()
        assert len(password.split()) == 6
        with guest_client(sharing.view()["address"], password, "Ada"):
            page.locator(".h-guests button").click()
            asked = page.get_by_role("alertdialog")
            expect(asked).to_contain_text(re.compile("Whoever knows the password can come in again|知道密码的人可以再次登录"))
            assert not shut_out(page)
            asked.get_by_role("button", name=re.compile("change the password|更换密码")).click()
            expect(page.locator(".h-guests li")).to_have_count(0)
            expect(page.locator(".h-secret code")).not_to_have_text(password)
        assert page.locator(".h-qr svg").count() == 1
        expect(page.locator(".h-lost")).to_be_hidden()
        lost.append(Sentence("tunnel.lost", "The link is offline."))
        expect(page.locator(".h-lost")).to_have_text(re.compile("The link is offline|链接已离线"))
        expect(page.locator(".h-lost")).to_be_visible()
        page.locator(".h-sharing summary").click()
        assert not shut_out(page)
        lost.clear()
        page.locator(".h-end").click()
        page.locator(".h-begin").wait_for()
        page.get_by_role("radio", name=re.compile("At home|家里")).check()
        page.locator(".h-begin button").click()
        expect(page.locator(".h-address")).to_have_text(re.compile(rf"http://{re.escape(AT_HOME)}:\d+/"))
        expect(page.locator(".h-advice")).to_contain_text(re.compile("not encrypted|没有加密"))
        assert not shut_out(page)
        page.locator(".h-end").click()
        page.locator(".h-begin").wait_for()
        page.close()
    finally:
        sharing.end()
        blocks.close(verbose=False)


@pytest.mark.slow
def test_a_guest_whose_share_has_ended_is_not_told_to_start_hearth(desk: Desk, browser: Browser) -> None:
    with shared(desk) as (address, words, _):
        page = look(browser, address, "light", "en-US", 390)
        enter(page, words)
        page.wait_for_function("window.Hearth?.live.state")
    note = page.locator(".h-away-note")
    expect(note).to_have_text("Hearth cannot be reached. If sharing has ended, ask for a new link; else this page reconnects by itself.")
    page.locator("#speak-text textarea").fill("Hello.")
    page.evaluate("Hearth.press('speak-go')")
    page.locator(".toast-body").first.wait_for(state="attached")
    expect(page.locator(".toast-body").first).to_be_hidden()  # Gradio's own words for it
    assert not shut_out(page)
