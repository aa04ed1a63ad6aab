"""Downloads are agreed to first: size, licence and time, and at once what keeps them from coming. In a real browser, without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from playwright.sync_api import Browser, Page, expect

from app.engine.models.other_tools import Places, find_tools
from app.ui.state.desk import Desk
from tests.engine.models.test_found import SD15, write
from tests.support.both_servers import served
from tests.support.window import go, needs_chromium, open_page, shut_out, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def opened(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Desk, str]]:
    monkeypatch.setenv("HF_ENDPOINT", NOBODY)
    with served(tmp_path_factory.mktemp("getting")) as (desk, address, _):
        desk.settings.put({"greeted": True})
        yield desk, address


@pytest.fixture
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    with open_page(browser, opened[1], locale="en-US", viewport={"width": 390, "height": 800}) as page:
        yield page


@pytest.mark.slow
def test_a_download_is_agreed_to_where_the_person_is(page: Page, opened: tuple[Desk, str]) -> None:
    begun = opened[0].downloads.start
    assert isinstance(begun, Mock)
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a green dragon")
    get = page.locator("#h-prompt").get_by_role("button", name="Download it")
    asked = page.get_by_role("alertdialog")
    for answer in ("Cancel", "Download"):
        get.click()
        expect(asked).to_contain_text(
            "Download Stable Diffusion 1.5? Size: 2.3 GB, about 6 min at 50 Mbit/s. Licence: CreativeML OpenRAIL-M, OpenRAIL++, MIT."
        )
        expect(asked).to_contain_text(f"There is no connection to {NOBODY}. The download continues by itself once there is one.")
        expect(page.locator("#h-prompt")).to_be_visible()  # nobody was sent to another tab
        assert not begun.called and not shut_out(page)
        asked.get_by_role("button", name=answer, exact=True).click()
        expect(asked).to_have_count(0)
    until_seen(page, lambda: begun.called)
    assert begun.call_args.args[0].id == "sd15"


@pytest.mark.slow
def test_what_is_wrong_with_a_path_stands_beside_it(page: Page) -> None:
    """It stood at the top of a page longer than the screen: Add seemed to do nothing."""
    go(page, "models")
    path = page.locator("#h-models .h-add input")
    path.fill("/nowhere/at all")
    path.press("Enter")
    told = page.locator("#h-models [role=alert]").locator("visible=true")
    expect(told).to_have_count(1)
    expect(told).to_contain_text("/nowhere/at all")
    expect(told).to_be_in_viewport()
    expect(path).to_be_in_viewport()
    assert not shut_out(page)


@pytest.fixture
def comfy(tmp_path: Path, opened: tuple[Desk, str]) -> Path:
    models = tmp_path / "ComfyUI/models"
    for name in ("alpha", "beta"):
        write(models / f"checkpoints/{name}.safetensors", SD15)
    write(models / "checkpoints/gamma.safetensors", SD15, 1)
    write(models / "diffusion_models/packed.safetensors", {"layers.0.adaLN_modulation.0.weight": (1, 1), "x.comfy_quant": (1,)})
    write(models / "loras/ink.safetensors", SD15)
    (models / "checkpoints/old.ckpt").write_bytes(b"PK")
    opened[0].models.finder.find = lambda: find_tools(Places((("ComfyUI", tmp_path / "ComfyUI"),)))
    return models


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_models_of_another_program_are_used_from_where_they_are(page: Page, opened: tuple[Desk, str], comfy: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    go(page, "models")
    found = page.locator("#h-models .h-found")
    expect(found).to_contain_text("changes nothing there")
    assert not opened[0].models.finder.looked, "nobody asked yet"
    found.get_by_role("button", name="Look on this computer").click()
    found.get_by_role("button", name="ComfyUI (5 models, 1 LoRA)").click()
    files = found.locator(".h-found-file")
    expect(files).to_have_count(5)
    expect(files.nth(0)).to_contain_text("Stable Diffusion 1.5, float16")
    expect(files.nth(1)).to_contain_text("the same file as")
    expect(files.nth(3)).to_contain_text("so Hearth leaves it closed")
    expect(files.nth(4)).to_contain_text("packed as ComfyUI's own 8 or 4 bits")
    expect(files.get_by_role("button")).to_have_count(3)
    found.get_by_role("button", name="Use all 2 that Hearth can use").click()
    expect(page.locator(".h-model-card", has_text="gamma")).to_have_count(1)
    for name in ("alpha", "gamma"):
        files.get_by_role("button", name=f"Remove from list: {name}").click()
    expect(page.locator(".h-model-card", has_text="gamma")).to_have_count(0)
    assert not shut_out(page)
    found.get_by_role("searchbox").fill("alp")
    expect(files).to_have_count(1)
    files.get_by_role("button", name="Use: alpha").click()
    expect(page.locator(".h-model-card", has_text="alpha")).to_have_count(1)
    assert opened[0].settings.get("models") == [str(comfy / "checkpoints/alpha.safetensors")]
    files.get_by_role("button", name="Remove from list: alpha").click()
    expect(page.locator(".h-model-card", has_text="alpha")).to_have_count(0)
