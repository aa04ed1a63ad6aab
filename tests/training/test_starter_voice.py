"""Test the shipped starter voice: it loads, reads, speaks in each of its voices and matches its model card."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import DiaTokenizer

from app.engine.models.voice_limits import clip_key, read_limits
from app.engine.speech.text import pronounce, script, voices, written_out
from training.voice import __main__ as program
from training.voice import card, codec, evaluate, judge, model, ready, speak
from training.voice.flite import SPEAKERS, VOICES

pytestmark = pytest.mark.long

SHIPPED = program.SHIPPED
ABOUT = json.loads((SHIPPED / "starter.json").read_text())
TEXT = "The old lighthouse keeper found a letter in a bottle."
FLITE_HZ = {"anna": 178, "brian": 103, "callum": 123, "daisy": 211, "edith": 147, "frank": 96, "george": 110, "heather": 182}
"""flite's own voices have these median pitches in this sentence."""
KINDS = {".safetensors", ".json", ".md", ".ogg", ".bin", ".html"}


@pytest.fixture(scope="module")
def voice() -> speak.Voice:
    return speak.load(SHIPPED)


@pytest.fixture(scope="module")
def spoken(voice: speak.Voice) -> dict[str, speak.Spoken]:
    """The sentence in each of its voices."""
    return dict(zip(VOICES, speak.speak(voice, [ready.script(name, TEXT, voice.letters) for name in VOICES], seed=3), strict=True))


def test_the_weights_are_small_half_precision_and_safetensors() -> None:
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 13_500_000
    assert {path.suffix for path in files} <= KINDS
    for config in (SHIPPED / "config.json", SHIPPED / "codec" / "config.json"):
        assert json.loads(config.read_text())["dtype"] == "float16"


@pytest.mark.slow
def test_it_speaks_in_every_voice_and_ends_by_itself(spoken: dict[str, speak.Spoken]) -> None:
    for name, said in spoken.items():
        assert said.ended, name
        assert 2.0 < evaluate.span_s(said.sound) < 4.5, name
        assert -35 < judge.loudness_db(said.sound).max() < -3, name
        assert not judge.clipped_end(said.sound), name


@pytest.mark.slow
def test_every_voice_has_its_pitch(spoken: dict[str, speak.Spoken]) -> None:
    for name, said in spoken.items():
        off = 12 * np.log2(evaluate.median_hz(said.sound) / FLITE_HZ[name])
        assert abs(off) < 1.5, (name, off)


@pytest.mark.slow
def test_the_speakers_have_their_usual_voices(voice: speak.Voice) -> None:
    said = speak.speak(voice, [evaluate.script(evaluate.Trial(who, False, TEXT), voice.letters) for who in SPEAKERS], seed=4)
    hz = {who: evaluate.median_hz(one.sound) for who, one in zip(SPEAKERS, said, strict=True)}
    assert abs(12 * np.log2(hz["S1"] / hz["S2"])) >= evaluate.GATE["semitones_apart_at_least"]
    for who, name in SPEAKERS.items():
        assert abs(12 * np.log2(hz[who] / FLITE_HZ[name])) < 1.5


@pytest.mark.slow
def test_it_does_not_repeat_itself(spoken: dict[str, speak.Spoken]) -> None:
    cepstra = codec.features(torch.from_numpy(spoken["anna"].sound))[:, : codec.CEPSTRA]
    cepstra = cepstra[cepstra[:, 0] > cepstra[:, 0].median()]
    assert cepstra.std(0)[1:8].mean() > 0.3
    half = len(cepstra) // 2
    first, second = cepstra[:half].flatten(), cepstra[half : 2 * half].flatten()
    assert torch.corrcoef(torch.stack([first - first.mean(), second - second.mean()]))[0, 1] < 0.97


@pytest.mark.slow
def test_the_same_seed_says_the_same(voice: speak.Voice, spoken: dict[str, speak.Spoken]) -> None:
    again = speak.speak(voice, [ready.script(name, TEXT, voice.letters) for name in VOICES], seed=3)
    assert all(np.array_equal(one.sound, spoken[name].sound) for name, one in zip(VOICES, again, strict=True))


