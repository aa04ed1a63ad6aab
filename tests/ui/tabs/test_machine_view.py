"""What the Machine tab is told: values that JSON knows, whatever the self-test found; and why another chunk runs than is asked for."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.base.paths import home
from app.base.sentence import say
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.options import LEARNED_HERE, failed_sentence, overruled_sentence, second_choice
from app.compat.planning.plan_words import word_option
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.control import Dial
from app.engine.models import fit, on_disk
from app.engine.models.catalog import find
from app.engine.models.model import describe_need
from app.engine.models.planned import Setup, make_plan
from app.engine.session.live_plan import LivePlan
from app.ui.page.translate import translate
from app.ui.tabs.curve_view import curve_view, explain_chunk
from app.ui.tabs.machine_view import selftest_view, source_text

M1 = machine("m1-8gb")
TIGHT = replace(M1, free_bytes=int(M1.free_bytes * 0.4))
PIXART = describe_need(find("pixart-sigma"))
METAL = "Metal refuses a buffer larger than its memory, so scores are computed in pieces."


def test_a_path_that_raised_or_gave_nan_can_be_told() -> None:
    raised = Verdict(Subject("row", "sdpa-dtype"), passed=False, error=math.inf, words="Expected query and key to have the same dtype.")
    right = Verdict(Subject("path", "gqa/folded/float32"), passed=True, error=1e-7, elapsed_s=0.002)
    view = selftest_view({each.subject: each for each in (raised, right)}, "en")
    told = json.loads(json.dumps(view, allow_nan=False))
    assert [row["error"] for row in (*told["rows"], *told["paths"])] == [None, 1e-7]
    assert (told["right"], told["total"]) == (1, 1)


def test_a_starters_part_is_told_in_words() -> None:
    wrong = Verdict(Subject.part("vae", "float16"), passed=False, error=math.inf)
    views = [selftest_view({wrong.subject: wrong}, spoken) for spoken in ("en", "zh")]
    assert [view["parts"][0]["subject"] for view in views] == ["the starter painter's decoder, float16", "入门画师的解码器，float16"]
    assert [(view["right"], view["total"]) for view in views] == [(0, 1)] * 2


def test_the_largest_picture_is_one_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With checkpoints that cannot be had here: only that they are installed is pretended."""
    there, known = {"starter-painter"}, (find("sdxl"), find("sd15"), find("starter-painter"), find("dia-1.6b"))
    monkeypatch.setattr(on_disk, "locate", lambda place, model, quantised: model.id in there or None)

    def largest(hardware: Hardware) -> tuple[str, int] | None:
        found = fit.find_largest_picture(Setup(home(tmp_path), hardware), known)
        return found and (found[0].id, found[1] * found[2])

    assert largest(M1) == ("starter-painter", 256 * 256)
    assert largest(replace(M1, free_bytes=10 << 20)) is None
    there.update(("sdxl", "sd15", "dia-1.6b"))
    assert largest(machine("m3-max-64gb")) == ("sdxl", 1024 * 1024)
    small = largest(M1)
    assert small and small[0] == "sd15" and 512 * 512 <= small[1] < 1024 * 1024


def painting(dial: Dial) -> LivePlan:
    return LivePlan(partial(decide, TIGHT, PIXART, Choice()), dial, {})


def test_a_size_that_is_refused_in_the_middle_of_a_run_is_told_beside_the_slider() -> None:
    dial = Dial(64)
    live = painting(dial)
    assert (live.now.chunk_q, explain_chunk(live.now, 64, "en")) == (64, "")
    dial.chunk = 4096
    assert live.refused is not None
    view = curve_view(PIXART, live.now, None, 4096, "en")
    assert view["runs"] == f"You asked for 4096, but 64 is used: {METAL}"
    assert (view["chunk"], view["at"]) == (4096, 64), "the slider stands at the one, the point of the curve at the other"
    assert explain_chunk(live.now, 4096, "zh").startswith("要求的是 4096，实际使用 64：")
    dial.chunk = 64
    assert explain_chunk(live.now, 64, "en") == ""


def test_a_guests_job_that_gives_way_says_why(tmp_path: Path) -> None:
    decided = partial(make_plan, home(tmp_path).create(), TIGHT, find("pixart-sigma"), Choice(), yields=True)
    live = LivePlan(decided, Dial(4096), {})
    runs_now = decided({}).chunk_q
    assert runs_now != 4096 and live.refused is None
    shown = "automatic" if runs_now == AUTO else runs_now
    assert explain_chunk(live.now, 4096, "en") == f"You asked for 4096, but {shown} is used: {METAL}"


def test_until_the_next_step_no_reason_is_made_up() -> None:
    """The plan of the run is still the one for the size before."""
    dial = Dial(64)
    before = painting(dial).now
    assert explain_chunk(before, 128, "en") == "You asked for 128; 64 stays in use until the next step."
    assert explain_chunk(before, AUTO, "en") == "You asked for automatic; 64 stays in use until the next step."
    assert explain_chunk(painting(Dial(128)).now, 128, "en") == ""


def test_a_plans_options_and_sources_are_in_the_readers_language() -> None:
    """Whatever is chosen, refused or forced; names of threads and files stay as they are."""
    words = [
        second_choice("offload", word_option("offload", "none")).sentence,
        failed_sentence(word_option("gqa", "native"), Verdict(Subject("path", "gqa"), False, 0.5)),
        overruled_sentence(word_option("contiguous", "no"), say("learned.memory", "Memory ran out.")),
    ]
    assert [translate(each, "zh") for each in words] == [
        "优先使用“无”，它在这里可用。",
        "“原生”在这台机器上没有通过自检：0.5",
        "你选择了“不变”，但在这里行不通。内存用尽。",
    ]
    assert [source_text(each, "zh") for each in ("your choice", LEARNED_HERE, "torch's sdp_utils.cpp", "torch's source", "pytorch #1")] == [
        "你的选择",
        "本机以往的一次运行",
        "torch 的 sdp_utils.cpp",
        "torch 的源代码",
        "pytorch #1",
    ]
