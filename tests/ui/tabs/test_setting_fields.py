"""A setting is one row and its field of the request: check, field, what it asks for and shows, presets, saved values and option go by the row."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base.sentence import Sentence
from app.base.stored_json import is_right
from app.base.trouble import Trouble
from app.cli.job import add_job_options, read_settings
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.settings import PICTURES, SPEECH, Rows, Setting, check_settings, list_defaults
from app.ui.state import presets
from app.ui.state.settings import Settings
from app.ui.state.settings_schema import list_types
from app.ui.tabs.setting_fields import SettingFields

ROW = Setting(
    "warmth", Sentence("test.warmth", "warmth"), Sentence("test.Warmth", "Warmth (%)"), asked="warmth_percent", range=(0, 100), whole=True,
    slider=(10, 90, 5), option=Sentence("test.warm", "how warm it sounds"),
)  # fmt: skip
TABLE: Rows = {**SPEECH, ROW.name: ROW}


@dataclass(frozen=True)
class Warm(SpeechRequest):
    warmth_percent: int = 40


@pytest.fixture
def fields() -> Iterator[SettingFields]:
    with gr.Blocks(analytics_enabled=False) as window:
        made = SettingFields("speak", TABLE, Warm, {"speed": 1.25})
        made.build("seed")
        made.build_rest()
        made.build_rest(by_hand=True)
    yield made
    window.close(verbose=False)


def test_a_row_is_a_check() -> None:
    check_settings(Warm("a", warmth_percent=100), TABLE)
    for wrong in (101, -1, 1.5, True):
        with pytest.raises(Trouble, match="warmth is"):
            check_settings(Warm("a", warmth_percent=wrong), TABLE)  # type: ignore[arg-type]
    with pytest.raises(Trouble, match="file format is exe; it must be one of wav, flac"):
        SpeechRequest("a", format="exe")


def test_a_row_is_a_field(fields: SettingFields) -> None:
    made = fields["warmth"]
    assert isinstance(made, gr.Slider) and (made.minimum, made.maximum, made.step, made.value) == (10, 90, 5, 40)
    assert made.label.key == "test.Warmth" and made.elem_id == "speak-warmth"  # type: ignore[union-attr]
    assert fields["speed"].value == 1.25, "as it was saved"
    assert next(iter(fields.built)) == "seed" and set(fields.built) == {name for name, each in TABLE.items() if each.label}
    assert [type(fields[name]) for name in ("seed", "format", "carry")] == [gr.Number, gr.Dropdown, gr.Checkbox]


def test_a_field_asks_for_its_value_and_shows_it_again(fields: SettingFields) -> None:
    values: dict[Any, Any] = {each: each.value for each in fields.built.values()} | {fields["warmth"]: 55.0, fields["top_p"]: 0.8}
    made = Warm("a", **fields.read(values))
    check_settings(made, TABLE)
    assert (made.warmth_percent, made.top_p, made.loudness_lufs, made.seed) == (55, 0.8, -18.0, None)
    assert fields.restore(made) == {name: values[each] for name, each in fields.built.items()}
    by_model = Warm("a", **fields.read(values, by_hand=False))
    assert by_model.top_p is None and fields.restore(by_model)["top_p"] == gr.skip(), "a slider stays where it is"
    for empty in (None, ""):
        assert Warm("a", **fields.read(values | {fields["warmth"]: empty, fields["format"]: empty})) == replace(made, warmth_percent=40)
    with pytest.raises(Trouble):
        check_settings(Warm("a", **fields.read(values | {fields["warmth"]: "much"})), TABLE)


@pytest.mark.parametrize("asked", [100, 3, 50])
def test_a_slider_reaches_what_a_command_asked_for(fields: SettingFields, asked: int) -> None:
    """Gradio refused such a value, in English, when the restored settings were sent: nothing was begun."""
    shown = fields.restore(Warm("a", warmth_percent=asked))["warmth"]
    changed = {name: each for name, each in shown.items() if name != "__type__"} if isinstance(shown, dict) else {"value": shown}
    after = gr.Slider(**{**fields["warmth"].constructor_args, **changed, "render": False})  # as Gradio makes it of an update
    assert after.preprocess(asked) == asked and after.value == asked
    assert (after.minimum, after.maximum) == (min(10, asked), max(90, asked))


@pytest.mark.parametrize("table", [SPEECH, PICTURES])
def test_what_a_list_lacks_cannot_be_asked_for(table: Rows) -> None:
    """Three times as large could be asked for, by a picture of A1111 too, and Paint's list refused it."""
    for each in table.values():
        if each.choices and each.range is not None:
            assert set(each.choices) == set(range(int(each.range[0]), int(each.range[1]) + 1))