@pytest.mark.slow
def test_it_goes_on_after_a_voice_prompt(voice: speak.Voice, spoken: dict[str, speak.Spoken]) -> None:
    both = evaluate.script(evaluate.Trial("S1", False, f"{TEXT} Nobody knows who wrote it."), voice.letters)
    went_on = speak.speak(voice, [both], seed=4, prompts=[spoken["anna"].sound])[0]
    assert went_on.ended
    assert 0.7 < evaluate.span_s(went_on.sound) < 3.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello, world!", "h@lV, wRld!"),
        ("Dr. Smith paid $2.50 on May 3rd.", "dAkt^ smJT pYd tK dAl^z Qnd fJft$ sEnts An mY TRd."),
        ("Don't you know the apple's colour?", "dVnt yK nV D$ Qp@lz kAl^?"),
        ("The quick brown fox jumps over the lazy dog.", "D@ kwJk brXn fAks jUmps Vv^ D@ lYz$ dOg."),
    ],
)
def test_it_reads_common_words_as_the_lexicon_does(voice: speak.Voice, text: str, said: str) -> None:
    assert pronounce.to_sounds(written_out.write_out(text), voice.letters) == said


def test_the_card_and_starter_json_tell_the_same_scores() -> None:
    assert (SHIPPED / "MODEL.md").read_text() == card.write(ABOUT["scores"])
    assert evaluate.misses(ABOUT["scores"]) == []


def test_starter_json_tells_what_the_engine_needs() -> None:
    assert ABOUT["sampling_rate_hz"] == codec.RATE_HZ and ABOUT["frames_per_s"] == 40 and ABOUT["channels"] == 4
    assert ABOUT["audio_kwargs"]["delay_pattern"] == list(model.DELAY)
    limits = read_limits(SHIPPED)
    assert limits.letters == SHIPPED / "letters.bin" and limits.letters.is_file()
    assert [limits.ready[clip_key(each.prompt.path)] for each in voices.list_ready_voices()] == [
        str(number) for number in range(len(VOICES))
    ]
    assert [each.name for each in voices.list_ready_voices()] == [name.title() for name in VOICES]
    for each in voices.list_ready_voices():
        assert voices.parse_transcript(each.prompt, limits) and 3 < each.seconds < 8
        assert script.parse_script(each.prompt.transcript, limits).problems == ()


def test_the_gate_names_every_miss_and_takes_no_missing_number() -> None:
    scores = ABOUT["scores"]
    bad = {
        **scores,
        "digits": {**scores["digits"], "wer": 0.5},
        "clipped_share": math.nan,
        "semitones_apart": 1.0,
        "ready": {**scores["ready"], "wer": 0.9, "near_share": math.nan},
        "prompts": {**scores["prompts"], "taken_share": 0.1},
    }
    names = [missed.split()[0] for missed in evaluate.misses(bad)]
    assert names == [
        "digits_wer",
        "clipped_share",
        "ready_wer_above_flite",
        *(name for name in evaluate.GATE if name.endswith("_at_least")),
    ]


def test_weights_that_miss_the_gate_are_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, shipped = tmp_path / "ready", tmp_path / "shipped"
    made.mkdir()
    (made / "starter.json").write_text("{}")
    bad = {**ABOUT["scores"], "unended_share": 1.0}
    monkeypatch.setattr(program, "judge_folder", lambda folder, texts: bad)
    assert program.release(made, tmp_path, shipped) == 1 and not shipped.exists()
    monkeypatch.setattr(program, "judge_folder", lambda folder, texts: ABOUT["scores"])
    shipped.mkdir()
    (shipped / "of-older-weights.ogg").write_bytes(b"")
    assert program.release(made, tmp_path, shipped) == 0
    assert [each.name for each in shipped.iterdir()] == ["starter.json"]


def test_training_reads_text_as_the_shipped_tokenizer_does() -> None:
    text = "[S1]3 h@l;V, mI frEnd. [S2] =m?"
    assert DiaTokenizer.from_pretrained(SHIPPED)(text)["input_ids"] == model.text_ids(text)
