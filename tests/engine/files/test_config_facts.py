"""Every number, list and word of a model's settings is in its range, or the model cannot be used."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.files.config_facts import FACTS, SHOWN_MOST, judge, read_config
from app.trouble import Trouble
from tests.support.places import TOP


def write(folder: Path, values: Any) -> Path:
    (folder / "config.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return folder


@pytest.mark.parametrize("field", FACTS)
def test_what_is_out_of_a_facts_range_is_refused_wherever_it_stands(field: str, tmp_path: Path) -> None:
    fact = FACTS[field]
    wrong: list[Any] = [{"a": 1}, True, [], [[[1]]], [1] * (fact.listed + 1)]
    if fact.kind is str:
        wrong += [5, "x" * 201]
    else:
        wrong += ["8", fact.most * 2, *([fact.least - 1] if fact.least > -1e300 else [])]
    for value in wrong:
        for values in ({field: value}, {"inner": [{"deeper": {field: value}}]}):
            with pytest.raises(Trouble, match=f"its config.json says {field} "):
                read_config(write(tmp_path, values), "config.json")
    least = "" if fact.kind is str else max(fact.least, -5)
    for value in (None, least, *([[least]] if fact.listed else [])):
        assert read_config(write(tmp_path, {field: value}), "config.json") == {field: value}


@pytest.mark.parametrize(
    "values",
    [{"x": 10**40}, {"x": -1e40}, {"x": ["a", {"b": [1e35]}]}, '{"x": Infinity}', '{"x": NaN}', '{"x": 1e999}', '{"x": 1, "x": 2}', "[" * 20 + "]" * 20,
     '{"sample_size": 64, "sample_size": 8}', '{"x": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_what_has_no_range_of_its_own_is_a_plain_number_that_stands_once(values: Any, tmp_path: Path) -> None:
    with pytest.raises((Trouble, ValueError)):
        read_config(write(tmp_path, values), "config.json")


def test_real_settings_are_in_range(tmp_path: Path) -> None:
    for path in (TOP / "assets" / "starter").rglob("*config.json"):
        read_config(path.parent, path.name)
    read_config(TOP / "assets" / "starter" / "voice", "starter.json")
    judge({
        "model_max_length": 1000000000000000019884624838656, "transformer_layers_per_block": [1, 2, 10], "attention_head_dim": [5, 10, 20],
        "reverse_transformer_layers_per_block": [[4, 4, 10], [2, 1, 1], 1], "rope_theta": 5000000, "sample_size": [128, 128], "num_attention_heads": None,
        "delay_pattern": [0, 8, 9, 10, 11, 12, 13, 14, 15], "downsampling_ratios": [2, 4, 8, 8], "eos_token_id": [151645, 151643], "axes_dims": [32, 48, 48],
    })  # fmt: skip
    assert read_config(write(tmp_path, '{"lambda_min_clipped": -Infinity}'), "config.json")  # of DPM-Solver


def test_what_the_libraries_write_by_default_is_in_range(tmp_path: Path) -> None:
    """Each class that a family's part may have, each scheduler, and the configs of all text encoders and of Dia and its codec."""
    import diffusers
    import transformers

    from app.engine.pipelines.families import FAMILIES

    named = {kind for family in FAMILIES.values() for kinds in family.parts.values() for kind in kinds if hasattr(diffusers, kind)}
    named |= {name for name in dir(diffusers) if name.endswith("Scheduler") and isinstance(getattr(diffusers, name, None), type)}
    assert {"Flux2Transformer2DModel", "AutoencoderKLFlux2", "FlowMatchEulerDiscreteScheduler"} < named and len(named) > 30
    for name in sorted(named):
        taken = inspect.signature(getattr(diffusers, name).__init__).parameters.values()
        values = {each.name: each.default for each in taken if each.default is not inspect.Parameter.empty}
        read_config(write(tmp_path, json.dumps(values, default=str)), "config.json")
    for config in ("CLIPTextConfig", "T5Config", "Qwen3Config", "DiaConfig", "DacConfig"):
        values = getattr(transformers, config)().to_dict()
        assert len(values) > 10
        read_config(write(tmp_path, json.dumps(values)), "config.json")


def test_the_sentence_shows_a_foreign_value_short_and_in_plain_letters(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as told:
        read_config(write(tmp_path, {"name": "\x1b[2J\u202e" + "x" * 5000}), "config.json")
    value = dict(told.value.sentence.values)["value"]
    assert isinstance(value, str) and value.isprintable() and len(value) <= SHOWN_MOST + 1


def test_no_pipe_is_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(OSError, match="not a regular file"):
        read_config(tmp_path, "config.json")