def test_a_row_is_in_presets_and_saved_values() -> None:
    assert presets.list_as_made(Warm, TABLE)["warmth"] == 40
    schema = TypeAdapter(TypedDict("Values", list_types(TABLE), total=False))  # type: ignore[operator]  # mypy takes the class for its special form
    assert is_right(schema, {"warmth": 100, "speed": 1.0}) and not is_right(schema, {"warmth": 101})
    assert not is_right(schema, {"warmth": None}) and is_right(schema, {"seed": None})


def test_a_row_is_an_option() -> None:
    parser = argparse.ArgumentParser()
    add_job_options(parser, TABLE)
    assert "how warm it sounds" in parser.format_help()
    given = read_settings(parser.parse_args(["--warmth", "7", "--top-p", "0.9"]), TABLE)
    assert given == {"warmth_percent": 7, "top_p": 0.9}
    check_settings(Warm("a", **given), TABLE)
    with pytest.raises(SystemExit):
        parser.parse_args(["--format", "exe"])


def test_what_comes_with_hearth_sets_what_the_makers_recommend() -> None:
    assert presets.AS_MADE == {
        "speak": {"speed": 1.0, "own": False, "loudness": -18, "carry": True},
        "paint": {
            "width": None,
            "height": None,
            "steps": None,
            "guidance": None,
            "scheduler": "",
            "batch": 1,
            "upscale": 1,
            "enlarger": "starter",
            "hires": False,
            "hires_strength": 0.35,
            "strength": 0.6,
            "quicker": "off",
        },
    }


def test_a_preset_leaves_out_what_belongs_to_one_script(tmp_path: Path) -> None:
    given = {"seed": 7, "model": "dia", "voice": "Anna", "format": "flac", "own": True, "top_p": 0.9, "speed": 0.8}
    settings = Settings(tmp_path / "s.json")
    choice = presets.save_preset(settings, "speak", "mine", given)
    assert presets.find_values(settings, "speak", choice) == {"format": "flac", "own": True, "top_p": 0.9, "speed": 0.8}


@pytest.mark.parametrize(("table", "request_"), [(SPEECH, SpeechRequest), (PICTURES, PictureRequest)])
def test_a_request_asks_at_first_for_what_its_fields_can_show(table: Rows, request_: type[Any]) -> None:
    """A slider that may be left to the model says where it stands; what a slider offers may be asked for."""
    defaults = list_defaults(request_, table)
    for each in table.values():
        each.check(defaults[each.name], optional=True)
        if each.slider is not None:
            least, most, _ = each.slider
            each.check(int(least) if each.whole else least)
            each.check(int(most) if each.whole else most)
            assert least <= each.show(defaults[each.name]) <= most, each.name


def test_a_seed_of_minus_one_is_a_new_one_and_half_a_seed_none() -> None:
    """-1 was an error after Paint, and 1.5 became 2 in silence."""
    fields = SettingFields("paint", PICTURES, PictureRequest, {})
    with gr.Blocks():
        fields.build("seed")
    seed = fields["seed"]
    for typed, asked in ((-1, None), (7, 7), (7.0, 7), (1.5, 1.5), (None, None), ("", None)):
        assert fields.read({seed: seed.preprocess(typed) if typed != "" else typed}).get("seed") == asked, typed
    with pytest.raises(Trouble, match=r"seed is 1\.5; it must be a whole number"):
        PictureRequest("a ball", seed=1.5)  # type: ignore[arg-type]


def test_a_command_takes_minus_one_too() -> None:
    parser = argparse.ArgumentParser()
    add_job_options(parser, PICTURES)
    assert "seed" not in read_settings(parser.parse_args(["--seed", "-1"]), PICTURES)


def test_a_range_is_told_as_people_write_it() -> None:
    with pytest.raises(Trouble, match="from 0 to 50"):
        PictureRequest("a ball", guidance=99.0)
