"""Pocket TTS and Phonon speak the frames that transformers' own generate() makes of the same seed, in both layouts of their folders, and go on
with a stopped part as if it had not been stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from transformers import (
    DynamicCache,
    GradiumPhononTTSForConditionalGeneration,
    PocketTTSAudioTokenizerModel,
    PocketTTSForConditionalGeneration,
)

from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.planning.types import Plan, Quantised
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, PartDone, Sound, Stopped
from app.engine.jobs.request import SpeechRequest
from app.engine.models import catalog
from app.engine.speech.families.pocket.facts import read_limits, read_manner
from app.engine.speech.families.pocket.part import Part
from app.engine.speech.families.pocket.voice import Pocket
from app.engine.speech.family import PartTask, VoiceContext
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from app.engine.speech.text.turns import ScriptPart, Turn
from tests.support import speech_fixtures
from tests.support.speech_fixtures import PLAIN, find_result, run
from tests.support.tiny_pockets import LATENT, VOICE_WIDTH, Kind, save_as_on_the_hub, save_pocket

plan = speech_fixtures.plan
KINDS = get_args(Kind)
TEXT = (
    "This is the first sentence, which is quite long and takes a while. Here comes a second one, about as long as the first, or longer. "
    * 2
)


@pytest.fixture(scope="module")
def pockets(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    top = tmp_path_factory.mktemp("pockets")
    return {kind: save_pocket(top / kind, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def loaded(pockets: dict[Kind, Path], plan: Plan) -> dict[Kind, loader.Speaker]:
    return {kind: loader.load(folder, plan) for kind, folder in pockets.items()}


def pocket_of(speaker: loader.Speaker) -> Pocket:
    assert isinstance(speaker.voice, Pocket)
    return speaker.voice


def make_task(said: str, frames: torch.Tensor | None = None, temperature: float = 0.5) -> PartTask:
    context = VoiceContext(frames, ()) if frames is not None else None
    return PartTask(0, ScriptPart((Turn(1, said),), 2.0), context, temperature, 5, None, (), "")


def make_frames(kind: Kind, count: int = 9) -> torch.Tensor:
    return torch.randn(count, VOICE_WIDTH[kind], generator=torch.Generator().manual_seed(1))


def make(voice: Pocket, task: PartTask, seconds: float = 4.0) -> Part:
    part = voice.begin(task, 7, seconds, None)
    while not part.done:
        part.step()
    return part


@cache
def load_plain(folder: Path, kind: Kind) -> Any:
    """As transformers' documentation does."""
    model: Any = GradiumPhononTTSForConditionalGeneration if kind == "phonon" else PocketTTSForConditionalGeneration
    return model.from_pretrained(folder, local_files_only=True)


