"""Which language a person is answered in, that a third one is picked up everywhere, and what the page and Gradio get of the words."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from starlette.requests import Request

from app.__main__ import main
from app.base import languages
from app.base.sentence import say, shorten_list
from app.base.trouble import Trouble
from app.cli import open as open_command
from app.launcher import console, desktop_entry, failure, repair_page
from app.ui import routes, start_failure
from app.ui.access import login_form
from app.ui.page import bundle, translate
from app.ui.page.bundle import list_script_sentences
from app.ui.page.translate import GRADIO_WORDS
from app.ui.tabs import paint_form
from app.ui.window import build_head
from tests.support.sentences import find_english


def asked(accept: str = "", cookie: str = "") -> Request:
    headers = [(b"accept-language", accept.encode()), (b"cookie", cookie.encode())]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "cookie", "language"),
    [
        ("", "", "en"), ("xx-XX,xx;q=0.9", "", "en"), ("en-US,zh;q=0.5", "", "en"),
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


def test_a_list_is_joined_by_the_comma_of_its_reader() -> None:
    """Also within another sentence; a sentence in a list is translated."""
    near = say("catalog.unknown", "Did you mean: {near}?", wanted="dai", near=("dia", "sd15"))
    assert str(near) == "Did you mean: dia, sd15?"
    assert translate.translate(near, "zh") == "没有名为 dai 的模型、文件或文件夹。是不是想找：dia、sd15？"
    both = say("choice.unknown", "{field}: {options}", field=("a", say("word.yes", "yes")), value="c", options=("d", "e"))
    assert translate.translate(both, "zh").count("、") >= 2 and "a、是" in translate.translate(both, "zh")
    assert translate.translate(("MIT", "Apache 2.0"), "zh") == "MIT、Apache 2.0"
    assert translate.translate(say("words.none", "{count} {count:model|models}: {names}", count=1, names=("a",)), "en") == "1 model: a"


@pytest.mark.parametrize(("names", "told"), [((), ""), (("a", "b"), "a, b"), (("a", "b", "c"), "a, b, …")])
def test_a_long_list_is_cut_off_with_a_mark(names: tuple[str, ...], told: str) -> None:
    assert str(say("words.none", "{names}", names=shorten_list(names, 2))) == told


def test_english_stands_in_where_there_is_no_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "templates", lambda _: {})
    assert translate.translate(say("session.loading", "Loading {model}.", model="Dia"), "zh") == "Loading Dia."
    assert translate.text("word.yes", "yes", "zh") == "yes"


def test_gradio_gets_the_labels_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "_labels", {})
    translate.word("tab.speak", "Speak")
    named = translate.label(say("shape.size", "{shape} ({width} x {height})", shape=say("shape.square", "Square 1:1"), width=8, height=8))
    told = translate.i18n().translations
    assert told["en"]["tab.speak"] == "Speak" and told["en"]["upload_text.drop_file"] == "Drop a file here"
    assert told["zh"] == told["zh-CN"] == told["zh-TW"] and told["zh"]["tab.speak"] == "朗读"
    assert named.key == told["en"][named.key] == "Square 1:1 (8 x 8)" and told["zh"][named.key] == "正方形 1:1（8 x 8）"


def test_gradio_still_looks_for_the_texts_that_are_replaced() -> None:
    """By its own English table, which is one of its page's scripts; `common.upload` is asked for, but not in it."""
    (core,) = (Path(gr.__file__).parent / "templates" / "frontend" / "assets").glob("core-*.js")
    table = core.read_text("utf-8")
    for key in {each.key for each in GRADIO_WORDS} - {"common.upload"}:
        group, name = key.split(".")
        assert f"{group}:" in table and re.search(rf"[{{,]{name}:`", table), key


def test_the_scripts_get_their_words() -> None:
    assert json.loads(bytes(routes.send_sentences(asked("en")).body)) == {}
    chinese = json.loads(bytes(routes.send_sentences(asked("zh-CN")).body))
    assert chinese["strip.nothing"] == "没有加载模型"
    assert chinese.keys() == list_script_sentences().keys()


