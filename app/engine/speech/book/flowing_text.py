"""Turn a page of HTML into paragraphs, and remember where in it the places are that a table of contents may name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from app.engine.speech.book.markup import Tag

_BLOCKS: Final = frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption", "figure",
        "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody",
        "td", "tfoot", "th", "thead", "title", "tr", "ul",
    )
)  # fmt: skip
_SILENT: Final = frozenset(
    (
        "audio",
        "canvas",
        "head",
        "iframe",
        "math",
        "noscript",
        "object",
        "rp",
        "rt",
        "script",
        "select",
        "style",
        "svg",
        "template",
        "textarea",
        "video",
    )
)
_HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_NOTES: Final = frozenset(("noteref", "footnote", "footnotes", "endnote", "endnotes", "rearnote", "rearnotes", "pagebreak"))
"""EPUB calls the number of a note, notes and the number of a page so: nobody reads them aloud."""


@dataclass(slots=True)
class Page:
    paragraphs: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    """Each of the wanted names stands at the paragraph of this number."""
    heading: str = ""
    """Of several headings the first one counts."""


def read_page(tokens: Iterable[Tag | str], wanted: Collection[str] = ()) -> Page:
    page = Page()
    words: list[str] = []
    silent, depth, heading = "", 0, False

    def end_paragraph() -> None:
        if text := " ".join("".join(words).split()):
            page.paragraphs.append(text)
            if heading and not page.heading:
                page.heading = text
        words.clear()

    for token in tokens:
        if isinstance(token, str):
            if not depth:
                words.append(token)
            continue
        if depth:
            if token.name == silent:
                depth += token.opens - token.closes
            continue
        if token.name in _BLOCKS:
            end_paragraph()
        if token.opens:
            if wanted and (name := token.get("id") or (token.name == "a" and token.get("name"))) and name in wanted:
                end_paragraph()
                page.places.setdefault(name, len(page.paragraphs))
            if not token.closes and (token.name in _SILENT or _is_note(token)):
                silent, depth = token.name, 1
            elif token.name == "br":
                words.append("\n")
            elif token.name == "hr":
                page.paragraphs.append("* * *")
        if token.name in _HEADINGS:
            heading = token.opens and not token.closes
    end_paragraph()
    return page


def _is_note(tag: Tag) -> bool:
    return "type" in tag.attributes and not _NOTES.isdisjoint(tag.get("type").lower().split())
