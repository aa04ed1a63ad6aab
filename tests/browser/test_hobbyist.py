"""Ten jobs of somebody who comes from AUTOMATIC1111, end to end in a real browser: his folder, a local hub, a real engine, tiny models in real layouts."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin
from playwright.sync_api import BrowserContext, Page, expect
from safetensors.torch import load_file, save_file

from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single
from tests.support.hub import Hub, serving
from tests.support.tiny_readers import save_depth
from tests.support.waiting import LOADING_S
from tests.support.window import FLAGS, WHOLE_CHROMIUM, Open, await_script, choices, choose, end, go, start, unfold, until_seen

pytestmark = [pytest.mark.slow, pytest.mark.skipif(WHOLE_CHROMIUM is None, reason="no whole Chromium on this machine")]
SIDE = 64
BASE, DEPTH = "stable-diffusion-v1-5/stable-diffusion-v1-5", "depth-anything/Depth-Anything-V2-Small-hf"
MOST_S = 5 * LOADING_S
MOST_MS = 1000 * MOST_S


def read_files(folder: Path, endings: tuple[str, ...]) -> dict[str, bytes]:
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.name.endswith(endings)}


def lay_out(person: Path, scratch: Path) -> dict[str, dict[str, bytes]]:
    """Put AUTOMATIC1111's folder into a person's home, with a model, a LoRA and a ControlNet; return what the hub has of them."""
    folder, file = single.save("sd15", scratch / "model")
    models = person / "stable-diffusion-webui/models"
    for name in ("Stable-diffusion", "Lora", "ControlNet"):
        (models / name).mkdir(parents=True)
    file.rename(models / "Stable-diffusion/dreamy.safetensors")
    layers = load_file(folder / "unet/diffusion_pytorch_model.safetensors")
    lora = dict[str, torch.Tensor]()  # named as his programs do
    for name, weight in ((name, each) for name, each in layers.items() if name.endswith(("to_q.weight", "to_k.weight", "to_v.weight"))):
        key = f"lora_unet_{name.removesuffix('.weight').replace('.', '_')}"
        lora |= {f"{key}.lora_down.weight": torch.randn(2, weight.shape[1]), f"{key}.lora_up.weight": torch.randn(weight.shape[0], 2) / 9}
        lora[f"{key}.alpha"] = torch.tensor(2.0)
    tags = {"set": {"inkwash": 20, "paper": 8}}
    save_file(lora, models / "Lora/ink.safetensors", {"modelspec.trigger_phrase": "inkwash", "ss_tag_frequency": json.dumps(tags)})
    tiny.save_control(folder, scratch / "control")
    save_file(load_file(scratch / "control/diffusion_pytorch_model.safetensors"), models / "ControlNet/control_depth.safetensors")
    return {
        BASE: read_files(folder, (".json", ".txt")) | {"unet/diffusion_pytorch_model.safetensors": b"never asked for"},
        DEPTH: read_files(save_depth(scratch / "depth"), (".json", ".safetensors")),
    }


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    root = tmp_path_factory.mktemp("hobbyist")
    person, home = root / "person", root / "home"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"greeted": True, "paint": {"steps": 3, "width": SIDE, "height": SIDE}}))
    with serving(Hub(lay_out(person, root))) as hub:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("HF_ENDPOINT", hub.endpoint), ("HOME", str(person)), ("USERPROFILE", str(person))):
                patch.setenv(name, value)
            hearth = start(home, root / "audit")
        yield hearth
        end(hearth, root / "audit")


@pytest.fixture(scope="module")
def page(opened: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    expect.set_options(timeout=MOST_MS)
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch_persistent_context
        context: BrowserContext = launch(
            tmp_path_factory.mktemp("profile"),
            executable_path=WHOLE_CHROMIUM,
            args=FLAGS,
            locale="en-US",
            reduced_motion="reduce",
            viewport={"width": 1400, "height": 1000},
            accept_downloads=True,
        )
        page, faults = context.new_page(), list[str]()
        page.set_default_timeout(MOST_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(opened.address)
        await_script(page)
        yield page
        context.close()
    assert not faults


def paint(page: Page, opened: Open, prompt: str = "", button: str = "#paint-go") -> dict[str, Any]:
    """Press Paint and wait for the end; return the job."""
    if prompt:
        page.fill("#paint-prompt textarea", prompt)
    before = len(opened.jobs())
    page.click(button)
    until_seen(page, lambda: len(opened.jobs()) > before, MOST_S)
    until_seen(page, lambda: opened.jobs()[-1]["state"] not in ("queued", "running"), MOST_S)
    job = opened.jobs()[-1]
    assert job["state"] == "finished", (job, page.locator("#h-canvas").inner_text())
    page.wait_for_function("job => Hearth.live.state.picture?.job === job && Hearth.live.state.picture.end", arg=job["id"])
    return job


def results(opened: Open, job: dict[str, Any]) -> list[Path]:
    rows = opened.rows("SELECT path, job FROM creations ORDER BY id")
    return [opened.home / "creations" / path for path, of in rows if of == job["id"]]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), int)


def act(page: Page, name: str) -> None:
    page.locator("#h-canvas .h-acts").get_by_role("button", name=name, exact=True).click()


def test_1_his_folder_is_found_and_its_model_used(page: Page, opened: Open) -> None:
    go(page, "models")
    found = page.locator("#h-models .h-found")
    found.get_by_role("button", name="Look on this computer").click()
    found.get_by_role("button", name=re.compile(r"AUTOMATIC1111 \(1 model, 1 LoRA\)")).click()
    expect(found.locator(".h-found-file").first).to_contain_text("Stable Diffusion 1.5")
    found.get_by_role("button", name="Use: dreamy").click()
    card = page.locator(".h-model-card", has_text="dreamy")
    card.get_by_role("button", name=re.compile("Download")).first.click()  # what a single file lacks: a few settings
    page.get_by_role("alertdialog").get_by_role("button", name="Download", exact=True).click()
    until_seen(page, lambda: not card.get_by_role("button", name=re.compile("Download")).count(), MOST_S)
    go(page, "paint")
    choose(page, "#paint-model", "dreamy")


def test_2_a_prompt_with_weights_is_painted(page: Page, opened: Open) -> None:
    job = paint(page, opened, "a (red:1.3) boat, [grey] sea")
    (made,) = results(opened, job)
    assert pixels(made).shape == (SIDE, SIDE, 3)
    with Image.open(made) as picture:
        told = picture.info["parameters"]
    assert told.startswith("a (red:1.3) boat, [grey] sea") and "Steps: 3" in told and "Size: 64x64" in told


def test_3_a_lora_by_its_trigger(page: Page, opened: Open) -> None:
    unfold(page, "LoRAs")
    search = page.locator("#h-loras input[type=search]")
    search.fill("inkwash")
    row = page.locator("#h-loras ul.h-loras > li")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("SD 1.5")
    row.get_by_role("checkbox").check()
    row.get_by_role("button", name="Put inkwash into the prompt").click()
    expect(page.locator("#paint-prompt textarea")).to_have_value(re.compile("inkwash$"))
    job = paint(page, opened)
    assert [Path(each["path"]).name for each in job["request"]["loras"]] == ["ink.safetensors"]
    with Image.open(results(opened, job)[0]) as picture:
        assert "ink" in picture.info["parameters"]
    row.get_by_role("checkbox").uncheck()


def test_4_hires(page: Page, opened: Open) -> None:
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Settings")
    times = page.locator("#paint-upscale input[type=number]")
    expect(times).to_have_value("1")
    page.locator("#paint-hires input").check()
    expect(times).to_have_value("1.5")
    job = paint(page, opened)
    assert job["request"]["hires"] and job["request"]["upscale"] == 1.5
    (made,) = results(opened, job)
    assert pixels(made).shape == (SIDE * 3 // 2, SIDE * 3 // 2, 3)
    page.locator("#paint-hires input").uncheck()
    expect(times).to_have_value("1")


def test_5_a_picture_is_painted_on_from_its_result(page: Page, opened: Open) -> None:
    paint(page, opened, "a boat")
    act(page, "Use as starting picture")
    expect(page.locator("#h-sketch canvas")).to_be_visible()
    job = paint(page, opened, "a ship")
    assert job["request"]["image"] and not job["request"]["mask"]


def test_6_a_part_is_painted_anew(page: Page, opened: Open) -> None:
    sheet = page.locator("#h-sketch canvas")
    sheet.evaluate("sheet => sheet.scrollIntoView({ block: 'center' })")
    box = sheet.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 20, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    job = paint(page, opened, "a gull")
    assert job["request"]["mask"]
    (made,) = results(opened, job)
    changed = np.abs(pixels(made) - pixels(Path(job["request"]["image"]))).sum(-1) > 0
    assert changed.any() and not changed[:8].any(), "nothing outside of the mask"


def test_7_outpaint(page: Page, opened: Open) -> None:
    page.locator("#h-sketch").get_by_role("button", name="Clear all", exact=True).click()
    page.locator("#h-sketch").get_by_role("button", name="Frame", exact=True).click()
    page.locator("#h-sketch canvas").focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    job = paint(page, opened, "a wide sea")
    made, sent = (pixels(each) for each in (results(opened, job)[0], Path(job["request"]["image"])))
    assert made.shape == sent.shape and made.shape[1] > made.shape[0] == SIDE, "as large as the frame, whatever size was set"
    kept = SIDE * 23 // 24 - 1
    assert np.array_equal(made[:, :kept], sent[:, :kept]) and not np.array_equal(made[:, SIDE:], sent[:, SIDE:])
    page.locator("#h-sketch").get_by_role("button", name="Remove", exact=True).click()


def test_8_a_depth_guide(page: Page, opened: Open) -> None:
    act(page, "Use as guide")
    unfold(page, "Guide with a picture")
    assert "control_depth" in choices(page, "#paint-control")
    page.keyboard.press("Escape")
    choose(page, "#paint-guide_as", "Find its depth")
    page.fill("#paint-prompt textarea", "a hall")
    before = len(opened.jobs())
    page.click("#paint-go")
    get = page.get_by_role("button", name="Download it").locator("visible=true").first
    get.click()
    page.get_by_role("alertdialog").get_by_role("button", name="Download", exact=True).click()
    expect(page.locator(".h-model-card", has_text="Depth Anything").locator(".h-badge", has_text="installed")).to_be_visible()
    assert len(opened.jobs()) == before, "nothing was begun without it"
    go(page, "paint")
    job = paint(page, opened)
    assert job["request"]["guide_as"] == "depth" and Path(job["request"]["control"]).name == "control_depth.safetensors"
    seen = page.locator("#h-canvas .h-guided img")
    expect(seen).to_be_visible()
    assert seen.evaluate("image => image.complete && image.naturalWidth") == SIDE
    page.locator(".h-force").locator("visible=true").get_by_role("button").first.click()


def test_9_two_are_compared_and_alternatives_listed(page: Page, opened: Open) -> None:
    job = paint(page, opened, "a {red|blue|green} boat")
    act(page, "Select to compare")
    other = paint(page, opened)
    assert other["id"] != job["id"]
    act(page, "Compare with the selected picture")
    pair = page.locator("dialog.h-compare")
    expect(pair).to_be_visible()
    pair.get_by_role("slider").press("ArrowRight")
    pair.get_by_role("button", name="Close").click()
    page.fill("#paint-prompt textarea", "a boat\na ship")
    before = len(opened.jobs())
    page.get_by_role("button", name="Paint each of the 2 lines as its own picture").click()
    until_seen(page, lambda: len(opened.jobs()) == before + 2, MOST_S)
    until_seen(page, lambda: all(each["state"] == "finished" for each in opened.jobs()[-2:]), MOST_S)


def test_10_the_gallery_exports_and_a_picture_of_his_gives_its_settings(page: Page, opened: Open, tmp_path: Path) -> None:
    go(page, "shelf")
    cards = page.locator("#h-shelf .h-creation")
    expect(cards.first).to_be_visible()
    for at in (0, 1):
        cards.nth(at).get_by_role("checkbox").check()
    picked = page.locator("#h-shelf .h-picked")
    picked.get_by_role("combobox").select_option("new")
    page.locator("#h-shelf .h-asks input").fill("Boats")
    page.keyboard.press("Enter")
    expect(page.locator("#h-shelf .h-album-pick option", has_text="Boats (2)")).to_have_count(1)
    with page.expect_download() as got:
        page.locator("#h-shelf .h-told").click()
    with zipfile.ZipFile(got.value.path()) as packed:
        names = packed.namelist()
        assert sum(each.endswith(".png") for each in names) == 2 and len(names) > 2, names
        with Image.open(io.BytesIO(packed.read(next(each for each in names if each.endswith(".png"))))) as picture:
            assert "parameters" in picture.info
    his, told = Image.new("RGB", (SIDE, SIDE), "navy"), PngImagePlugin.PngInfo()
    told.add_text(
        "parameters",
        "a lighthouse <lora:ink:0.7>\nNegative prompt: fog\nSteps: 4, Sampler: Euler a, CFG scale: 6, Seed: 77, Size: 64x64, "
        "Model hash: 6ce0161689, Model: dreamy, Denoising strength: 0.4, Clip skip: 2, Hires upscale: 1.5, Hires upscaler: R-ESRGAN 4x+, Version: v1.10.1",
    )
    his.save(tmp_path / "his.png", pnginfo=told)
    go(page, "paint")
    page.set_input_files("#paint-dropped input[type=file]", tmp_path / "his.png")
    expect(page.locator("#paint-prompt textarea")).to_have_value(re.compile("^a lighthouse"))
    expect(page.locator("#paint-negative textarea, #paint-negative input").first).to_have_value("fog")
    job = paint(page, opened)
    asked = job["request"]
    assert Path(asked["model"]).name == "dreamy.safetensors" and [Path(each["path"]).name for each in asked["loras"]] == ["ink.safetensors"]
    assert (asked["seed"], asked["steps"], asked["scheduler"], asked["hires"], asked["hires_strength"]) == (77, 4, "Euler a", True, 0.4)
    assert pixels(results(opened, job)[0]).shape == (SIDE * 3 // 2, SIDE * 3 // 2, 3)
