"""Every sentence and label of Hearth, in English and the other languages."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.languages import ENGLISH, FOLDER, languages, templates
from app.ui.page.bundle import SCRIPT_SENTENCE
from tests.support.order_tables import order
from tests.support.places import TOP
from tests.support.sentences import PYTHON, SCRIPTS, called, find_english, find_spoken
from tests.support.source_trees import tree_of

UNTRANSLATED = {
    "paint.loras",
    "shape.size",
    "strip.attention",
    "selftest.part",
    "word.colon",
    "word.comma",
    "word.decimal",
    "key.ctrl",
    "album.named",
    "progress.megabytes",
    "progress.took",
    "size.gb",
    "size.mb",
    "usage.described",
}
"""Names are the same in both languages; the others differ in their marks alone."""
TIME = re.compile(r"\}\s(?:ms|s|sec|seconds?|min|minutes?|h|hours?)\b(?!/)")
"""A number with a unit of time matches; rates such as s/step do not."""
COUNTED = re.compile(
    r"(?<! x )\{(?!kind\}|own\}|hearth\})\w+\} (?:(?!only |million |in |\w+s )[a-z/-]+ )?"
    r"(?:pictures|parts|jobs|creations|steps|characters|pixels|queries|heads|files|weights|words|bytes|times|tags|lines|places|cores|channels"
    r"|models|shapes|keys|guests|paths|checks|defects|numbers|rows|tokens|people|others)\b(?!/)"
)
"""A number with a noun that is always in the plural matches; {kind} and {own} name a kind of weights."""
HAN = "\u4e00-\u9fff"
ONE_WORD = {
    "得分": "注意力分数", "您": "你", "客人": "访客", "嗓音": "入门语音", "部件": "组件", "载入": "加载", "假设": "模拟", "线路": "网络", "进来": "登录",
    "小块": "图块", "...": "……", "声音表": "配音表", "角色表": "配音表", "绘画": "作画", "画图": "作画",
    "附加功能": "附加组件", "放大器": "放大模型", "栏位": "输入框",
}  # fmt: skip
"""Each Chinese word that once was used stands beside the one that is used everywhere now. docs/words.md has more of them."""
HALF_ELLIPSIS = re.compile("(?<!…)…(?!…)")


CHINESE = templates("zh")
QUOTES = {"de": re.compile("„([^“{]+)“"), "ja": re.compile("「([^」{]+)」"), "zh": re.compile("“([^”{]+)”")}
ELSEWHERE = {"help.phone.install", "help.prompt.negative", "help.prompt.order", "image.heic", "picture.heic", "torch.macos"}
"""What these quote is no name of the window's: an example, or what a phone or a system calls it."""
OTHERS = [code for code in languages() if code != ENGLISH]
"""Each of these has a file of sentences."""


def blanks(template: str) -> set[tuple[str, str | None, str | None]]:
    """The blanks for values; those that choose a noun by its number are English alone."""
    found = {(name, form, turn) for _, name, form, turn in string.Formatter().parse(template) if name is not None}
    return {(name, form, turn) for name, form, turn in found if "|" not in (form or "")}


def plain(template: str) -> str:
    """A template without the nouns that follow their number."""
    return re.sub(r"\{\w+:[^{}]*\|[^{}]*\}", "", template)


def test_a_key_means_one_sentence() -> None:
    clashes = [(key, english, place) for key, english, place in find_spoken() if find_english()[key] != english]
    assert not clashes


@pytest.mark.parametrize("code", OTHERS)
def test_translations_stand_in_the_order_of_their_keys(code: str) -> None:
    assert order('{"b": "二", "a": "一"}') == '{\n "a": "一",\n "b": "二"\n}\n'
    text = (FOLDER / f"{code}.json").read_text("utf-8")
    assert text == order(text), f"python3 tests/support/order_tables.py app/base/locale/{code}.json"
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) == len({key for key, _ in pairs})


@pytest.mark.parametrize("code", OTHERS)
def test_every_language_has_all_sentences_with_their_blanks_and_no_more(code: str) -> None:
    english, other = find_english(), templates(code)
    assert len(english) > 500
    assert not sorted({f"{key} ({place})" for key, _, place in find_spoken() if key not in other})
    assert not sorted(other.keys() - english.keys())
    assert not [key for key, template in other.items() if blanks(template) != blanks(english[key])]


def faults(chinese: str, name: bool) -> Iterator[str]:
    if bool(re.search(r"[\u4e00-\u9fff]", chinese)) == name:
        yield "not Chinese"
    if re.search(f"[{HAN}][,.;:!?()]|[,.;:!?(][{HAN}]", chinese):
        yield "punctuation of the other language"
    if re.search(
        f"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]|[，。：；！？（）、“”] | [，。：；！？（）、]", re.sub("`[^`]*`", "code", chinese)
    ):
        yield "a space is missing or too many between Chinese and Latin"
    if "|" in "".join(form or "" for _, _, form, _ in string.Formatter().parse(chinese)):
        yield "a plural, which Chinese has not"
    if HALF_ELLIPSIS.search(chinese):
        yield "half an ellipsis"
    yield from (f"{old}, not {new}" for old, new in ONE_WORD.items() if old in chinese)


GERMAN_ONE_WORD = (
    r"\b(?:Rechner|Maschine|CPU|GPU|Jobs?|Engine|Preset|Tags|Updates?|Builds?|Clips?|Sound|Kreation\w*|Telefon\w*|Ihnen)\b",
    r"[\w}]…", r"\.\.\.", r"[\d}]%", r'"',
)  # fmt: skip
"""German sentences say these otherwise: see docs/words.md."""


