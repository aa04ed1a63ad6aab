"""Load voices from folders: moved, with a separate codec, broken, offloaded, in every precision, and unloaded."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.base.trouble import Trouble
from app.compat.planning.types import Plan, Precision
from app.engine.speech.families.dia import voice as dia
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from tests.support import speech_fixtures
from tests.support.separate_memory import separate_memory
from tests.support.speech_fixtures import copy_voice, dia_of, find_result, run

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers


def test_a_folder_may_lie_anywhere_and_its_codec_apart(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    folder = copy_voice(folders["dia"], tmp_path / "there")
    (folder / "processor_config.json").write_text(json.dumps({"audio_tokenizer": {"name_or_path": "/nowhere/dac"}}))
    shutil.move(folder / "codec", tmp_path / "dac")
    with pytest.raises(Trouble, match="codec"):
        loader.load(folder, plan)
    speaker = loader.load(folder, plan, {"codec": tmp_path / "dac"})
    assert speaker.limits.rate == 44100
    find_result(run(speaker, tmp_path / "job"))


def test_what_cannot_be_loaded_is_told(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    for number, (name, change) in enumerate(
        {
            "model.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-1000]),
            "codec/model.safetensors": lambda path: path.write_bytes(path.read_bytes()[:5]),
            "config.json": lambda path: path.write_text('{"model_type": "bert"}'),
            "codec/config.json": lambda path: path.write_text("{"),
        }.items()
    ):
        folder = copy_voice(folders["dia"], tmp_path / str(number))
        change(folder / name)
        with pytest.raises(Trouble):
            loader.load(folder, plan)
    folder = copy_voice(folders["dia"], tmp_path / "pickled")
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(Trouble):
        loader.load(folder, plan)
    with pytest.raises(Trouble):
        loader.load(tmp_path / "nowhere", plan)


@pytest.mark.slow
@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_offloaded_voices_say_the_same(
    folders: dict[str, Path], speakers: dict[str, loader.Speaker], plan: Plan, tmp_path: Path, offload: Any
) -> None:
    """The device is the CPU here; the test shows that each layer finds its weights."""
    speaker = loader.load(folders["dia"], dataclasses.replace(plan, offload=offload))
    plain = run(speakers["dia"], tmp_path / "plain")
    assert np.array_equal(sound.read(find_result(plain))[0], sound.read(find_result(run(speaker, tmp_path / offload)))[0])


def test_packed_weights_are_not_copied_back_either() -> None:
    with separate_memory() as memory, torch.inference_mode():
        layer = dia._send_packed(torch.nn.Linear(64, 64).requires_grad_(False), "cuda")
        for _ in range(2):
            layer(torch.ones(1, 64, device="cuda"))
        assert memory.returned_bytes == 0 and memory.sent_bytes >= 2 * 64 * 64 * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("storage", "compute", "linear"),
    [("bfloat16", "bfloat16", None), ("float16", "float16", None), ("float16", "float32", None), ("float16", "float32", "float16")],
)
def test_every_precision_speaks(folders: dict[str, Path], plan: Plan, tmp_path: Path, storage: Any, compute: Any, linear: Any) -> None:
    precision = (Precision("model", "speech", storage, compute, "cpu", linear), Precision("codec", "codec", compute, compute, "cpu"))
    speaker = loader.load(folders["dia"], dataclasses.replace(plan, precision=precision))
    kept = {parameter.dtype for parameter in dia_of(speaker).model.model.decoder.layers[0].mlp.parameters()}
    assert kept == {getattr(torch, storage)}
    used: set[torch.dtype] = set()
    projection = dia_of(speaker).model.model.decoder.layers[0].self_attention.o_proj
    projection.register_forward_hook(lambda module, given, result: used.add(result.dtype))
    find_result(run(speaker, tmp_path / "job"))
    assert used == {getattr(torch, compute)}


def test_closing_gives_the_weights_back(folders: dict[str, Path], plan: Plan) -> None:
    import gc
    import weakref

    speaker = loader.load(folders["dia"], plan)
    weights = weakref.ref(dia_of(speaker).model)
    speaker.close()
    gc.collect()
    assert weights() is None
