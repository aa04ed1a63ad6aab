"""Where a browser gives no microphone, the page says why and what to do instead: no device, one in use, a refusal, a page without encryption."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Playwright, expect, sync_playwright

from tests.browser.test_content_policy import WATCH
from tests.support.both_servers import served
from tests.support.window import FLAGS, WAIT_MS, WHOLE_CHROMIUM, shut_out, unfold

pytestmark = pytest.mark.skipif(WHOLE_CHROMIUM is None, reason="no whole Chromium on this machine")
DEVICE = "--use-fake-device-for-media-stream"
UNENCRYPTED = "Object.defineProperty(navigator, 'mediaDevices', { value: undefined })"
"""A browser shows it so to a page that is not from this computer."""
BUSY = "navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotReadableError'); }"
"""Another program holds it."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("microphone")) as (desk, address, _):
        desk.settings.put({"greeted": True})
        yield address


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        yield playwright


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "allowed", "before", "language", "told"),
    [
        pytest.param("--mute-audio", True, "", "en-US", "No microphone was found.", marks=pytest.mark.slow),
        (DEVICE, False, "", "zh-CN", "浏览器拦截了麦克风。"),
        pytest.param(DEVICE, True, BUSY, "en-US", "Another program uses the microphone.", marks=pytest.mark.slow),
        pytest.param(DEVICE, True, UNENCRYPTED, "en-US", "to a page without encryption", marks=pytest.mark.slow),
        pytest.param(DEVICE, True, "", "en-US", "", marks=pytest.mark.slow),
    ],
    ids=["none", "blocked", "busy", "unencrypted", "given"],
)
def test_why_there_is_no_microphone(
    flag: str, allowed: bool, before: str, language: str, told: str, playwright: Playwright, address: str
) -> None:
    """Record did nothing, and beside it stood half of "No microphone found"."""
    browser = playwright.chromium.launch(executable_path=WHOLE_CHROMIUM, args=[*FLAGS, flag])
    context = browser.new_context(locale=language, viewport={"width": 390, "height": 844}, permissions=["microphone"] if allowed else [])
    context.add_init_script(WATCH + before)
    page, faults = context.new_page(), list[str]()
    page.set_default_timeout(WAIT_MS)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    unfold(page, {"en-US": "Create a voice", "zh-CN": "用录音创建声音"}[language])
    note = page.locator("#speak-clip .h-note")
    expect(note).to_have_count(0)
    page.locator("#speak-clip .source-selection button").last.click()
    record = page.locator("#speak-clip .record-button")
    if flag == DEVICE and before != UNENCRYPTED:
        record.click()
    if told:
        expect(note).to_contain_text(told)
        expect(record).to_be_visible(visible=not allowed or before == BUSY)  # once it is allowed or free, Record asks again
        assert not shut_out(page)
    else:
        page.locator("#speak-clip .stop-button").click()
        expect(page.locator("#speak-clip .waveform-container, #speak-clip #waveform").first).to_be_visible()
        expect(note).to_have_count(0)
    page.locator("#speak-clip .source-selection button").first.click()
    expect(note).to_have_count(0)
    assert not faults and page.evaluate("refused") == []
    browser.close()
