"""Turn a page of HTML into paragraphs, and remember where in it the places are that a table of contents may name."""

from __future__ import annotations

import re
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
_NOTES: Final = frozenset(("endnote", "endnotes", "fnanchor", "footnote", "footnotes", "noteref", "rearnote", "rearnotes"))
_UNREAD: Final = _NOTES | {"landmarks", "page-list", "pagebreak", "toc"}
_UNREAD_ROLES: Final = frozenset(("doc-endnote", "doc-endnotes", "doc-footnote", "doc-noteref", "doc-pagebreak", "doc-pagelist", "doc-toc"))
_NAMED_BY: Final = (("type", _UNREAD), ("role", _UNREAD_ROLES), ("class", _NOTES))
"""EPUB calls notes, their numbers, the number of a page and lists of contents so: nobody reads them aloud. Classes are anybody's: a heading may be
of the class "toc", or begin a page."""
_NEVER_CLOSED: Final = frozenset(("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
_HIDDEN: Final = re.compile(r"(?<![\w:=-])hidden(?![\w:-])", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(r"\s*+(?:\[\s*+(?:\d{1,4}|[a-z]|\*)\s*+\]|\u21a9\ufe0e?+)\s*+")
_RAISED_LINK: Final = re.compile(r"\s*+\[?\s*+(?:\d{1,4}|[a-z]|[*\u2020\u2021\u00a7]{1,3})\s*+\]?\s*+")
"""A link to another place of the book is the number of a note if it stands in brackets, or is raised; the 2 of m\u00b2 leads nowhere."""


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
    within: list[str] = []
    """These links and raised letters are open."""
    begun, seen = 0, set[str]()  # the outermost one: where its words begin, and what it holds

    def end_paragraph() -> None:
        if text := " ".join("".join(words).split()):
            page.paragraphs.append(text)
            if heading and not page.heading:
                page.heading = text
        words.clear()
        within.clear()

    for token in tokens:
        if isinstance(token, str):
            if not depth:
                words.append(token)
            continue
        if depth and silent == "p" and _ends_open_paragraph(token):
            depth = 0
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
            if not token.closes and token.name not in _NEVER_CLOSED and (token.name in _SILENT or _is_unread(token)):
                silent, depth = token.name, 1
            elif token.name == "br":
                words.append("\n")
            elif token.name == "hr":
                page.paragraphs.append("* * *")
            elif token.name in ("a", "sup") and not token.closes:
                if not within:
                    begun, seen = len(words), set()
                within.append(token.name)
                seen.add("place" if "#" in token.get("href") else token.name)
        elif within and within[-1] == token.name:
            within.pop()
            mark = _RAISED_LINK if "sup" in seen else _IN_BRACKETS
            if not within and "place" in seen and mark.fullmatch(inside := "".join(words[begun:])):
                words[begun:] = [" " if " " in inside else ""]
        if token.name in _HEADINGS:
            heading = token.opens and not token.closes and not depth
    end_paragraph()
    return page


def _ends_open_paragraph(tag: Tag) -> bool:
    """Tell whether a paragraph that nobody closed ends here, as HTML has it: where another block begins, or the one around it ends."""
    return tag.name in _BLOCKS and tag.name != "title" and (tag.opens or tag.name != "p")


def _is_unread(tag: Tag) -> bool:
    lower = tag.attributes.lower()
    if "hidden" in lower and _HIDDEN.search(_QUOTED.sub("''", lower)):
        return True
    return any(each in lower and not names.isdisjoint(tag.get(each).lower().split()) for each, names in _NAMED_BY)
