"""Every sentence and label of Hearth in Chinese, which language a person is answered in, and that a third one is picked up everywhere."""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import string
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from starlette.requests import Request

from app import languages
from app.__main__ import main
from app.cli import open as open_command
from app.launcher import console, desktop_entry, failure, repair_page
from app.sentence import Trouble, say
from app.ui import routes, start_failure
from app.ui.access import login
from app.ui.page import bundle, translate
from app.ui.tabs import paint_form
from app.ui.window import build_head
from tests.support.places import TOP

CATALOG = TOP / "app" / "locale" / "zh.json"
SCRIPTS = sorted((TOP / "app" / "ui" / "page" / "static").rglob("*.js"))
UNTRANSLATED = {"bench.hearth", "paint.loras", "speak.top-p"}
"""Names: the same in both languages."""


def called(tree: ast.AST, labels: bool) -> Iterator[ast.Call]:
    """say() anywhere; in the window's files also word() and text(), but for where a shorter word() hands its own two on."""
    names = {"say", "word", "text"} if labels else {"say"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            handed_on = [getattr(each, "id", "") for each in node.args[:2]] == ["key", "english"]
            yield from () if handed_on else (node,)


def spoken() -> Iterator[tuple[str, str, str]]:
    """Key, English and place of all that Hearth says."""
    for path in sorted((TOP / "app").rglob("*.py")):
        name = path.relative_to(TOP).as_posix()
        for call in called(ast.parse(path.read_text("utf-8")), labels=name.startswith("app/ui/")):
            place = f"{name}:{call.lineno}"
            key, english = (each.value if isinstance(each, ast.Constant) else None for each in call.args[:2])
            assert isinstance(key, str) and isinstance(english, str), f"{place}: literals only"
            yield key, english, place
    for path in SCRIPTS:
        for key, english in routes.SCRIPT_SENTENCE.findall(path.read_text("utf-8")):
            yield key, json.loads(f'"{english}"'), path.name


SPOKEN = list(spoken())
ENGLISH = {key: english for key, english, _ in SPOKEN}
CHINESE = languages.templates("zh")


def blanks(template: str) -> set[tuple[str, str | None, str | None]]:
    return {(name, form, turn) for _, name, form, turn in string.Formatter().parse(template) if name is not None}


def test_a_key_means_one_sentence() -> None:
    clashes = [(key, english, place) for key, english, place in SPOKEN if ENGLISH[key] != english]
    assert not clashes


def test_all_has_chinese_and_no_chinese_is_left_over() -> None:
    assert len(ENGLISH) > 500
    missing = sorted({f"{key} ({place})" for key, _, place in SPOKEN if key not in CHINESE})
    assert not missing
    assert not sorted(CHINESE.keys() - ENGLISH.keys())


def faults(english: str, chinese: str, name: bool) -> Iterator[str]:
    if blanks(chinese) != blanks(english):
        yield "other blanks"
    if bool(re.search(r"[\u4e00-\u9fff]", chinese)) == name:
        yield "not Chinese"
    if re.search(r"[\u4e00-\u9fff][,.;:!?()]|[,.;:!?(][\u4e00-\u9fff]", chinese):
        yield "punctuation of the other language"


def test_chinese_has_the_same_blanks_and_reads_as_chinese() -> None:
    both = ((key, ENGLISH[key], CHINESE[key]) for key in CHINESE.keys() & ENGLISH.keys())
    assert not [(key, fault) for key, one, other in both for fault in faults(one, other, key in UNTRANSLATED)]


def test_the_catalog_is_kept_in_order() -> None:
    """So that two people who add a sentence rarely meet in one line."""
    kept = CATALOG.read_text("utf-8")
    assert kept == json.dumps(CHINESE, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    pairs = json.loads(kept, object_pairs_hook=list)
    assert len(pairs) == len({key for key, _ in pairs})


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_call_of_the_scripts_is_overlooked(path: Path) -> None:
    """Counted without the expression that collects them: each t( that is not the end of a longer name."""
    source = path.read_text("utf-8")
    pieces = source.split("t(")[:-1]
    calls = sum(not (piece[-1:].isalnum() or piece[-1:] in ("_", "$")) for piece in pieces)
    assert len(routes.SCRIPT_SENTENCE.findall(source)) == calls


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
    monkeypatch.setattr(translate, "templates", lambda _: {})
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


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A third language: a row of the table and a file, and nothing else."""
    folder = tmp_path / "locale"
    shutil.copytree(languages.FOLDER, folder)
    table = json.loads((folder / "languages.json").read_text("utf-8"))
    table["qx"] = {"name": "Quixish", "short": "Qx", "tags": ["qx-QX"]}
    (folder / "languages.json").write_text(json.dumps(table))
    (folder / "qx.json").write_text(json.dumps({key: f"<{english}>" for key, english in ENGLISH.items()}))
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
    assert json.loads(bytes(routes.send_sentences(asked("qx-QX,en")).body))["strip.nothing"] == "<no model loaded>"
    monkeypatch.setattr(translate, "_english", {"tab.speak": "Speak"})
    labels = translate.i18n().translations
    assert labels["qx"] == labels["qx-QX"] == {"tab.speak": "<Speak>"} and labels["zh-TW"] == {"tab.speak": "朗读"}
    with gr.Blocks() as window:
        build_head()
    assert any("Quixish" in str(getattr(each, "value", "")) for each in window.blocks.values()), "on the switch"


@pytest.mark.usefixtures("made_up")
def test_a_third_language_is_at_the_login_and_on_the_repair_page() -> None:
    page = bytes(login.render_page(asked(cookie="hearth_language=qx"), None, 200).body).decode()
    assert '<html lang="qx-QX">' in page and "&lt;Password&gt;" in page and ">中文</a>" in page
    assert ">Quixish</a>" in bytes(login.render_page(asked("en"), None, 200).body).decode()
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