def generate(folder: Path, kind: Kind, voice: Pocket, said: str, frames: torch.Tensor | None, after: int, most: int) -> torch.Tensor:
    plain = load_plain(folder, kind)
    own, begin = plain.config, [plain.config.audio_prompt_bos_token_id] if kind == "pocket" else []
    before = [*begin, *[own.audio_prompt_token_id] * len(frames)] if frames is not None else []
    ids = torch.tensor([[*before, *voice.tokenizer.encode(said, add_special_tokens=False), own.audio_bos_token_id]])
    more = {"audio_prompt_latents": frames[None]} if frames is not None else {}
    torch.manual_seed(7)
    found = plain.generate(ids, attention_mask=torch.ones_like(ids), frames_after_eos=after, max_new_tokens=most, **more)
    latents: torch.Tensor = found.audio_latents[0]
    return latents


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize(("said", "after"), [("Hello there all of you.", 3), ("Hello there.", 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_makes_the_frames_of_generate(
    pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], kind: Kind, said: str, after: int, heard: bool
) -> None:
    voice, frames = pocket_of(loaded[kind]), make_frames(kind) if heard else None
    for _ in range(2):  # first it reads the voice, then it remembers
        part = make(voice, make_task(said, frames))
        right = generate(pockets[kind], kind, voice, said, frames, after, 50)
        assert part.made == len(right) and right.std() > 0.1
        torch.testing.assert_close(part.get_codes(0, part.made), right, rtol=1e-3, atol=1e-4)
    assert part.made < 50 or part.cut_off, "some end by themselves"


def test_heads_that_share_keys_biases_and_a_flow_without_times_are_no_other(plan: Plan, tmp_path: Path) -> None:
    folder = save_pocket(tmp_path / "other", flow="drifting", num_attention_heads=4, num_key_value_heads=2, attention_bias=True)
    voice, frames = pocket_of(loader.load(folder, plan)), make_frames("pocket")
    part = make(voice, make_task("Hello there.", frames))
    right = generate(folder, "pocket", voice, "Hello there.", frames, 5, 50)
    torch.testing.assert_close(part.get_codes(0, part.made), right, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("quantised", ["int8", "int4"])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_in_few_bits_it_says_nearly_the_same(
    pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], kind: Kind, quantised: Quantised, plan: Plan
) -> None:
    whole, packed = pocket_of(loaded[kind]), pocket_of(loader.load(pockets[kind], replace(plan, quantised=quantised)))
    names = {name for name, each in packed.model.named_modules() if isinstance(each, torch.nn.Linear) and "loss_" not in name}
    assert not any(".layers." in name and "mestep" not in name for name in names) and "eos_head" in names
    right, found = (make(each, make_task("Hello there.", make_frames(kind)), 0.24).get_codes(0, 3) for each in (whole, packed))
    assert 1e-6 < float((found - right).square().mean() / right.square().mean()) < {"int8": 0.02, "int4": 0.4}[quantised]


@pytest.mark.parametrize("kind", KINDS)
def test_in_half_precision_it_says_nearly_the_same(
    pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], kind: Kind, plan: Plan
) -> None:
    halves = tuple(replace(each, storage="bfloat16", compute="bfloat16") if each.role == "speech" else each for each in plan.precision)
    voices = pocket_of(loaded[kind]), pocket_of(loader.load(pockets[kind], replace(plan, precision=halves)))
    right, found = (make(each, make_task("Hello there.", make_frames(kind)), 0.24).get_codes(0, 3) for each in voices)
    assert found.dtype == torch.float32 and 1e-6 < float((found - right).square().mean() / right.square().mean()) < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_by_itself_as_often_as_generate(pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], kind: Kind) -> None:
    made = [make(pocket_of(loaded[kind]), make_task(f"Hello there {word}.")) for word in ("dear", "you", "all", "both")]
    assert any(part.made < 50 and not part.cut_off for part in made)


