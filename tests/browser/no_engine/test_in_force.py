"""What is in force beside Speak and Paint, and how it is removed: in a real browser, without an engine."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from app.engine.jobs.request import Lora, PictureRequest
from app.engine.pictures.files import picture_settings
from app.ui.state.desk import Desk
from tests.support.both_servers import keep_creation
from tests.support.window import asked_by, await_stored, go, needs_chromium, pass_looks, shut_out, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def chips(page: Page) -> Locator:
    return page.locator(".h-force").locator("visible=true").locator("li")


def asked(page: Page, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> PictureRequest:
    """What a press of Paint asks for."""
    request = asked_by(page, "#paint-go", desk, monkeypatch)
    assert isinstance(request, PictureRequest)
    return request


TOOLS_ON_TOP = """() => {
  const tools = document.querySelector("#h-sketch .h-deeds"), bar = document.querySelector(".h-going:has(#paint-go)");
  scrollBy(0, tools.getBoundingClientRect().bottom - innerHeight + 20);
  const { left, right } = tools.getBoundingClientRect(), { top, bottom } = bar.getBoundingClientRect();
  const seen = [];
  for (let x = left + 4; x < right; x += 8) for (let y = top + 4; y < Math.min(bottom, innerHeight); y += 8) seen.push(document.elementFromPoint(x, y));
  return seen.filter((each) => tools.contains(each)).map((each) => each.outerHTML.slice(0, 80));
}"""


def lora(path: Path, words: dict[str, str] | None = None, wide: int = 300) -> Path:
    name = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight"
    header = json.dumps({"__metadata__": words or {}, name: {"dtype": "F16", "shape": [1, wide], "data_offsets": [0, 2 * wide]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(2 * wide))
    return path


@pytest.mark.slow
def test_a_starting_picture_is_seen_until_it_is_removed(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    page.evaluate("Hearth.startFrom({ url: 'hearth/creation/2', name: 'b.png' })")
    expect(chips(page)).to_have_text(re.compile("^starting from b.png"))
    expect(page.locator("#h-sketch canvas")).to_be_visible()  # its drawer is open
    expect(chips(page).locator("img")).to_have_attribute("src", re.compile("^blob:"))
    assert page.evaluate(TOOLS_ON_TOP) == [], "the editor's tools lie over the bar of Paint and Stop"
    assert asked(page, opened[0], monkeypatch).image
    assert not shut_out(page)
    chips(page).get_by_role("button", name="Remove").click()
    expect(chips(page)).to_have_count(0)
    assert asked(page, opened[0], monkeypatch).image is None
    Image.new("RGB", (64, 64), "teal").save(mine := opened[0].keeper.home.root / "mine.png")
    page.set_input_files("#h-sketch input[type=file]", mine)
    expect(chips(page)).to_have_text(re.compile("^starting from mine.png"))
    chips(page).get_by_role("button", name="Remove").click()
    expect(chips(page)).to_have_count(0)
    assert asked(page, opened[0], monkeypatch).image is None


@pytest.mark.slow
def test_loras_are_added_found_weighed_and_removed(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    go(page, "paint")
    unfold(page, "LoRAs")
    files = page.locator("#paint-loras input[type=file]")
    (tmp_path / "junk.safetensors").write_bytes(b"no weights at all")
    files.set_input_files(tmp_path / "junk.safetensors")
    expect(chips(page)).to_have_text(re.compile("^Not used: junk.safetensors is damaged, incomplete or not what its name says."))
    files.set_input_files(lora(tmp_path / "ink.safetensors", {"modelspec.trigger_phrase": "inkwash"}))
    expect(chips(page)).to_have_text(re.compile("^with LoRA ink"))
    rows = page.locator("#h-loras li")
    expect(rows).to_have_count(1)
    assert (opened[0].keeper.home.loras / "ink.safetensors").is_file()
    weight = rows.get_by_label("Weight of ink")
    weight.fill("0.7")
    expect(chips(page)).to_have_text(re.compile("^with LoRA ink 0.7"))
    page.fill("#paint-prompt textarea", "a boat")
    rows.get_by_role("button", name="Put inkwash into the prompt").click()
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat, inkwash")
    page.get_by_label("Search by name, trigger word or tag").fill("nothing like it")
    expect(rows).to_have_count(1)  # what is in use stays in view
    chips(page).get_by_role("button", name="Remove").click()
    expect(rows).to_have_count(0)
    page.get_by_label("Search by name, trigger word or tag").fill("INKWASH")
    expect(rows).to_have_count(1)
    assert not shut_out(page)


@pytest.mark.slow
def test_one_of_another_family_is_greyed_with_the_reason(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    desk.keeper.home.loras.mkdir(exist_ok=True)
    again = desk.keeper.home.loras / "again"
    again.mkdir()
    files = [lora(folder / "pixels.safetensors", wide=2048) for folder in (desk.keeper.home.loras, again)]
    go(page, "paint")
    unfold(page, "LoRAs")
    row = page.locator("#h-loras li", has_text="pixels")
    expect(row).to_have_count(1)
    expect(row.locator(".h-places")).to_have_text(re.compile(rf"^In 2 places: .*{re.escape(str(files[1]))}"))
    expect(row).to_contain_text("Made for SDXL")
    expect(row.locator("input[type=checkbox]")).to_be_disabled()
    page.evaluate("Hearth.lorasFor('sdxl')")
    expect(row.locator("input[type=checkbox]")).to_be_enabled()
    assert not shut_out(page)


@pytest.mark.slow
def test_reuse_brings_the_loras_whose_files_are_here(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    desk = opened[0]
    desk.keeper.home.loras.mkdir(exist_ok=True)
    ink = lora(desk.keeper.home.loras / "wash.safetensors")
    go(page, "paint")
    made = PictureRequest("a boat in ink", loras=(Lora(str(ink), 0.7), Lora("/nowhere/elsewhere.safetensors", 0.3)))
    number = keep_creation(desk, made, "ink.png").id
    page.evaluate("number => Hearth.call('paint.restore', { creation: number })", number)
    expect(chips(page).first).to_have_text(re.compile("^with LoRA wash 0.7"))
    expect(page.locator("#paint-message")).to_contain_text("These LoRAs are not in your library, so the picture will differ: elsewhere.")
    assert asked(page, desk, monkeypatch).loras == (Lora(str(ink), 0.7),)
    chips(page).get_by_role("button", name="Remove: settings of an earlier creation").click()
    expect(chips(page)).to_have_count(0)


@pytest.mark.slow
def test_what_reuse_brought_is_seen_and_gives_way_to_the_persons_own(page: Page, tmp_path: Path) -> None:
    go(page, "paint")
    unfold(page, "Settings")
    steps = page.locator("#paint-steps input")
    steps.fill("9")
    steps.blur()
    picture_settings.write(Image.new("RGB", (8, 8)), tmp_path / "p.png", PictureRequest("a boat", steps=4, seed=7, image="i.png"), "mine")
    page.set_input_files("#paint-dropped input[type=file]", tmp_path / "p.png")
    expect(steps).to_have_value("4")
    expect(chips(page).locator("span")).to_have_text(["seed 7", "settings of an earlier creation"])
    chips(page).get_by_role("button", name="Remove: settings of an earlier creation").click()
    expect(steps).to_have_value("9")
    expect(chips(page)).to_have_count(0)
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")
    note = page.locator("#paint-message li", has_text="was made from another picture")
    expect(note).to_be_visible()
    page.evaluate("Hearth.startFrom({ url: 'hearth/creation/2', name: 'b.png' })")
    expect(chips(page).first).to_have_text(re.compile("^starting from b.png"))
    page.set_input_files("#paint-dropped input[type=file]", tmp_path / "p.png")
    expect(note).to_have_count(1)
    expect(note).to_be_hidden()  # it asks for what is there


@pytest.mark.slow
@pytest.mark.parametrize("later", [False, True])
def test_a_reload_and_another_language_leave_what_is_in_view_and_in_force(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """`later`: another tab is in view as the page loads, and Paint is opened only then."""
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Settings")
    page.fill("#paint-seed input", "77")
    page.locator("#paint-seed input").blur()
    page.evaluate("Hearth.startFrom({ url: 'hearth/creation/2', name: 'b.png' })")
    canvas = page.locator("#h-sketch canvas").first
    expect(chips(page)).to_have_text([re.compile("^starting from b.png"), re.compile("^seed 77")])
    canvas.evaluate("canvas => canvas.scrollIntoView({ block: 'center' })")  # from under the bar that stays
    box = canvas.bounding_box()
    assert box
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 9, middle[1] + 9, steps=4)
    page.mouse.up()
    expect(chips(page).first).to_contain_text("changing only the painted area")
    await_stored(page, "layers")
    if later:
        go(page, "shelf")
    page.select_option('[data-h-act="language"]', "zh")
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    if later:
        expect(page.locator("#h-shelf")).to_be_visible()
        page.reload()
        expect(page.locator("#h-strip .h-doing")).not_to_be_empty()
        go(page, "paint")
    expect(page.locator("#paint-go")).to_be_visible()
    expect(chips(page)).to_have_count(2)
    expect(chips(page).first).to_contain_text("b.png")
    expect(chips(page).last).to_contain_text("77")
    wanted = asked(page, opened[0], monkeypatch)
    assert wanted.seed == 77 and wanted.image and wanted.mask


@pytest.mark.slow
def test_a_switch_of_the_language_leaves_folds_open(page: Page) -> None:
    go(page, "speak")
    unfold(page, "Settings")
    page.focus('[data-h-act="language"]')
    page.select_option('[data-h-act="language"]', "zh")
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    expect(page.locator("#speak-settings > button.label-wrap")).to_have_attribute("aria-expanded", "true")
    expect(page.locator('[data-h-act="language"]')).to_be_focused()
    expect(page.locator("#speak-seed input")).to_be_visible()
    page.click("#speak-settings > button.label-wrap")
    page.reload()
    expect(page.locator("#speak-settings > button.label-wrap")).to_have_attribute("aria-expanded", "false")
    pass_looks(page)
    expect(page.locator("#speak-seed input")).to_have_count(0)
