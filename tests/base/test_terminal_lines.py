"""Lines of a terminal, in which a Chinese character takes two places."""

from __future__ import annotations

import textwrap

import pytest

from app.base.terminal_lines import count_places, fit_line, pad, wrap

ENGLISH = "show what takes room on the disk;  move it to another one, and back"


def test_a_line_of_progress_counts_chinese_twice() -> None:
    assert fit_line("  正在安装 torch", 9) == "  正在安 "
    assert fit_line("  安装", 9) == "  安装   " and pad("安装", 9) == "安装     "


@pytest.mark.parametrize("width", [20, 40, 200])
def test_english_breaks_at_blanks_as_everywhere(width: int) -> None:
    assert wrap(ENGLISH, width) == textwrap.wrap(ENGLISH, width, break_on_hyphens=False)
    assert wrap(ENGLISH, width, "  ", "    ") == textwrap.wrap(
        ENGLISH, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    assert wrap(" ", width) == []


@pytest.mark.parametrize(
    "text",
    [
        "ディスクを使っているものを示し、「作品」タブから別のディスクへ移します。--homeでHearthのフォルダーを選べます。",
        "显示“作品”占用了多少磁盘空间，移到别的磁盘（或移回）。",
    ],
)
def test_chinese_and_japanese_break_anywhere_but_before_a_closing_mark(text: str) -> None:
    for width in range(8, 60):
        lines = wrap(text, width)
        assert "".join(lines) == text and all(count_places(line) <= max(width, 10) for line in lines)
        assert not [line for line in lines if line[0] in "、。」）”，" or line[-1] in "「（“"]
