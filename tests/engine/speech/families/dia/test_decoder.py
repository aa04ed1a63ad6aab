"""Test Dia's decode loop and codec: same tokens and sound as transformers, also in pieces and resumed after an error."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import DacModel, DiaFeatureExtractor, DiaForConditionalGeneration, DiaProcessor, DiaTokenizer

from app.compat.attention.seam import applied
from app.compat.planning.types import Plan
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.dia.codec import MOST_FRAMES, Codec
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from tests.support import speech_fixtures, tiny_voices
from tests.support.combinations import combine
from tests.support.speech_fixtures import SHAPES, TEXT, dia_of, find_result, run

pytestmark = pytest.mark.long

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers


def transformers_tokens(folder: Path, shape: tiny_voices.Shape, prompt: sound.Samples | None, rows: int, **how: Any) -> Any:
    """Run plain transformers as documented: processor, then generate()."""
    model = DiaForConditionalGeneration.from_pretrained(folder).eval()
    codec = DacModel.from_pretrained(folder / "codec").eval()
    hop = int(np.prod(shape.ratios))
    extractor = DiaFeatureExtractor(sampling_rate=shape.rate, hop_length=hop)
    processor = DiaProcessor(extractor, DiaTokenizer.from_pretrained(folder), codec)
    special = {"eos_token_id": shape.codes, "pad_token_id": shape.codes + 1, "bos_token_id": shape.codes + 2}
    inputs = processor(
        text=[TEXT],
        audio=prompt,
        return_tensors="pt",
        audio_kwargs={"delay_pattern": list(shape.delays), "sampling_rate": shape.rate} | special,
    )
    torch.manual_seed(11)
    with torch.inference_mode():
        rows_out = model.generate(**inputs, max_new_tokens=rows, decoder_start_token_id=shape.codes + 2, **special, **how)
        kwargs: Any = {"delay_pattern": list(shape.delays), "bos_token_id": shape.codes + 2, "pad_token_id": shape.codes + 1}
        heard = processor.get_audio_prompt_len(inputs["decoder_attention_mask"], audio_kwargs=kwargs) if prompt is not None else None
        sounds = processor.batch_decode(rows_out, audio_prompt_len=heard, audio_kwargs=kwargs)
    return rows_out[0], sounds[0].numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "with_prompt", "drawn"), combine(SHAPES, (False, True), ((0.0, 3.0), (1.3, 3.0), (1.8, 1.0))))
def test_tokens_and_sound_equal_plain_transformers(
    folders: dict[str, Path], name: str, with_prompt: bool, drawn: tuple[float, float], plan: Plan
) -> None:
    """Greedy, sampled and unguided, with a prompt and without."""
    temperature, guidance = drawn
    folder, shape = folders[name], SHAPES[name]
    rng = np.random.default_rng(1)
    prompt = (rng.standard_normal(shape.rate // 2 + 17) * 0.1).astype(np.float32) if with_prompt else None
    how: dict[str, Any] = {"do_sample": temperature > 0, "guidance_scale": guidance, "top_k": 45}
    if temperature:
        how |= {"temperature": temperature, "top_p": 0.95}
    wanted, wanted_sound = transformers_tokens(folder, shape, prompt, 80, **how)

    model = DiaForConditionalGeneration.from_pretrained(folder).eval()
    codec = Codec(DacModel.from_pretrained(folder / "codec").eval(), "cpu", torch.float32)
    ids = torch.tensor(DiaTokenizer.from_pretrained(folder)(TEXT)["input_ids"])
    heard = None if prompt is None else codec.encode(prompt)
    with applied(plan) as seam:
        decoding = Decoding(model, "cpu", PartInput(ids, heard, Sampling(guidance, temperature, 0.95, 45), 11, 80))
        while not decoding.done:
            decoding.step()
        assert seam.calls > 0
    assert torch.equal(decoding.rows, wanted)
    ours = codec.decode(decoding.get_codes(0, decoding.frames))
    assert ours.shape == wanted_sound.shape
    assert np.abs(ours - wanted_sound).max() < 2e-6


def test_a_seed_is_all_that_chance_is(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()

    def rows(seed: int, disturbed: bool = False) -> torch.Tensor:
        decoding = Decoding(model, "cpu", PartInput(torch.tensor([1, 72, 105]), None, Sampling(), seed, 40))
        while not decoding.done:
            if disturbed:
                torch.rand(3)  # somebody else draws from torch's own generator meanwhile
            decoding.step()
        return decoding.rows

    assert torch.equal(rows(3), rows(3, disturbed=True))
    assert not torch.equal(rows(3), rows(4))


def test_max_frames_counts_the_delay_as_transformers_does(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    decoding = Decoding(model, "cpu", PartInput(torch.tensor([1, 72]), None, Sampling(), 0, 50))
    while not decoding.done:
        decoding.step()
    assert (decoding.made, decoding.frames, decoding.cut_off) == (50, 50 - 16, True)


def test_a_part_that_ends_by_itself_is_not_cut_off(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    given = PartInput(torch.tensor([1, 72]), None, Sampling(), 0, 50)
    first = Decoding(model, "cpu", given)
    for _ in range(20):
        first.step()
    decoding = Decoding(model, "cpu", given, replace(first.get_state(0), ended=first.length))
    while not decoding.done:
        decoding.step()
    assert (decoding.frames, decoding.cut_off) == (20, False)


@pytest.mark.parametrize("guidance", [1.0, 3.0])
@pytest.mark.parametrize("least", [0, 7])
def test_it_does_not_end_before_the_least_frames(
    folders: dict[str, Path], guidance: float, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    compute = Decoding.compute_logits

    def ending(decoding: Decoding) -> torch.Tensor:
        logits = compute(decoding)
        logits[:, 0, model.config.decoder_config.eos_token_id] = 100.0
        return logits

    monkeypatch.setattr(Decoding, "compute_logits", ending)
    decoding = Decoding(model, "cpu", PartInput(torch.tensor([1, 72]), None, Sampling(guidance), 0, 50, least))
    while not decoding.done:
        decoding.step()
    assert (decoding.frames, decoding.cut_off) == (least, False)


@pytest.mark.slow
def test_going_on_makes_the_same_rows(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["starter"]).eval()
    for broken_off in (1, 3, 20, 47, 49):
        whole, first = (Decoding(model, "cpu", PartInput(torch.tensor([1, 72]), None, Sampling(), 0, 50)) for _ in range(2))
        for _ in range(broken_off):
            first.step()
        second = Decoding(model, "cpu", PartInput(torch.tensor([1, 72]), None, Sampling(), 99, 50), first.get_state(0))
        for each in (whole, second):
            while not each.done:
                each.step()
        assert torch.equal(whole.rows, second.rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_sound_in_pieces_equals_the_whole(folders: dict[str, Path], name: str) -> None:
    model = DacModel.from_pretrained(folders[name] / "codec").eval()
    codec = Codec(model, "cpu", torch.float32)
    codes = torch.randint(0, SHAPES[name].codes, (300, len(SHAPES[name].delays)))
    with torch.inference_mode():
        whole = model.decode(audio_codes=codes.T[None]).audio_values[0].numpy()
    assert np.abs(codec.decode(codes) - whole).max() < 2e-6
    pieces = [codec.decode(codes[: last + 12], first, last) for first, last in itertools.pairwise((0, 1, 30, 77, 210))]
    pieces.append(codec.decode(codes, 210))
    assert np.abs(np.concatenate(pieces) - whole).max() < 2e-6
    short = codec.decode(codes[: 100 + 4], 0, 100)  # with too little overlap it would not be
    assert np.abs(short - whole[: len(short)]).max() > 1e-4


def test_a_long_clip_is_heard_on_the_processor_where_metal_would_fail(folders: dict[str, Path]) -> None:
    model = DacModel.from_pretrained(folders["starter"] / "codec").eval()
    places: list[str] = []
    model.to = places.append  # no Metal is here to go to
    codec = Codec(model, "mps", torch.float32)
    clip = np.random.default_rng(3).normal(size=(MOST_FRAMES + 1) * codec.hop).astype(np.float32)
    assert torch.equal(codec.encode(clip), Codec(model, "cpu", torch.float32).encode(clip))
    assert places == ["cpu", "mps"], "what follows is decoded on the device again"


def test_broken_numbers_are_noticed_and_a_fallback_goes_on_from_there(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    whole = find_result(run(loader.load(folders["dia"], plan), tmp_path / "whole", max_frames=140))
    speaker = loader.load(folders["dia"], plan)
    dense = dia_of(speaker).model.logits_dense
    made = itertools.count()

    def breaking(hidden: torch.Tensor) -> torch.Tensor:
        return torch.full_like(plain(hidden), torch.nan) if next(made) == 100 else plain(hidden)

    plain, dense.forward = dense.forward, breaking
    with pytest.raises(NumbersBroke) as caught:
        run(speaker, tmp_path / "broken", max_frames=140)
    assert (caught.value.step, caught.value.where) == (100, "speech")
    before = next(made)
    mended = find_result(run(speaker, tmp_path / "broken", max_frames=140))
    assert next(made) - before - 1 == 40  # the hundred rows before were not made again
    assert np.array_equal(sound.read(mended)[0], sound.read(whole)[0])
