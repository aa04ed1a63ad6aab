"""VibeVoice says the sound that transformers' own generate() makes of the same seed, and goes on with a stopped part as if it had not been stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LogitsProcessorList, VibeVoiceAcousticTokenizerFeatureExtractor, VibeVoiceForConditionalGeneration
from transformers.generation.logits_process import UnbatchedClassifierFreeGuidanceLogitsProcessor

from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.planning.types import Plan, Quantised
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, PartDone, Sound, Stopped
from app.engine.jobs.request import SpeechRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.vibevoice.diffusion import plan_steps
from app.engine.speech.families.vibevoice.facts import read_manner
from app.engine.speech.families.vibevoice.part import Part
from app.engine.speech.families.vibevoice.prompt import prepare_text
from app.engine.speech.families.vibevoice.voice import VibeVoice
from app.engine.speech.family import PartTask, VoiceContext
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from app.engine.speech.text.turns import ScriptPart, Turn
from tests.support import speech_fixtures
from tests.support.speech_fixtures import PLAIN, find_result, run
from tests.support.tiny_vibevoices import BEGIN, CLOSE, FRAME, LATENT, NOISE, save_as_on_the_hub, save_vibevoice

plan = speech_fixtures.plan
EXTRACTOR: Any = VibeVoiceAcousticTokenizerFeatureExtractor
HELLO, CUT_OFF = "Hello there.", 15
TEXT = "This is the first sentence, which is quite long and takes a while to say, as it should. Here comes another, about as long. " * 4


@cache
def _save(folder: Path, seed: int) -> Path:
    return save_vibevoice(folder / str(seed), seed=seed)


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vibevoices")


@pytest.fixture(scope="module")
def endless(top: Path) -> Path:
    return save_vibevoice(top / "endless", endless=True)


@pytest.fixture(scope="module")
def speaker(endless: Path, plan: Plan) -> loader.Speaker:
    return loader.load(endless, plan)


def voice_of(speaker: loader.Speaker) -> VibeVoice:
    assert isinstance(speaker.voice, VibeVoice)
    return speaker.voice


def make_task(said: str, frames: torch.Tensor | None = None, guidance: float = 1.3) -> PartTask:
    context = VoiceContext(frames, ()) if frames is not None else None
    return PartTask(0, ScriptPart((Turn(1, said),), 2.0), context, guidance, 5, None, (), "")


def make(voice: VibeVoice, task: PartTask, steps: int = CUT_OFF, seed: int = 7) -> Part:
    part = voice.begin(task, seed, steps / 7.5, None)
    while not part.done:
        part.step()
    return part


def make_clip(seconds: float = 0.5) -> sound.Samples:
    return (0.2 * np.sin(np.arange(round(seconds * 24_000)) / 20)).astype(np.float32)


class Plain(VibeVoiceForConditionalGeneration):
    """transformers' own guidance for words would be added to that of the frames, as both are set by one number: its makers' program has none."""

    def _get_logits_processor(self, *given: Any, **named: Any) -> Any:
        found = super()._get_logits_processor(*given, **named)
        kept = [each for each in found if not isinstance(each, UnbatchedClassifierFreeGuidanceLogitsProcessor)]
        assert len(kept) == 1 and len(found) <= 2
        return LogitsProcessorList(kept)


@cache
def load_plain(folder: Path) -> Any:
    """As transformers' documentation does."""
    return Plain.from_pretrained(folder, local_files_only=True)


def generate(folder: Path, voice: VibeVoice, said: str, clip: sound.Samples | None = None, guidance: float = 1.3) -> Any:
    system = (
        " Transform the text provided by various speakers into speech output, utilizing the distinct voice of each respective speaker.\n"
    )
    given: Any = {}
    if clip is not None:
        given = EXTRACTOR()(clip, sampling_rate=24_000)
        system += f" Voice input:\n Speaker 0:{BEGIN}{FRAME * (given['input_values'].shape[-1] // 3200)}{CLOSE}\n"
    ids = torch.tensor([voice.tokenizer.encode(f"{system} Text input:\n Speaker 0: {said}\n Speech output:\n{BEGIN}")])
    torch.manual_seed(7)
    return load_plain(folder).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=CUT_OFF,
        guidance_scale=guidance,
        sample=False,
        return_dict_in_generate=True,
        **given,
    )


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("seed", [0, pytest.param(8, marks=pytest.mark.slow), pytest.param(15, marks=pytest.mark.slow)])
def test_it_says_what_generate_says(top: Path, plan: Plan, seed: int, heard: bool) -> None:
    """They end by themselves; some begin anew within a part, or close before they end."""
    folder = _save(top, seed)
    voice, clip = voice_of(loader.load(folder, plan)), make_clip() if heard else None
    frames = voice.codec.encode(clip) if clip is not None else None
    right = generate(folder, voice, HELLO, clip)
    expected = right.audio[0].flatten()
    for _ in range(2):  # first it reads the voice, then it remembers
        part = make(voice, make_task(HELLO, frames))
        found = part.get_codes(0, part.frames).flatten()
        signs = [voice.parts.signs.frame if isinstance(row, str) else row for row in part.save(0)["rows"]]
        assert signs == right.sequences[0, -len(signs) :].tolist() and part.frames > 1
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3 * float(expected.std()))
    assert len(voice.heard) == 1


