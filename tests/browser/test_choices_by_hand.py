"""Choices by hand on the Machine tab in a real browser: what is chosen is what the plan, the doctor, the strip and the next job have."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect

from app.base.paths import home
from app.compat.machine.hardware import probe
from app.compat.machine.verdicts import Subject, Verdict, learn, load
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until
from tests.support.window import LOADING_MS, Open, Visit, choose, go, needs_chromium, pass_looks, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def chosen(page: Page, setting: str) -> str:
    """What the plan on the page has for a setting."""
    row = page.locator("#h-plan tr").filter(has=page.get_by_role("cell", name=setting, exact=True))
    return row.locator("td").nth(1).inner_text()


def doctors(opened: Open, model: str) -> dict[str, object]:
    """The plan of the command line for the same folder."""
    command = [sys.executable, "-m", "app", "doctor", "--json", "--model", model, "--home", str(opened.home)]
    told = json.loads(subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout)
    (plan,) = told["plans"].values()
    return {"kernels": plan["kernels"], "gqa": plan["gqa"], "chunk_q": plan["chunk_q"]}


def kernels(page: Page, *names: str) -> None:
    field = page.locator("#machine-kernels input")
    while page.locator("#machine-kernels .token").count():
        before = page.locator("#machine-kernels .token").count()
        field.press("Backspace")
        expect(page.locator("#machine-kernels .token")).to_have_count(before - 1)
    for name in names:
        field.fill(name)
        field.press("Enter")
    expect(page.locator("#machine-kernels .token")).to_have_count(len(names))


def exactly(page: Page, size: str) -> None:
    page.fill("#machine-exact input, #machine-exact textarea", size)
    page.keyboard.press("Enter")


@pytest.fixture
def tinkerer(visit: Visit, opened: Open) -> Page:
    page = visit("machine")
    choose(page, "#machine-model", "small painter")
    expect(page.locator("#h-plan tr").first).to_be_visible()
    unfold(page, "Choose by hand")
    return page


@pytest.mark.slow
def test_what_is_chosen_by_hand_is_planned_and_runs(tinkerer: Page, opened: Open) -> None:
    page, model = tinkerer, str(opened.home.parent / "small painter")
    kernels(page, "math")
    choose(page, "#machine-gqa", "expanded")
    page.click("#machine-use")
    until(lambda: (chosen(page, "kernels"), chosen(page, "grouped heads")) == ("math", "expanded"))
    exactly(page, "300")
    until(lambda: chosen(page, "chunk of queries") == "300")
    expect(page.locator("#machine-chunk input[type=range]")).to_have_value("3")
    assert doctors(opened, model) == {"kernels": ["math"], "gqa": "expanded", "chunk_q": 300}

    go(page, "paint")
    unfold(page, "Settings")
    for name, value in (("width", 512), ("height", 512), ("steps", 200)):
        page.fill(f"#paint-{name} input", str(value))
    page.fill("#paint-prompt textarea", "a slow picture")
    page.click("#paint-go")
    until(lambda: page.locator("#h-strip .h-attention").text_content() == "expanded GQA, chunk 300", LOADING_S)
    go(page, "machine")
    exactly(page, "64")
    until(lambda: page.locator("#h-strip .h-attention").text_content() == "expanded GQA, chunk 64")
    expect(page.locator("#h-charts .h-marks")).to_contain_text("chunk size 64")
    until(lambda: (chosen(page, "chunk of queries"), chosen(page, "kernels")) == ("64", "math"))

    choose(page, "#machine-gqa", "automatic")
    kernels(page)
    page.click("#machine-use")
    expect(page.locator("#h-plan .h-note")).to_have_text("This is the plan of the running job.")
    assert chosen(page, "grouped heads") == "expanded", "what runs, not what the next job gets"
    page.evaluate("Hearth.press('paint-stop')")
    until(lambda: chosen(page, "grouped heads") == "folded")
    exactly(page, "auto")
    until(lambda: opened.settings()["choice"] == {"chunk": "auto"})


@pytest.mark.slow
def test_a_choice_that_cannot_work_says_so_and_changes_nothing(tinkerer: Page, opened: Open) -> None:
    """Where the choice is made no button leads to the tab that is open."""
    page, kept = tinkerer, opened.settings().get("choice")
    before = chosen(page, "kernels")
    kernels(page, "efficient")
    expect(page.locator("#machine-objections")).to_contain_text('The setting "kernels: efficient" cannot work')
    page.click("#machine-use")
    pass_looks(page)
    assert page.locator("#machine-objections button").locator("visible=true").count() == 0
    assert (chosen(page, "kernels"), opened.settings().get("choice")) == (before, kept)
    kernels(page)
    page.click("#machine-use")
    expect(page.locator("#machine-objections")).to_contain_text("Saved.")


@pytest.mark.slow
def test_the_self_test_runs_by_its_button(visit: Visit, opened: Open) -> None:
    """A verdict that is wrong is found anew; the badge counts what was found."""
    verdicts, machine, wrong = home(opened.home).verdicts, probe(), Subject.path("gqa/native", "float32")
    page = visit("machine")
    learn(verdicts, machine, Verdict(wrong, passed=False, words="not so"))
    page.click("#machine-test")
    row = page.locator('.h-measuring[data-kind="SelfTest"]')
    expect(row).to_contain_text(re.compile(r"^[1-9]\d* of \d+"), timeout=LOADING_MS)
    expect(page.locator("#machine-test")).to_be_disabled()
    expect(row.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.locator("#machine-test")).to_be_enabled(timeout=LOADING_MS)
    found = load(verdicts, machine)
    assert found[wrong].passed and found[wrong].words != "not so"
    counted = [each.passed for each in found.values() if each.subject.kind in ("part", "path") and each.subject.matters]
    expect(page.locator("#h-words .h-badge")).to_have_text(f"checked: {sum(counted)} of {len(counted)} right")
    before = page.locator("#h-words .h-badge").inner_text()
    page.click("#machine-test")
    row.get_by_role("button", name="Stop").click(timeout=LOADING_MS)
    expect(row).to_contain_text("stopped")
    pass_looks(page)
    expect(page.locator("#h-words .h-badge")).to_have_text(before)  # a stop takes back nothing that was found