@pytest.mark.parametrize("kind", KINDS)
def test_a_voice_is_heard_once(loaded: dict[Kind, loader.Speaker], kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    voice, frames = replace(pocket_of(loaded[kind]), heard={}), make_frames(kind)
    read, inner = list[int](), voice.model.model.audio_prompt_proj
    handle = inner.register_forward_hook(lambda _, given, __: read.append(len(given[0])))
    parts = [make(voice, make_task(said, frames), 0.5) for said in ("One.", "Two.", "Three.")]
    handle.remove()
    assert read == [len(frames)] and len(voice.heard) == 1
    assert not torch.equal(parts[0].get_codes(0, 3), parts[1].get_codes(0, 3))
    for count in range(2, 20):
        make(voice, make_task("One.", make_frames(kind, count)), 0.1)
    assert len(voice.heard) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_in_the_layout_of_the_hub(loaded: dict[Kind, loader.Speaker], kind: Kind, plan: Plan, tmp_path: Path) -> None:
    folder = save_as_on_the_hub(tmp_path / "voice", kind, tmp_path / "codec")
    with pytest.raises(Trouble, match="has no codec"):
        loader.load(folder, plan)
    found = pocket_of(loader.load(folder, plan, {"codec": tmp_path / "codec"}))
    assert not found.notes
    here, there = (make(voice, make_task("Hello there.", make_frames(kind))) for voice in (pocket_of(loaded[kind]), found))
    assert torch.equal(here.get_codes(0, here.made), there.get_codes(0, there.made))
    assert np.array_equal(pocket_of(loaded[kind]).codec.decode(here.get_codes(0, 9)), found.codec.decode(here.get_codes(0, 9)))


def test_a_wrong_rate_is_blamed_on_the_folder_that_says_it(tmp_path: Path) -> None:
    (codec := tmp_path / "codec").mkdir()
    (codec / "config.json").write_text('{"sampling_rate": 24000, "upsampling_ratios": [1]}')
    with pytest.raises(Trouble, match=f"The model in {re.escape(str(codec))} cannot be used: .* sampling_rate 24000,"):
        read_limits(tmp_path / "voice", {"codec": codec})


def test_a_folder_without_its_own_settings_speaks_as_its_makers_say(pockets: dict[Kind, Path], tmp_path: Path) -> None:
    own, silent = read_manner(pockets["phonon"]), read_manner(tmp_path)
    assert (own.temperature, own.steps, own.threshold, own.least, own.after, own.after_short, own.short_words) == (0.5, 2, 1.2, 4, 3, 5, 3)
    assert (silent.temperature, silent.steps, silent.threshold, silent.least) == (0.3, 1, -4.0, 6)
    assert (silent.after, silent.after_short, silent.short_words) == (2, 4, 4)
    (tmp_path / "generation_config.json").write_text('{"do_sample": false, "temperature": 0.7}')
    assert read_manner(tmp_path).temperature == 0


def test_without_noise_no_seed_matters(loaded: dict[Kind, loader.Speaker]) -> None:
    voice, task = pocket_of(loaded["pocket"]), make_task("Hello there.", temperature=0.0)
    first, second = (voice.begin(task, seed, 1.0, None) for seed in (1, 2))
    for part in (first, second):
        for _ in range(6):
            part.step()
    assert torch.equal(first.get_codes(0, 6), second.get_codes(0, 6))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sound_in_pieces_is_that_of_the_whole(pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], kind: Kind) -> None:
    codec, latents = pocket_of(loaded[kind]).codec, torch.randn(30, LATENT, generator=torch.Generator().manual_seed(3))
    whole = codec.decode(latents)
    ends = [0, 3, 4, 11, 12, 13, 25, 30]
    pieces = [codec.decode(latents[: last + codec.overlap], first, last) for first, last in pairwise(ends)]
    assert np.array_equal(np.concatenate(pieces), whole) and whole.std() > 0.01
    plain: Any = PocketTTSAudioTokenizerModel.from_pretrained(pockets[kind] / "codec")
    with torch.inference_mode():
        right = plain.decode(latents[None], decoder_past_key_values=DynamicCache(config=plain.decoder.config)).audio_values[0, 0].numpy()
    right[:120] *= np.linspace(0, 1, 120)
    np.testing.assert_allclose(whole, right, atol=1e-4 * float(np.abs(right).max()))


@pytest.mark.parametrize("silent", [0, 700, 30_000])
def test_a_recording_is_heard_with_a_pause_at_its_end(pockets: dict[Kind, Path], loaded: dict[Kind, loader.Speaker], silent: int) -> None:
    from transformers import PocketTTSFeatureExtractor

    clip = np.pad(0.3 * np.sin(np.arange(24_000 * 2) / 30), (0, silent)).astype(np.float32)
    plain: Any = PocketTTSAudioTokenizerModel.from_pretrained(pockets["pocket"] / "codec")
    given = PocketTTSFeatureExtractor()(clip, sampling_rate=24_000)
    with torch.inference_mode():
        right = plain.encode(given["input_values"]).latents[0]
    found = pocket_of(loaded["pocket"]).codec.encode(clip)
    assert found.shape == right.shape
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4)


