"""Numbers, dates, times, money and units in Chinese words, as other_languages.py has them for languages with an alphabet. Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from app.engine.speech.text.spoken_forms import FRACTIONS, PARTED

FIGURES: Final = "零一二三四五六七八九"
TENS: Final = ("", "十", "百", "千")
MYRIADS: Final = ("", "万", "亿", "万亿")
LONGEST: Final = 16
"""A number with more figures is read figure by figure, as one is that begins with a zero."""
MONEY: Final = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
UNITS: Final = {
    "km/h": "公里每小时", "km": "公里", "cm": "厘米", "mm": "毫米", "kg": "公斤", "mg": "毫克", "ml": "毫升", "min": "分钟", "GB": "吉字节", "MB": "兆字节",
    "°C": "摄氏度", "℃": "摄氏度", "°": "度", "m": "米", "g": "克", "L": "升", "l": "升", "h": "小时", "s": "秒",
}  # fmt: skip
_WHOLE: Final = r"\d{1,3}(?:,\d{3}){1,5}+(?![\d,]\d)|\d{1,40}+"
_NUMBER: Final = rf"(?P<minus>(?<![\w\d])[-−])?(?P<whole>{_WHOLE})(?P<part>\.\d{{1,20}}+)?+"
_UNIT: Final = "|".join(map(re.escape, UNITS))
_COUNTED: Final = "[个個位名只隻条本张張件次天块杯瓶把间家台辆座岁周种遍人米倍万千秒]|小时|分钟|公里|公斤|年(?!级)|点(?!\\d)"
"""Of these there are 两, not 二."""
_MONEY: Final = "".join(MONEY)
_SIGNS: Final = {sign: written.replace("/", "⁄") for sign, written in FRACTIONS.items()}
"""The slash tells what was one sign from a date."""
_MEASURED: Final = re.compile(
    r" ?(?:[大小茶汤湯]?[匙杯勺]|[碗瓶斤磅倍秒]|小[时時]|分[钟鐘]|公[里斤升尺]|英[里寸尺]|[厘毫千][米克升]|[个個](?![人别別性体體展])|"
    "[天米克升](?=[，。、！？后後内內的]|$))"
)
"""Before one of these stands no date."""
_FRACTION: Final = re.compile(
    r" ?(?:(?<![\d.,/-])(?P<full>\d{1,6}) )?(?<![\dA-Za-z.,/-])(?P<above>\d{1,3})(?P<slash>[/⁄])(?P<below>\d{1,4})(?![\d/]| ?[日号號])"
    rf"(?: ?(?P<unit>{_UNIT})(?![A-Za-z]))?"
)


def cardinal(value: int) -> str:
    """Write a number below 10**16."""
    if value == 0:
        return FIGURES[0]
    said, place, gap = "", 0, False
    while value:
        value, four = divmod(value, 10_000)
        if four:
            some = _word_four(four)
            said = f"{some}{MYRIADS[place]}{FIGURES[0] if gap and said else ''}{said}"
        gap = four < 1000
        place += 1
    return said[1:] if said.startswith("一十") else said


def _word_four(value: int) -> str:
    said = ""
    for place, figure in enumerate(str(value)[::-1]):
        if figure != "0":
            said = f"{FIGURES[int(figure)]}{TENS[place]}{said}"
        elif said and not said.startswith(FIGURES[0]):
            said = f"{FIGURES[0]}{said}"
    return said


def figures(digits: str) -> str:
    return "".join(FIGURES[int(digit)] for digit in digits)


def _word_number(found: re.Match[str]) -> str:
    whole = found["whole"].replace(",", "")
    long = len(whole) > LONGEST or (len(whole) > 1 and whole.startswith("0"))
    said = figures(whole) if long else cardinal(int(whole))
    part = f"点{figures(found['part'][1:])}" if found["part"] else ""
    return f"{'负' if found['minus'] else ''}{said}{part}"


def _word_fraction(found: re.Match[str]) -> str:
    above, below = int(found["above"]), int(found["below"])
    dated = above <= 12 and below <= 31
    season = below == above + 1
    sure = found["slash"] == "⁄" or found["unit"] or _MEASURED.match(found.string, found.end()) or (not dated and not season)
    part = found.string.startswith("的", found.end()) and below <= 10  # 5/12的 is said of a day, too
    if below not in PARTED or above >= below or not (sure or part):
        return found[0]
    return f"{cardinal(int(found['full'])) + '又' if found['full'] else ''}{cardinal(below)}分之{cardinal(above)}{UNITS.get(found['unit'], '')}"


_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"(?<![\w.-])(\d{4})-(\d\d)-(\d\d)(?![\w-])"), lambda found: f"{found[1]}年{int(found[2])}月{int(found[3])}日"),
    (re.compile(r"(?<![\d.])(\d{4})(?= ?年)"), lambda found: figures(found[1])),
    (re.compile(r"(?<![\d.,])(?:1[3-9]\d{9}|0\d{2,3}-?\d{7,8})(?![\d.,]\d|\d|[元美人])"), lambda found: figures(found[0].replace("-", ""))),
    (re.compile(r"第 ?(\d{1,4})/(\d{1,4}) ?([页頁章节節回部卷集幕册篇])"), r"第\1\3，共\2\3"),
    (re.compile(r"([页頁]码?[:：]? ?)(\d{1,4})/(\d{1,4})(?![\d/])"), r"\1\2，共\3页"),
    (_FRACTION, _word_fraction),
    (re.compile(rf"(?<![\d.,:：第/-])2(?= ?(?:{_COUNTED}))"), lambda _: "两"),
    (re.compile(r"(?<![\d.:])(\d{1,2})[:：]([0-5]\d)(?![\d:])"), lambda found: _word_clock(int(found[1]), int(found[2]))),
    (re.compile(rf"{_NUMBER} ?[%％]"), lambda found: f"百分之{_word_number(found)}"),
    (re.compile(rf"(?P<sign>[{_MONEY}]) ?{_NUMBER}"), lambda found: f"{_word_number(found)}{MONEY[found['sign']]}"),
    (re.compile(rf"{_NUMBER} ?(?P<sign>[{_MONEY}])"), lambda found: f"{_word_number(found)}{MONEY[found['sign']]}"),
    (re.compile(rf"{_NUMBER} ?(?P<unit>{_UNIT})(?![A-Za-z])"), lambda found: f"{_word_number(found)}{UNITS[found['unit']]}"),
    (re.compile(_NUMBER), _word_number),
)  # fmt: skip


def _word_clock(hour: int, minute: int) -> str:
    return f"{'两' if hour == 2 else cardinal(hour)}点" + (f"{FIGURES[0] if minute < 10 else ''}{cardinal(minute)}分" if minute else "")


def write_chinese(text: str) -> str:
    """Return a text with its figures and signs in Chinese words."""
    text = text.translate(_SIGNS)
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    return text
