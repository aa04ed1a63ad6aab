"""A cast in the window: a row for each name of the script, whose voice, volume and pace the next start has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from app.engine.jobs.request import Actor, SpeechRequest
from app.engine.speech.text import voices
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support.cached_pockets import put_phonon
from tests.support.waiting import until
from tests.support.window import asked_by, await_script, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
SCRIPT = "#speak-text textarea"
PLAY = "Anna: Good evening.\nBen: Hello, who is there?\nCarl: Nobody."


def rows(page: Page) -> Locator:
    return page.locator("#h-cast li")


def pick(page: Page, what: str, name: str, option: str) -> None:
    page.get_by_role("combobox", name=f"{what} of {name}").select_option(label=option)


def asked(page: Page, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> SpeechRequest:
    """What a press of Speak asks for."""
    request = asked_by(page, "#speak-go", desk, monkeypatch)
    assert isinstance(request, SpeechRequest)
    return request


@pytest.mark.slow
def test_names_become_tags_when_asked_and_each_gets_its_voice(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page.fill(SCRIPT, PLAY)
    offer = page.locator("#h-script .h-problems", has_text="Anna, Ben, Carl speak here")
    expect(offer).to_be_visible()
    assert not rows(page).count(), "nothing is applied before it is confirmed"
    offer.get_by_role("button").click()
    expect(page.locator(SCRIPT)).to_have_value("[Anna] Good evening.\n[Ben] Hello, who is there?\n[Carl] Nobody.")
    expect(rows(page)).to_have_count(3)
    expect(page.locator("#speak-voice")).to_be_hidden()
    expect(page.locator(".h-turns .h-badge")).to_have_text(["Anna", "Ben", "Carl"])
    second = voices.list_ready_voices()[4]
    pick(page, "Voice", "Ben", second.name)
    pick(page, "Volume", "Carl", "quieter")
    pick(page, "Pace", "Carl", "a little faster")
    request = asked(page, opened[0], monkeypatch)
    assert request.cast == (Actor("Ben", second.prompt), Actor("Carl", None, "", -4.0, 1.08))
    until(lambda: json.loads(opened[0].settings.get("speak", {}).get("cast") or "{}").get("Ben") == {"voice": second.name})
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(SCRIPT)).to_have_value(PLAY)


@pytest.mark.slow
def test_two_plain_speakers_have_rows_too_and_the_first_the_chosen_voice(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = (each.name for each in voices.list_ready_voices()[2:4])
    page.fill(SCRIPT, "[S1] Hello there.")
    expect(page.locator(".h-turns .h-badge")).to_have_text(["S1"])
    expect(page.locator("#speak-voice")).to_be_visible()
    page.locator("#speak-voice input").click()
    page.get_by_role("option", name=first).click()
    page.fill(SCRIPT, "[S1] Hello there. [S2] Hi.")
    expect(rows(page)).to_have_count(2)
    voice = page.get_by_role("combobox", name="Voice of S1")
    expect(voice.locator("option:checked")).to_have_text(first)
    pick(page, "Voice", "S2", other)
    request = asked(page, opened[0], monkeypatch)
    assert [each.name for each in request.cast] == ["S2"] and request.voice is not None
    voice.select_option(index=0)
    expect(page.locator("#speak-voice input")).to_have_value("New random voice")


def test_a_guess_is_offered_and_a_third_speaker_has_a_tag_to_insert(page: Page) -> None:
    page.fill(SCRIPT, "\u201cCome in,\u201d said Anna. \u201cSit down.\u201d\n\u201cThank you,\u201d Ben replied.")
    offer = page.locator("#h-script .h-problems", has_text="Anna, Ben seem to speak here, by words such as: said Anna")
    expect(offer).to_be_visible()
    offer.get_by_role("button").click()
    expect(page.locator(SCRIPT)).to_have_value(
        "[Anna] \u201cCome in,\u201d [Narrator] said Anna. [Anna] \u201cSit down.\u201d\n[Ben] \u201cThank you,\u201d [Narrator] Ben replied."
    )
    expect(rows(page)).to_have_count(3)
    page.fill(SCRIPT, "[S1] One. [S2] Two.")
    expect(page.locator('.h-chip[data-insert="[S3]"]')).to_be_visible()


@pytest.mark.slow
def test_another_models_voice_and_a_reload_and_a_restored_cast(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desk = opened[0]
    put_phonon(desk.keeper.home, tmp_path)
    page.reload()
    await_script(page)
    page.fill(SCRIPT, "[Anna] Good evening. [Ben] Hello.")
    ben = page.get_by_role("combobox", name="Voice of Ben")
    expect(ben.locator('optgroup[label="Phonon 31M"] option')).to_have_text(["Zoe", "Max", "Ann", "\u00c9lodie-Rose"])
    expect(ben.locator('optgroup[label="Starter voice"] option').first).to_have_text("One of its voices")
    pick(page, "Voice", "Ben", "Callum")
    expect(page.locator("#h-script .h-problems", has_text="Each voice model is loaded once")).to_be_visible()
    request = asked(page, desk, monkeypatch)
    assert request.cast[0].model == "starter-voice" and request.cast[0].voice is not None
    table, gone = desk.models.write_cast(request, OWNER)
    assert json.loads(table) == {"Ben": {"voice": "Callum", "model": "starter-voice"}} and not gone
    until(lambda: "starter" in desk.settings.get("speak", {}).get("cast", ""))
    page.reload()
    expect(page.get_by_role("combobox", name="Voice of Ben").locator("option:checked")).to_have_text("Callum")