@pytest.mark.parametrize("code", OTHERS)
def test_what_is_quoted_is_called_so_in_the_window(code: str) -> None:
    """Chinese sent people to a tab that has another name there."""
    sentences = templates(code)
    shown = {part.strip("….").casefold() for each in sentences.values() for part in (each, each.partition("：")[0])}
    quoted = {(key, name) for key, each in sentences.items() if key not in ELSEWHERE for name in QUOTES[code].findall(each)}
    assert len(quoted) > 20 and not {each for each in quoted if each[1].strip("….").casefold() not in shown}


def test_german_has_one_word_for_one_thing() -> None:
    assert not [(key, wrong) for key, words in templates("de").items() for wrong in GERMAN_ONE_WORD if re.search(wrong, words)]


def test_chinese_reads_as_chinese() -> None:
    assert not [(key, fault) for key, words in CHINESE.items() for fault in faults(words, key in UNTRANSLATED)]


JAPANESE = templates("ja")
SIGNS = "\u3041-\u30ff\u4e00-\u9fff"
NO_JAPANESE = UNTRANSLATED | {
    "book.by", "disk.adapters", "file.embedding", "force.loras", "help.words.control", "help.words.lora", "learned", "lightbox.place", "notice.read",
    "notify.webhook", "reference.adapter", "doctor.capability", "doctor.card-row", "setting.adapter", "setting.top-p", "speak.top-p", "strip.processor",
    "window.ok",
}  # fmt: skip
"""They are names and marks alone."""
ONE_JAPANESE_WORD = {
    "ブラウザ(?!ー)": "ブラウザー", "フォルダ(?!ー)": "フォルダー", "サーバ(?!ー)": "サーバー", "コンピュータ(?!ー)": "コンピューター", "メモリー": "メモリ",
    "プロセッサ": "CPU", "グラフィックス?(カード|ボード)": "GPU", "ごみ箱": "ゴミ箱", "ライブラリー": "ライブラリ", "スクリプト": "台本", "バージョン": "版",
    "開始画像": "元画像", "下さい": "ください", "出来": "でき",
}  # fmt: skip
"""It tells for Japanese what ONE_WORD tells for Chinese."""


def japanese_faults(japanese: str, name: bool) -> Iterator[str]:
    if bool(re.search(f"[{SIGNS}]", japanese)) == name:
        yield "not Japanese"
    try:
        japanese.encode("cp932")  # as Windows' consoles write it: simplified Chinese characters are not in it
    except UnicodeEncodeError as fault:
        yield f"{japanese[fault.start : fault.end]} is no Japanese character"
    if re.search(f"[{SIGNS}][,;:!?()]|[,;:!?(][{SIGNS}]", re.sub(r"\([a-z]+\)", "", japanese)):
        yield "punctuation of the other language"
    if re.search(rf"[{SIGNS}、。：？（）「」] (?!\d+:\d)|[A-Za-z0-9%}}] [{SIGNS}「」（）]", re.sub("`[^`]*`", "code", japanese)):
        yield "a space, which Japanese has not"
    if "|" in "".join(form or "" for _, _, form, _ in string.Formatter().parse(japanese)):
        yield "a plural, which Japanese has not"
    yield from (f"{old}, not {new}" for old, new in ONE_JAPANESE_WORD.items() if re.search(old, japanese))


def test_japanese_reads_as_japanese() -> None:
    assert not [(key, fault) for key, words in JAPANESE.items() for fault in japanese_faults(words, key in NO_JAPANESE)]


def test_durations_are_worded_by_one_function() -> None:
    """`word_duration` and `time` of words.js alone know the units of time: 2722 s beside 45 minutes is one length in two styles."""
    assert not [key for key, english in find_english().items() if TIME.search(english) and not key.startswith("time.")]


def test_a_counted_noun_agrees_with_its_number() -> None:
    """As {n:picture|pictures}; never "1 pictures"."""
    assert not [key for key, english in find_english().items() if COUNTED.search(plain(english))]


def test_lists_are_joined_by_the_language() -> None:
    """A tuple as a value, never one joined by a comma beforehand, which would be English in every language."""
    joined = [
        f"{path.name}:{call.lineno}"
        for path in PYTHON
        for call in called(tree_of(path), labels=False)
        for part in ast.walk(call)
        if isinstance(part, ast.Attribute)
        and part.attr == "join"
        and isinstance(part.value, ast.Constant)
        and str(part.value.value).strip() in (",", ";", "/")
    ]
    assert not joined
    scripts = [path.name for path in SCRIPTS if re.search(r"""join\(["'][,;/] ?["']\)""", path.read_text("utf-8"))]
    assert not scripts


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_call_of_the_scripts_is_overlooked(path: Path) -> None:
    """Counted without the expression that collects them: each t( that is not the end of a longer name."""
    source = path.read_text("utf-8")
    pieces = source.split("t(")[:-1]
    calls = sum(not (piece[-1:].isalnum() or piece[-1:] in ("_", "$")) for piece in pieces)
    assert len(SCRIPT_SENTENCE.findall(source)) == calls


def test_scripts_join_words_by_the_marks_of_their_reader() -> None:
    """Chinese has a comma and a colon of its own: `word.comma`, `word.colon`, and `sentences` where whole ones follow each other."""
    fixed = re.compile(r'\.join\("[,:;] "\)|\}(</b>)?[:,;] \$\{')
    found = [
        f"{file.name}:{number} {line.strip()[:100]}"
        for file in sorted((TOP / "app/ui/page/static").rglob("*.js"))
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if fixed.search(line)
    ]
    assert not found
