"""A script at another speed than the voice's own: what is forecast of it, and how its parts sound. In a real browser, without an engine."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from app.engine.jobs.request import SpeechRequest
from app.engine.speech.text.script import parse_script
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support import light_engine
from tests.support.waiting import until
from tests.support.window import go, needs_chromium, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.mark.slow
def test_the_forecast_counts_the_speed_of_the_slider_and_of_the_saved_settings(page: Page, opened: tuple[Desk, str]) -> None:
    go(page, "speak")
    script = "[S1] " + "The wind came off the fjord, smelling of salt and tar. " * 3 + "(pause 10s) Then it went."
    parsed = parse_script(script, opened[0].models.read_limits("")[1])
    normal_s, slow_s = (round(parsed.estimate_seconds(speed)) for speed in (1.0, 0.5))
    assert 10 < normal_s < slow_s - 10 < 30
    about = page.locator("#h-script .h-check span").last
    page.fill("#speak-text textarea", script)
    expect(about).to_contain_text(f"about {normal_s} s of speech")
    unfold(page, "Settings")
    page.locator("#speak-speed input[type=range]").fill("0.5")
    expect(about).to_contain_text(f"about {slow_s} s of speech")
    until(lambda: opened[0].settings.get("speak", {}).get("speed") == 0.5)
    page.reload()
    expect(about).to_contain_text(f"about {slow_s} s of speech")


def test_a_part_is_heard_at_the_speed_of_its_result(page: Page, opened: tuple[Desk, str]) -> None:
    go(page, "speak")
    desk, _ = opened
    job = desk.keeper.journal.queue(SpeechRequest("[S1] It is warm.", speed=0.5), desk.machine.read_choice(OWNER))
    desk.keeper.journal.withdraw(job.id)
    light_engine.speak(desk.keeper.folder(job.id), 0, "[S1] It is warm.")
    desk.jobs.latest[OWNER.name, "speech"] = job.id
    player = page.locator("#h-parts .h-player")
    lasts_s = float(re.match(r"[\d.]+", player.locator(".h-clock").inner_text())[0])  # type: ignore[index]
    player.get_by_role("button", name="Play part 1").click()
    page.wait_for_function("document.querySelector('#h-parts audio').currentTime > 0")
    rate, whole_s = page.evaluate("(({ playbackRate, duration }) => [playbackRate, duration])(document.querySelector('#h-parts audio'))")
    assert rate == 0.5 and lasts_s == pytest.approx(2 * whole_s, abs=0.1)