def never_ending(speaker: loader.Speaker, plan: Plan) -> loader.Speaker:
    voice = pocket_of(speaker)
    return loader.Speaker(replace(voice, manner=replace(voice.manner, threshold=1e9)), plan)


def speak(speaker: loader.Speaker, job: Path, **more: Any) -> list[Event]:
    return run(speaker, job, **{"text": TEXT, "max_frames": 40, **more})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_anywhere_it_ends_as_if_it_had_not_been(loaded: dict[Kind, loader.Speaker], kind: Kind, plan: Plan, tmp_path: Path) -> None:
    speaker = never_ending(loaded[kind], plan)
    whole, rate = sound.read(find_result(speak(speaker, tmp_path / "whole")))
    assert rate == 24_000 and whole.std() > 0.001
    control = Control()

    def stop_after(count: int) -> Iterator[Event]:
        with applied(PLAIN) as seam:
            for event in speaker.run(SpeechRequest(TEXT, seed=5, max_frames=40), control, seam, tmp_path / "job"):
                yield event
                count -= isinstance(event, Sound)
                if count == 0:
                    control.stop()

    assert isinstance(list(stop_after(2))[-1], Stopped)
    events = speak(speaker, tmp_path / "job")
    assert next(each for each in events if isinstance(each, Sound)).start_s > 0, "what was heard is not sent again"
    assert np.array_equal(sound.read(find_result(events))[0], whole)


def test_one_part_is_redone_and_the_others_stay(loaded: dict[Kind, loader.Speaker], tmp_path: Path) -> None:
    first = [each for each in speak(loaded["phonon"], tmp_path / "first") if isinstance(each, PartDone)]
    keep = tuple(part.path for part in first)
    second = [
        each for each in speak(loaded["phonon"], tmp_path / "second", seed=9, only_parts=(1,), keep=keep) if isinstance(each, PartDone)
    ]
    same = {part.index: Path(part.path).read_bytes() == Path(first[part.index].path).read_bytes() for part in second}
    assert same == {index: index != 1 for index in range(len(first))}


def test_any_other_state_begins_anew(loaded: dict[Kind, loader.Speaker]) -> None:
    voice, task = pocket_of(loaded["pocket"]), make_task("Hello there.")
    part = voice.begin(task, 7, 4.0, None)
    for _ in range(5):
        part.step()
    right = json.loads(json.dumps(part.save(2)))
    gone_on = voice.begin(task, 7, 4.0, right)
    part.step()
    gone_on.step()
    assert torch.equal(gone_on.get_codes(0, 6), part.get_codes(0, 6))
    row = right["rows"][0]
    for wrong in (
        {"rows": [row] * 1000}, {"rows": [row[:-8]]}, {"rows": [5]}, {"rows": ["AA=="]}, {"rows": ["AADAfw==" * LATENT]}, {"rows": "no"}, {"rows": None},
        {"left": 99}, {"left": -1}, {"left": True}, {"given": 6}, {"given": "1"}, {"given": -1},
    ):  # fmt: skip
        assert voice.begin(task, 7, 4.0, right | wrong).made == 0, wrong


def test_what_it_can_is_told_to_whoever_asks(pockets: dict[Kind, Path]) -> None:
    phonon, pocket = (catalog.look(str(pockets[kind])).limits for kind in ("phonon", "pocket"))
    assert phonon is not None and pocket is not None
    assert (phonon.name, phonon.imitates, phonon.carries, phonon.speakers, phonon.rate, phonon.frame_rate) == (
        "Phonon",
        False,
        False,
        1,
        24_000,
        12.5,
    )
    assert (pocket.name, pocket.imitates, pocket.carries, pocket.speakers, pocket.needs_transcript) == ("Pocket TTS", True, True, 4, False)
    assert set(phonon.settings) == {"temperature"} and not phonon.nonverbals
