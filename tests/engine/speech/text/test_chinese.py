"""Figures and signs in Chinese words."""

from __future__ import annotations

import pytest

from app.engine.speech.text.chinese import cardinal, write_chinese


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "零"), (7, "七"), (10, "十"), (12, "十二"), (20, "二十"), (105, "一百零五"), (110, "一百一十"), (1001, "一千零一"),
     (2024, "二千零二十四"), (10_000, "一万"),
     (10_500, "一万零五百"), (100_005, "十万零五"), (1_000_000, "一百万"),
     (120_000_000, "一亿二千万"), (100_000_001, "一亿零一"), (1_000_010_000, "十亿零一万")],
)  # fmt: skip
def test_numbers(value: int, words: str) -> None:
    assert cardinal(value) == words


@pytest.mark.parametrize(
    ("written", "said"),
    [("2024年3月5日", "二零二四年三月五日"), ("比昨天多50%", "比昨天多百分之五十"), ("12.5元", "十二点五元"), ("¥1,200", "一千二百元"),
     ("$5", "五美元"),
     ("3 kg苹果", "三公斤苹果"), ("8:05开门", "八点零五分开门"), ("8:00", "八点"), ("-3°C", "负三摄氏度"), ("007", "零零七"),
     ("2个苹果，第2个，12个，2年级，2月2日", "两个苹果，第二个，十二个，二年级，二月二日"), ("2:30，2点，2点5", "两点三十分，两点，二点五"),
     ("2024-05-03", "二零二四年五月三日"), ("13800138000", "一三八零零一三八零零零"), ("010-12345678", "零一零一二三四五六七八"),
     ("第1/2页，第3/4章，页码 1/2", "第一页，共二页，第三章，共四章，页码 一，共二页"),
     ("吃了½杯，2 1/2小时，有3/4的人", "吃了二分之一杯，二又二分之一小时，有四分之三的人"), ("24/7，1/2日", "二十四/七，一/二日"),
     ("你好", "你好"), ("GB和MB", "GB和MB")],
)  # fmt: skip
def test_what_is_written_in_figures_is_said(written: str, said: str) -> None:
    assert write_chinese(written) == said