def test_guidance_and_heads_with_keys_of_their_own(plan: Plan, tmp_path: Path) -> None:
    folder = save_vibevoice(tmp_path / "other", endless=True, steps=20, num_key_value_heads=4)
    voice = voice_of(loader.load(folder, plan))
    parts = [make(voice, make_task(HELLO, guidance=guidance), 6) for guidance in (1.0, 3.0)]
    assert not torch.allclose(parts[0].get_codes(0, 1), parts[1].get_codes(0, 1), atol=1e-3)
    right = generate(folder, voice, HELLO, guidance=3.0)
    found = parts[1].get_codes(0, 6).flatten()
    torch.testing.assert_close(found, right.audio[0].flatten()[: len(found)], rtol=1e-2, atol=1e-2)


def test_signs_that_are_written_as_they_are_read(plan: Plan, tmp_path: Path) -> None:
    """As the published model's: it has no head of its own for words."""
    parts = voice_of(loader.load(save_vibevoice(tmp_path / "tied", tie_word_embeddings=True), plan)).parts
    assert parts.words.abs().max() > 0 and torch.equal(parts.words, parts.embed(parts.signs.all))


@pytest.mark.parametrize("steps", [1, 2, 10, 20])
def test_the_solver_is_that_of_diffusers(steps: int) -> None:
    from diffusers import DPMSolverMultistepScheduler

    solver: Any = DPMSolverMultistepScheduler(**NOISE)
    solver.set_timesteps(steps)
    made = torch.Generator().manual_seed(3)
    right = sample = torch.randn(1, LATENT, generator=made)
    before = torch.zeros_like(sample)
    planned = plan_steps(steps, 1000)
    assert [each.time for each in planned] == solver.timesteps.tolist()
    for step, time in zip(planned, solver.timesteps, strict=True):
        flow = torch.randn(1, LATENT, generator=made)
        right = solver.step(flow, time, right).prev_sample
        clean = step.sample * sample + step.flow * flow
        sample, before = step.kept * sample + step.clean * clean + step.before * before, clean
        torch.testing.assert_close(sample, right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("quantised", ["int8", "int4"])
def test_packed_in_few_bits_it_says_nearly_the_same(endless: Path, speaker: loader.Speaker, quantised: Quantised, plan: Plan) -> None:
    whole, packed = voice_of(speaker), voice_of(loader.load(endless, replace(plan, quantised=quantised)))
    layers = dict(packed.parts.model.named_modules())
    whole_ones = {name for name, each in layers.items() if isinstance(each, torch.nn.Linear)}
    assert whole_ones and not any(".layers." in name for name in whole_ones)
    deep = [
        each
        for name, each in layers.items()
        if ".linear" in name and name.startswith(("audio_tower.decoder.stem", "audio_tower.encoder.conv_layers.5"))
    ]
    assert {type(each).__name__ for each in deep} == {"Int8Linear"}, "what makes sound keeps 8 bits"
    frames = whole.codec.encode(make_clip())
    right, found = (make(each, make_task(HELLO, frames), 1)._rows[0] for each in (whole, packed))
    assert isinstance(right, torch.Tensor) and isinstance(found, torch.Tensor)
    assert 1e-7 < float((found - right).square().mean() / right.square().mean()) < {"int8": 0.02, "int4": 0.6}[quantised]


def test_in_half_precision_it_says_nearly_the_same(endless: Path, speaker: loader.Speaker, plan: Plan) -> None:
    halves = tuple(replace(each, storage="bfloat16", compute="bfloat16") if each.role == "speech" else each for each in plan.precision)
    voices = voice_of(speaker), voice_of(loader.load(endless, replace(plan, precision=halves)))
    right, found = (make(each, make_task(HELLO), 1).get_codes(0, 1) for each in voices)
    upper = voices[1].parts.model.audio_tower.decoder.conv_layers[3].stage[0].ffn.linear1
    assert upper.weight.dtype == torch.float32, "a processor is slow with many rows of halves"
    assert found.dtype == torch.float32 and 1e-6 < float((found - right).square().mean() / right.square().mean()) < 0.05


def test_it_is_the_same_in_the_layout_of_the_hub(speaker: loader.Speaker, plan: Plan, tmp_path: Path) -> None:
    folder = save_as_on_the_hub(tmp_path / "voice", endless=True)
    assert len([*folder.glob("model-*.safetensors")]) > 1
    found = voice_of(loader.load(folder, plan))
    assert not found.notes
    here, there = (make(voice, make_task(HELLO), 3).get_codes(0, 3) for voice in (voice_of(speaker), found))
    torch.testing.assert_close(here, there, rtol=1e-4, atol=1e-3)  # as weights lie otherwise in memory


def test_a_recording_is_heard_as_transformers_hears_it(endless: Path, speaker: loader.Speaker) -> None:
    for clip in (make_clip(0.5), 3 * make_clip(0.3), np.pad(make_clip(0.2), (0, 17)), np.zeros(4000, np.float32)):
        given = EXTRACTOR()(clip, sampling_rate=24_000)
        with torch.inference_mode():
            right = load_plain(endless).model.get_audio_features(**given, sample=False).last_hidden_state
        torch.testing.assert_close(voice_of(speaker).codec.encode(clip), right, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_sound_in_pieces_is_that_of_the_whole(speaker: loader.Speaker) -> None:
    voice = voice_of(speaker)
    codes = make(voice, make_task(HELLO), 5).get_codes(0, 5)
    pieces = [voice.codec.decode(codes[:last], first, last) for first, last in pairwise([0, 1, 3, 5])]
    assert np.array_equal(np.concatenate(pieces), voice.codec.decode(codes)) and len(codes.flatten()) == 5 * 3200


def test_another_seed_says_it_otherwise(speaker: loader.Speaker) -> None:
    first, again, other = (make(voice_of(speaker), make_task(HELLO), 2, seed).get_codes(0, 2) for seed in (7, 7, 8))
    assert torch.equal(first, again) and not torch.allclose(first, other, atol=1e-2)


def test_only_its_own_voice_is_heard(speaker: loader.Speaker) -> None:
    """Of an earlier part, if the speaker spoke there."""
    voice = voice_of(speaker)
    frames = voice.codec.encode(make_clip())
    said = [
        make(voice, replace(make_task(HELLO), context=context), 2).get_codes(0, 2)
        for context in (None, VoiceContext(frames, (Turn(2, "Hi."),)), VoiceContext(frames, (Turn(1, "Hi."),)), VoiceContext(frames, ()))
    ]
    assert torch.equal(said[0], said[1]) and torch.equal(said[2], said[3]) and not torch.equal(said[0], said[2])


def speak(speaker: loader.Speaker, job: Path, **more: Any) -> list[Event]:
    return run(speaker, job, **{"text": TEXT, "max_frames": 17, **more})


@pytest.mark.slow
def test_stopped_anywhere_it_ends_as_if_it_had_not_been(speaker: loader.Speaker, tmp_path: Path) -> None:
    whole, rate = sound.read(find_result(speak(speaker, tmp_path / "whole")))
    assert rate == 24_000 and whole.std() > 0.001
    control = Control()

    def stop_after(count: int) -> Iterator[Event]:
        with applied(PLAIN) as seam:
            for event in speaker.run(SpeechRequest(TEXT, seed=5, max_frames=17), control, seam, tmp_path / "job"):
                yield event
                count -= isinstance(event, Sound)
                if count == 0:
                    control.stop()

    assert isinstance(list(stop_after(2))[-1], Stopped)
    events = speak(speaker, tmp_path / "job")
    assert next(each for each in events if isinstance(each, Sound)).start_s > 0, "what was heard is not sent again"
    assert np.array_equal(sound.read(find_result(events))[0], whole)


def test_one_part_is_redone_and_the_others_stay(speaker: loader.Speaker, tmp_path: Path) -> None:
    first = [each for each in speak(speaker, tmp_path / "first", max_frames=17) if isinstance(each, PartDone)]
    keep = tuple(part.path for part in first)
    events = speak(speaker, tmp_path / "second", max_frames=17, seed=9, only_parts=(1,), keep=keep)
    second = [each for each in events if isinstance(each, PartDone)]
    same = {part.index: Path(part.path).read_bytes() == Path(first[part.index].path).read_bytes() for part in second}
    assert len(first) > 1 and same == {index: index != 1 for index in range(len(first))}


@pytest.mark.parametrize("seed", [0, 15])
def test_any_other_state_begins_anew(top: Path, plan: Plan, seed: int) -> None:
    voice, task = voice_of(loader.load(_save(top, seed), plan)), make_task(HELLO)
    part = voice.begin(task, 7, 2.0, None)
    for _ in range(3):
        part.step()
    right = json.loads(json.dumps(part.save(1)))
    assert {type(each) for each in right["rows"]} == {str, int}
    gone_on = voice.begin(task, 7, 2.0, right)
    for each in (part, gone_on):
        while not each.done:
            each.step()
    assert torch.equal(gone_on.get_codes(0, part.frames), part.get_codes(0, part.frames)) and part.save(0) == gone_on.save(0)
    row, signs = right["rows"][0], voice.parts.signs
    cases: tuple[dict[str, Any], ...] = (
        {"rows": [row] * 1000}, {"rows": [row[:-8]]}, {"rows": [5]}, {"rows": [signs.frame]}, {"rows": [signs.end, row]}, {"rows": ["AA=="]},
        {"rows": [True]}, {"rows": ["AADAfw==" * LATENT]}, {"rows": "no"}, {"rows": None}, {"rows": []}, {"given": 3}, {"given": "1"}, {"given": -1},
    )  # fmt: skip
    for wrong in cases:
        assert voice.begin(task, 7, 2.0, right | wrong).made == 0, wrong


@pytest.mark.parametrize("name", ["model.language_model.norm.weight", "model.audio_tower.decoder.head.conv.bias"])
def test_numbers_that_broke_are_told(endless: Path, plan: Plan, name: str) -> None:
    """So that it goes on in float32."""
    voice = voice_of(loader.load(endless, plan))
    voice.parts.model.get_parameter(name.removeprefix("model.")).data.fill_(float("nan"))
    with pytest.raises(NumbersBroke):
        make(voice, make_task(HELLO), 2)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (("Hello,  there.\n", "You?"), "Hello, there. You?"), (("你好，世界。“好”吗？",), '你好, 世界. "好"吗?'), (("《书》……",), "书......"),
        (("It’s <|vision_end|> so <|endoftext|>.",), "It's vision_end so endoftext ."), ((" <| |><|<||>|> ",), ""),
    ],
)  # fmt: skip
def test_text_is_read_as_its_makers_advise(said: tuple[str, ...], read: str) -> None:
    assert prepare_text(said) == read


