"""A project on the Shelf: saved as one file, opened from one, its work opened, and what was there before brought back."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from app.ui.state.desk import Desk
from tests.support.window import go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


LATER = "{ const wait = setTimeout; window.setTimeout = (run, ms, ...given) => wait(run, ms === 500 ? 60000 : ms, ...given); }"
"""All that follows is pressed as if in the half second before what is typed is saved by itself."""


def test_a_project_is_saved_opened_and_left_again(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    desk = opened[0]
    gallery, shelf = desk.keeper.gallery, desk.keeper.shelf
    album = gallery.make_album("Sea")
    gallery.put([shelf.get(1), shelf.get(2)], album)
    gallery.keep_drafts(album, {"drafts": {"paint-prompt": "a grey sea"}, "speak": {}, "paint": {"steps": 7}})
    go(page, "shelf")
    page.locator(".h-album-pick").select_option("Sea (2)")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save as one file").click()
    file = tmp_path / saving.value.suggested_filename
    saving.value.save_as(file)
    assert file.name == "Sea.hearth.zip"
    expect(page.locator(".h-project-note")).to_contain_text("1 of 2 creations is not in the file: “")
    (tmp_path / "odd.zip").write_bytes(b"?")
    page.set_input_files(".h-project-file", tmp_path / "odd.zip")
    expect(page.locator("#h-shelf .h-trouble")).to_contain_text("odd.zip is no project")
    page.set_input_files(".h-project-file", file)
    expect(page.locator(".h-project-note")).to_contain_text(
        "The album Sea 2 is here, with 1 creation and 0 voices."
    )  # the other is a picture of a script
    expect(page.locator("#h-shelf .h-trouble")).to_be_hidden()
    expect(page.locator(".h-album h2")).to_have_text("Sea 2")
    go(page, "paint")
    page.evaluate(LATER)
    page.fill("#paint-prompt textarea", "my own")
    go(page, "shelf")
    page.get_by_role("button", name="Open its drafts").click()
    with page.expect_event("load"):  # closing the dialog goes back in the history, which counts as a navigation
        page.locator("dialog[open] .h-go-on").click()
    go(page, "paint")
    expect(page.locator("#paint-prompt textarea")).to_have_value("a grey sea")
    go(page, "shelf")
    expect(page.locator(".h-before span")).to_have_text("What you worked on before you opened a project is kept.")
    with page.expect_event("load"):
        page.get_by_role("button", name="Bring it back").click()
    go(page, "paint")
    expect(page.locator("#paint-prompt textarea")).to_have_value("my own")
    go(page, "shelf")
    expect(page.locator(".h-before span")).to_have_text("What you worked on in “Sea 2” is kept.")
    for each in gallery.list_albums():
        gallery.remove_album(each.id)