def test_a_sentence_within_a_sentence_is_in_the_same_language() -> None:
    with pytest.raises(Trouble) as caught:
        paint_form.parse_values("steps", "many, few")
    assert "numbers for steps" in str(caught.value)
    assert "步数" in translate.translate(caught.value.sentence, "zh") and "steps" not in translate.translate(caught.value.sentence, "zh")


def test_values_may_be_typed_with_chinese_commas() -> None:
    assert paint_form.parse_values("steps", "8，16、24") == [8, 16, 24]
    assert paint_form.parse_values("prompt", "a cat, red｜a dog") == ["a cat, red", "a dog"]


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A third language: a row of the table and a file, and nothing else."""
    folder = tmp_path / "locale"
    shutil.copytree(languages.FOLDER, folder)
    table = json.loads((folder / "languages.json").read_text("utf-8"))
    table["qx"] = {"name": "Quixish", "tags": ["qx-QX"]}
    (folder / "languages.json").write_text(json.dumps(table))
    (folder / "qx.json").write_text(json.dumps({key: f"<{english}>" for key, english in find_english().items()}))
    monkeypatch.setattr(languages, "FOLDER", folder)
    monkeypatch.setenv("LC_ALL", "qx_QX.UTF-8")
    for each in (languages.languages, languages.templates):
        each.cache_clear()
    yield
    for each in (languages.languages, languages.templates):
        each.cache_clear()


@pytest.mark.usefixtures("made_up")
def test_a_third_language_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    assert '"qx": "qx-QX"' in bundle.head(""), "for the first script"
    assert "<title>Hearth</title>" in bundle.head(""), "a screen reader says what has loaded before any script ran"
    assert json.loads(bytes(routes.send_sentences(asked("qx-QX,en")).body))["strip.nothing"] == "<no model loaded>"
    monkeypatch.setattr(translate, "_labels", {"tab.speak": say("tab.speak", "Speak")})
    labels = translate.i18n().translations
    assert labels["qx"] == labels["qx-QX"] and labels["qx"]["tab.speak"] == "<Speak>" and labels["zh-TW"]["tab.speak"] == "朗读"
    with gr.Blocks() as window:
        build_head()
    assert any('<option value="qx" lang="qx-QX">Quixish</option>' in str(getattr(each, "value", "")) for each in window.blocks.values())


@pytest.mark.usefixtures("made_up")
def test_a_third_language_is_at_the_login_and_on_the_repair_page() -> None:
    page = bytes(login_form.render_page(asked(cookie="hearth_language=qx"), None, 200, owner=False).body).decode()
    assert '<html lang="qx-QX">' in page and "&lt;Password&gt;" in page and ">中文</a>" in page
    assert ">Quixish</a>" in bytes(login_form.render_page(asked("en"), None, 200, owner=False).body).decode()
    failed = failure.describe("log", start_failure.UNKNOWN)
    page = repair_page.render_file(failed, translate.language(asked("qx")), "line")
    assert '<html lang="qx-QX">' in page and "&lt;Hearth could not start." in page


@pytest.mark.usefixtures("made_up")
def test_a_third_language_is_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console.tell(say("start.stopped", "Stopped. Start again to continue."))
    assert main(["models", "get", "nonsense"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("<Stopped. Start again to continue.>\nhearth: <Hearth knows no model")
    parser = argparse.ArgumentParser()
    open_command.add_arguments(parser)
    assert parser.parse_args(["--lang", "qx"]).lang == "qx"
    assert "GenericName[qx_QX]=<Speech and pictures>" in desktop_entry.desktop_entry(["hearth"], Path("icon"))
    assert b"&lt;Hearth records a clip" in desktop_entry.mac_bundle(["hearth"], b"", Path("log"))[0].content
    assert "'<Speak scripts and paint" in desktop_entry.windows_shortcuts(["hearth"], Path("icon"))