def test_a_folder_without_its_own_settings_speaks_as_its_makers_say(endless: Path, tmp_path: Path) -> None:
    own, silent = read_manner(endless), read_manner(tmp_path)
    assert (own.guidance, own.steps, own.noises, own.loudness_db) == (1.3, 4, 1000, -25)
    assert (silent.guidance, silent.steps, silent.noises, silent.loudness_db) == (1.3, 10, 1000, -25)
    for wrong in ({"noise_scheduler_class": "DDIMScheduler"}, {"noise_scheduler_config": {**NOISE, "prediction_type": "epsilon"}}):
        (tmp_path / "generation_config.json").write_text(json.dumps(wrong))
        with pytest.raises(Trouble, match="which no such model has"):
            read_manner(tmp_path)


def test_what_it_can_is_told_to_whoever_asks(endless: Path) -> None:
    found = catalog.look(str(endless))
    limits = found.limits
    assert limits is not None and (limits.name, limits.languages, limits.speakers, limits.speakers_a_part) == (
        "VibeVoice",
        ("en", "zh"),
        4,
        1,
    )
    assert (limits.rate, limits.frame_rate, limits.imitates, limits.carries, limits.needs_transcript) == (24_000, 7.5, True, True, False)
    assert limits.settings == {"guidance": 1.3} and not limits.nonverbals and not limits.figures
