"""The words on the page in Chinese and in Japanese: nothing is left in English, Gradio's own labels included, on Speak and Paint with all drawers open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Page

from app.base.languages import languages
from tests.support.both_servers import served
from tests.support.waiting import until
from tests.support.window import SETTLED, Visit, go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

NAMES = {"Hearth", *(each.name for each in languages().values()), "LoRA", "IP-Adapter", "Esc", "Ctrl Enter", "⌘ Enter"}
"""The keys of a keyboard count as names, too."""
LEFT = """() => {
  // What this machine calls itself, and texts for models that read English.
  const english = ".h-machine, #h-scripts, #h-samples, #h-script .h-chips";
  const said = new Set(), named = ["aria-label", "title", "placeholder", "alt"];
  for (const each of document.querySelectorAll("body *")) {
    if (!each.checkVisibility({ visibilityProperty: true }) || each.closest(`.h-hidden, script, style, ${english}`)) continue;
    const words = [...each.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data);
    for (const text of [...words, ...named.map(name => each.getAttribute(name) ?? "")])
      if (/[a-z]{3}/i.test(text) && !/[\\u3041-\\u30ff\\u4e00-\\u9fff]/.test(text)) said.add(text.trim());
      else if (/^(number input|range slider) for/.test(text)) said.add(text);
  }
  return [...said];
}"""
UNFOLD = """() => document.querySelectorAll("button.label-wrap:not(.open)").forEach(each => each.checkVisibility() && each.click())"""


def test_no_english_is_left_on_a_chinese_or_a_japanese_page(visit: Visit, tmp_path: Path) -> None:
    """By a browser whose Chinese Gradio does not know, as a phone in Hong Kong has it; on a window in which nobody has written yet."""
    with served(tmp_path) as (desk, address, _):
        desk.settings.put({"greeted": True})
        for locale in ("zh-HK", "ja-JP"):
            check(visit(address=address, locale=locale))


def check(page: Page) -> None:
    left: dict[str, list[str]] = {}
    for tab, filled in (("speak", "#speak-clip button[aria-label]"), ("paint", "#h-sketch .h-empty")):
        go(page, tab)
        page.evaluate(UNFOLD)
        page.wait_for_selector(filled, state="attached")

        def look(tab: str = tab) -> bool:  # parts that come late are English until they are drawn
            page.evaluate(SETTLED)
            found = page.evaluate(f"(Hearth.redraw(), ({LEFT})())")
            left[tab] = [each for each in found if each not in NAMES]
            return not left[tab]

        with suppress(AssertionError):
            until(look)
    assert not any(left.values()), left
