"""Labels for Gradio's translation, sentences in a person's language, and the language of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import gradio as gr
from gradio.i18n import I18nData

from app.base.languages import ENGLISH, choose, languages, templates
from app.base.sentence import Sentence, Value, in_words, join_sentences, say
from app.engine.models.model_names import word_name

Language = str
"""Each code stands in app/base/locale/languages.json."""

_labels: dict[str, Sentence] = {}


def word(key: str, english: str) -> I18nData:
    """Return a label in the browser's language. Key and English must be literals; its translations are in app/base/locale."""
    return label(Sentence(key, english))


def label(sentence: Sentence) -> I18nData:
    """Return a sentence as a label. One with values is found by its English, which is shown if the window was built before it."""
    name = str(sentence) if sentence.values else sentence.key
    _labels[name] = sentence
    return I18nData(name)


def label_model(title: str) -> I18nData | str:
    """Return a model's name as a label."""
    words = word_name(title)
    return label(words) if isinstance(words, Sentence) else title


def i18n() -> gr.I18n:
    """Return every label made so far and Gradio's own, for each tag of each language: build the window first."""
    for each in GRADIO_WORDS:
        label(each)
    labels = {code: {name: translate(sentence, code) for name, sentence in _labels.items()} for code in languages()}
    return gr.I18n(**{tag: labels[code] for code, each in languages().items() for tag in {code, *each.tags}})


class WebRequest(Protocol):
    """What starlette's and Gradio's requests share."""

    @property
    def headers(self) -> Mapping[str, str]: ...


def language(request: WebRequest | None) -> Language:
    """Return the language chosen by the switch, else the browser's."""
    if request is None:
        return ENGLISH
    return choose(request.headers.get("cookie", ""), request.headers.get("accept-language", ""))


def translate(words: Value, spoken: Language) -> str:
    """Word a sentence or a list of names in a person's language; a name or a number stays as it is."""
    return str(in_words(words, templates(spoken)))


def join(spoken: Language, *sentences: Sentence) -> str:
    return join_sentences(translate(each, spoken) for each in sentences)


def text(key: str, english: str, spoken: Language) -> str:
    """Return a label as text, where the server writes it and not Gradio."""
    return templates(spoken).get(key, english)


GRADIO_WORDS: Final = (
    say("upload_text.drop_file", "Drop a file here"),
    say("upload_text.drop_audio", "Drop a recording here"),
    say("upload_text.click_to_upload", "click to choose one"),
    say("common.upload", "Upload"),
    say("file.uploading", "Uploading…"),
    say("blocks.waiting_for_inputs", "A file is still being uploaded. Try again in a moment."),
)
