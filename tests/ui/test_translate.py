"""Which language a person is answered in, and what the page and Gradio get of the words."""

from __future__ import annotations

import json

import pytest
from starlette.requests import Request

from app.sentence import Trouble, say
from app.ui import routes
from app.ui.page import translate
from app.ui.tabs import paint_form


def asked(accept: str = "", cookie: str = "") -> Request:
    headers = [(b"accept-language", accept.encode()), (b"cookie", cookie.encode())]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "cookie", "language"),
    [
        ("", "", "en"), ("de-DE,de;q=0.9", "", "en"), ("en-US,zh;q=0.5", "", "en"),
        ("zh-CN,zh;q=0.9", "", "zh"), ("zh-TW", "", "zh"), ("ZH-hk", "", "zh"),
        ("zh-CN", "hearth_language=en", "en"), ("en-US", "hearth_language=zh", "zh"), ("zh", "hearth_language=xx", "zh"),
        ("en", "other=zh", "en"),
    ],
)  # fmt: skip
def test_the_switch_comes_before_the_browser(accept: str, cookie: str, language: str) -> None:
    assert translate.language(asked(accept, cookie)) == language


def test_nobody_asking_is_answered_in_english() -> None:
    assert translate.language(None) == "en"


def test_a_sentence_is_told_in_either_language() -> None:
    sentence = say("session.loading", "Loading {model}.", model="Dia")
    assert translate.translate(sentence, "en") == "Loading Dia."
    assert translate.translate(sentence, "zh") == "正在加载 Dia。"
    assert translate.text("word.yes", "yes", "en") == "yes"
    assert translate.text("word.yes", "yes", "zh") == "是"


def test_english_stands_in_where_there_is_no_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "catalog", dict)
    assert translate.translate(say("session.loading", "Loading {model}.", model="Dia"), "zh") == "Loading Dia."
    assert translate.text("word.yes", "yes", "zh") == "yes"


def test_gradio_gets_the_labels_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "_english", {})
    translate.word("tab.speak", "Speak")
    told = translate.i18n().translations
    assert told["en"] == {"tab.speak": "Speak"}
    assert told["zh"] == told["zh-CN"] == told["zh-TW"] == {"tab.speak": "朗读"}


def test_the_scripts_get_their_words() -> None:
    assert json.loads(bytes(routes.send_sentences(asked("en")).body)) == {}
    chinese = json.loads(bytes(routes.send_sentences(asked("zh-CN")).body))
    assert chinese["strip.nothing"] == "没有加载模型"
    assert chinese.keys() == routes.list_script_sentences().keys()


def test_a_sentence_within_a_sentence_is_in_the_same_language() -> None:
    with pytest.raises(Trouble) as caught:
        paint_form.parse_values("steps", "many, few")
    assert "numbers for steps" in str(caught.value)
    assert "步数" in translate.translate(caught.value.sentence, "zh") and "steps" not in translate.translate(
        caught.value.sentence, "zh"
    )
