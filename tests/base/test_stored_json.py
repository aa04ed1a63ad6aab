"""Every JSON file that Hearth keeps, damaged: the rest of it is kept, the damaged file too, it is told, and nothing stops."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_of

from app.base import notices
from app.base.paths import home
from app.base.stored_json import drop_wrong
from app.base.trouble import Trouble
from app.compat.machine import chunk_curve, verdicts
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.engine.models.catalog import CATALOG
from app.engine.models.chosen import parse_choice, read_choice
from app.engine.models.downloads import Downloads
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text import voices
from app.ui.single_instance import Instance
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import read_allowance
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from app.ui.state.settings_schema import SETTINGS, PaintValues, SpeakValues
from app.ui.tabs import paint, speak
from app.ui.window import build
from tests.support.guests import desk_at
from tests.support.settings_damage import GOOD, WHOLE, WRONG, damage, without


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    notices.take_all()
    yield
    notices.take_all()


def read_all(file: Path) -> dict[str, Any]:
    kept = Settings(file)
    return {name: kept.get(name) for name in GOOD if kept.get(name) is not None}


def test_good_settings_are_read_as_they_are_and_unknown_ones_stay(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    text = json.dumps({**GOOD, "of a newer Hearth": [1]})
    file.write_text(text)
    assert read_all(file) == GOOD and file.read_text() == text and not notices.list_notices()
    assert Settings(file).get("of a newer Hearth") == [1]


@pytest.mark.parametrize("content", WHOLE, ids=range(len(WHOLE)))
def test_a_file_that_is_no_settings_is_put_aside(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    assert read_all(file) == {} and read_choice(home(tmp_path)) == parse_choice(None)
    (aside,) = tmp_path.glob("settings.json.*.damaged")
    assert aside.read_bytes() == content and [str(aside) in str(each) for each in notices.list_notices()] == [True]
    Settings(file).put({"greeted": True})
    assert read_all(file) == {"greeted": True}


def test_a_terabyte_in_place_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "settings.json").touch()
    os.truncate(tmp_path / "settings.json", 1 << 40)
    assert read_all(tmp_path / "settings.json") == {} and "1099511627776 bytes" in str(notices.list_notices()[0])


@pytest.mark.parametrize("make", [Path.mkdir, *([] if sys.platform == "win32" else [os.mkfifo])])
def test_something_else_in_place_of_the_settings(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "settings.json")
    Settings(tmp_path / "settings.json").put({"greeted": True})
    assert read_all(tmp_path / "settings.json") == {"greeted": True}


@pytest.mark.parametrize(("where", "wrong"), WRONG, ids=[".".join(where) for where, _ in WRONG])
def test_a_wrong_value_falls_back_alone(tmp_path: Path, where: tuple[str, ...], wrong: Any) -> None:
    file = tmp_path / "settings.json"
    text = json.dumps(damage(where, wrong))
    file.write_text(text)
    expected = without(where)
    if where == ("models",) and isinstance(wrong, list):
        expected = damage(where, [])  # only the wrong ones of a list go
    assert read_all(file) == expected
    (aside,) = tmp_path.glob("settings.json.*.damaged")
    (told,) = notices.list_notices()
    assert aside.read_text() == text and ".".join(where) in str(told) and str(aside) in str(told)
    assert read_all(file) and len(notices.list_notices()) == 1, "told once"
    kept = Settings(file)
    parse_choice(kept.get("choice"))
    read_allowance(kept.get("visitors", {}))


def test_a_wrong_value_takes_no_other_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.json"
    where, wrong = WRONG[0]
    text = json.dumps(damage(where, wrong))
    file.write_text(text)

    def refuse(path: Path, *_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", refuse)
        assert read_all(file) == without(where)
    assert [*tmp_path.iterdir()] == [file] and file.read_text() == text
    assert read_all(file) == without(where) and len([*tmp_path.glob("*.damaged")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("where", "wrong"), WRONG[::10])
def test_a_window_is_built_of_damaged_settings(tmp_path: Path, where: tuple[str, ...], wrong: Any) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(damage(where, wrong)))
    with desk_at(tmp_path) as desk:
        build(desk).close(verbose=False)
        desk.machine.read_choice(OWNER)
        assert desk.models.list_all()


def test_the_schema_has_the_fields_of_the_tabs(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        found = fields_of(desk)
    assert found == (set(SpeakValues.__annotations__), set(PaintValues.__annotations__))


def fields_of(desk: Desk) -> tuple[set[str], set[str]]:
    import gradio as gr

    with gr.Blocks(analytics_enabled=False) as window:
        saved = tuple(set(module.build_fields(desk, {}, False).saved) for module in (speak, paint))
    window.close(verbose=False)
    return saved[0], saved[1]


@settings(max_examples=30, deadline=None)
@given(any_of.recursive(
    any_of.none() | any_of.booleans() | any_of.integers() | any_of.floats() | any_of.text(max_size=5) | any_of.sampled_from([*GOOD, *GOOD["speak"]]),
    lambda inner: any_of.lists(inner, max_size=4) | any_of.dictionaries(any_of.sampled_from([*GOOD, *GOOD["speak"], *GOOD["choice"], "x"]), inner, max_size=4),
))  # fmt: skip
def test_whatever_json_holds_ends_as_settings(value: Any) -> None:
    everywhere = {"speak": value, "choice": value, "presets": {"speak": value}, "visitors": value, "drafts": value}
    values = json.loads(json.dumps(everywhere))
    drop_wrong(SETTINGS, values)
    assert drop_wrong(SETTINGS, values) == []
    parse_choice(values.get("choice"))
    read_allowance(values.get("visitors", {}))


HERE = Hardware(kind="cpu", system="linux", name="a machine", torch="2.13.0")
SEEN = Verdict(Subject("rung", "a/b"), False, 0.0, 1.0, "words", RunFailure("memory", 3))


NO_VERDICTS: tuple[Any, ...] = (
    5, {}, None, "x", {"subject": "no colon", "passed": True}, {"subject": "row:x", "passed": "yes"},
    {"subject": "rung:a/c", "passed": True, "seen": {"fault": "odd"}},
)  # fmt: skip


@pytest.mark.parametrize("wrong", NO_VERDICTS)
def test_a_damaged_verdict_goes_alone(tmp_path: Path, wrong: Any) -> None:
    good = [replace(SEEN, subject=Subject("row", name)) for name in ("first", "last")]
    path = verdicts.store(tmp_path, HERE, {each.subject: each for each in good})
    stored = json.loads(path.read_text())
    stored["verdicts"].insert(1, wrong)
    path.write_text(json.dumps(stored))
    found = verdicts.load(tmp_path, HERE)
    assert [found[each.subject] for each in good] == good
    assert len(notices.list_notices()) == 1 and len(list(tmp_path.glob("*.damaged"))) == 1
    assert verdicts.load(tmp_path, HERE) == found and len(notices.list_notices()) == 1


@pytest.mark.parametrize("content", [*WHOLE[:8], b'{"points": [{"chunk": "x"}], "model": 4}', b'{"points": 7}', b'{"name": [1]}'])
def test_no_damage_to_any_other_file_raises(tmp_path: Path, content: bytes) -> None:
    place = home(tmp_path).create()
    model = CATALOG[0]
    downloads = Downloads(place)
    files = [
        verdicts.verdict_file(place.verdicts, HERE), chunk_curve.curve_file(place, model.id), downloads.record_path(model.id),
        place.voices / "a.json", place.scratch / "part-000.json", place.root / "open.json",
    ]  # fmt: skip
    (place.voices / "a.wav").write_bytes(b"no sound")
    (place.scratch / "part-000.wav").write_bytes(b"no sound")
    for as_folder in (False, True):
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.mkdir() if as_folder else file.write_bytes(content)
        assert verdicts.load(place.verdicts, HERE) == {} and chunk_curve.read_curve(place, model.id) is None
        downloads.recall(CATALOG)
        assert voices.list_voices(place) == () and voices.find_speaker(place.voices / "a.wav") == ""
        assert spoken_parts.find(place.scratch / "part-000.wav") is None
        with pytest.raises(Trouble, match="process 0"):
            Instance(place.root).find_running(wait_s=0)
