"""From the greeting to the first natural voice: offered, downloaded from a hub on loopback, spoken and heard; in a real browser, with an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.hub import Hub, serving
from tests.support.phonon_hub import PHONON, make_hub
from tests.support.window import LOADING_MS, Open, end, needs_chromium, open_page, start

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(make_hub(tmp_path_factory.mktemp("hub"))) as served:
        yield served


@pytest.fixture
def opened(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    hearth = start(tmp_path / "home", tmp_path / "audit")
    yield hearth
    end(hearth, tmp_path / "audit")


def test_from_the_greeting_to_the_first_natural_voice(browser: Browser, opened: Open) -> None:
    """The card of what was to come was out of sight, and once it had come nothing led to a sound: no button, and a script to be written first."""
    with open_page(browser, opened.address, locale="de-DE", viewport={"width": 1280, "height": 800}) as page:
        heard: list[str] = []
        page.on("request", lambda request: heard.append(request.url) if "/hearth/heard/" in request.url else None)
        offered = page.locator("#h-greeting li").first
        expect(offered).to_contain_text("Von den natürlichen Stimmen, die Hearth herunterladen kann, spricht noch keine Deutsch.")
        offered.get_by_role("button", name="Phonon 31M herunterladen").click()
        asked = page.get_by_role("alertdialog")
        expect(asked).to_contain_text("Phonon 31M herunterladen?")
        asked.get_by_role("button", name="Herunterladen", exact=True).click()
        card = page.locator(".h-model-card", has_text="Phonon 31M")
        expect(card).to_be_in_viewport()
        expect(card.get_by_text("installiert")).to_be_visible(timeout=LOADING_MS)
        card.get_by_role("button", name="Damit sprechen").click()
        expect(page.locator("#h-parts .h-now")).to_contain_text("fertig", timeout=LOADING_MS)
        (job,) = opened.jobs()
        assert (job["state"], job["request"]["model"]) == ("finished", PHONON.id)
        assert any(f"/hearth/heard/{job['id']}/0" in each for each in heard), "it plays by itself"
