"""English and Chinese: labels for Gradio's translation, sentences by key, and the language of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, Protocol

import gradio as gr
from gradio.i18n import I18nData

from app.sentence import Sentence

Language = Literal["en", "zh"]
LANGUAGES: Final[Mapping[Language, str]] = {"en": "English", "zh": "中文"}
COOKIE: Final = "hearth_language"

_english: dict[str, str] = {}


def word(key: str, english: str) -> I18nData:
    """Return a label in the browser's language. Key and English must be literals; the Chinese is in app/locale/zh.json."""
    _english[key] = english
    return I18nData(key)


def label(sentence: Sentence) -> I18nData:
    """Return a sentence without values as a label."""
    key, english = sentence.key, sentence.english
    return word(key, english)


def i18n() -> gr.I18n:
    """Return every label made so far: build the window first."""
    chinese = {key: text for key, text in catalog().items() if key in _english}
    return gr.I18n(en=_english, **{"zh-CN": chinese, "zh": chinese, "zh-TW": chinese})


@cache
def catalog() -> dict[str, str]:
    """Load the Chinese templates of labels and sentences by key."""
    texts: dict[str, str] = json.loads((Path(__file__).parents[2] / "locale" / "zh.json").read_text("utf-8"))
    return texts


class WebRequest(Protocol):
    """What starlette's and Gradio's requests share."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def cookies(self) -> Mapping[str, str]: ...


def language(request: WebRequest | None) -> Language:
    """Return the language chosen by the switch, else the browser's."""
    if request is None:
        return "en"
    chosen = request.cookies.get(COOKIE, "")
    if chosen == "zh" or (chosen != "en" and request.headers.get("accept-language", "").lower().startswith("zh")):
        return "zh"
    return "en"


def translate(sentence: Sentence, spoken: Language) -> str:
    return sentence.translate(catalog()) if spoken == "zh" else str(sentence)


def text(key: str, english: str, spoken: Language) -> str:
    """Return a label as text, where the server writes it and not Gradio."""
    return catalog().get(key, english) if spoken == "zh" else english
