"""The starter voice that ships: it loads with the real classes, speaks by itself, and its card says what was measured; its training takes two steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import DiaProcessor, DiaTokenizer

from assets.starter.training.voice import __main__ as program
from assets.starter.training.voice import card, codec, corpus, evaluate, judge, model, smoke, speak, words
from assets.starter.training.voice.flite import Phone

SHIPPED = program.SHIPPED
ABOUT = json.loads((SHIPPED / "starter.json").read_text())
PHRASE = "[S1] The red boat is near the bridge."


@pytest.fixture(scope="module")
def voice() -> speak.Voice:
    return speak.load(SHIPPED)


@pytest.fixture(scope="module")
def spoken(voice: speak.Voice) -> speak.Spoken:
    return speak.speak(voice, [PHRASE], seed=3)[0]


def test_the_weights_are_small_half_precision_and_safetensors() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) <= 13_000_000
    assert {path.suffix for path in SHIPPED.rglob("*") if path.is_file()} <= {".safetensors", ".json", ".md", ".ogg"}
    for config in (SHIPPED / "config.json", SHIPPED / "codec" / "config.json"):
        assert json.loads(config.read_text())["dtype"] == "float16"


def test_it_speaks_a_phrase_and_ends_by_itself(spoken: speak.Spoken) -> None:
    assert spoken.ended
    assert 1.2 < evaluate.span_s(spoken.sound) < 3.5
    assert -35 < judge.loudness_db(spoken.sound).max() < -3
    assert not judge.clipped_end(spoken.sound)


def test_it_does_not_repeat_itself(spoken: speak.Spoken) -> None:
    cepstra = codec.features(torch.from_numpy(spoken.sound))[:, : codec.CEPSTRA]
    cepstra = cepstra[cepstra[:, 0] > cepstra[:, 0].median()]
    assert cepstra.std(0)[1:8].mean() > 0.3
    half = len(cepstra) // 2
    first, second = cepstra[:half].flatten(), cepstra[half : 2 * half].flatten()
    assert torch.corrcoef(torch.stack([first - first.mean(), second - second.mean()]))[0, 1] < 0.97


def test_the_same_seed_says_the_same(voice: speak.Voice, spoken: speak.Spoken) -> None:
    again = speak.speak(voice, [PHRASE], seed=3)[0]
    assert np.array_equal(again.sound, spoken.sound)


def test_it_goes_on_after_a_voice_prompt(voice: speak.Voice, spoken: speak.Spoken) -> None:
    went_on = speak.speak(voice, [PHRASE + " One two three."], seed=4, prompts=[spoken.sound])[0]
    assert went_on.ended
    assert 0.4 < evaluate.span_s(went_on.sound) < 3.0


def test_the_card_and_starter_json_tell_the_same_scores() -> None:
    assert (SHIPPED / "MODEL.md").read_text() == card.write(ABOUT["scores"])
    assert evaluate.misses(ABOUT["scores"]) == []


def test_starter_json_tells_what_the_engine_needs() -> None:
    assert ABOUT["sampling_rate_hz"] == codec.RATE_HZ and ABOUT["frames_per_s"] == 40 and ABOUT["channels"] == 4
    assert ABOUT["audio_kwargs"]["delay_pattern"] == list(model.DELAY)
    assert len(set(ABOUT["words"])) >= 150 + len(words.DIGITS)
    assert set(words.DIGITS) <= set(ABOUT["words"])
    for figures, said in ABOUT["spelling"].items():
        assert figures.isdigit() and set(said.split()) <= set(ABOUT["words"])


def test_the_gate_names_every_miss() -> None:
    bad = {**ABOUT["scores"], "digits": {**ABOUT["scores"]["digits"], "wer": 0.5}, "clipped_share": 0.5}
    missed = evaluate.misses(bad)
    assert len(missed) == 2 and "digits_wer" in missed[0] and "clipped_share" in missed[1]


def test_weights_that_miss_the_gate_are_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, shipped = tmp_path / "ready", tmp_path / "shipped"
    ready.mkdir()
    (ready / "starter.json").write_text("{}")
    bad = {**ABOUT["scores"], "unended_share": 1.0}
    monkeypatch.setattr(program, "judge_folder", lambda folder: bad)
    assert program.release(ready, shipped) == 1 and not shipped.exists()
    monkeypatch.setattr(program, "judge_folder", lambda folder: ABOUT["scores"])
    assert program.release(ready, shipped) == 0 and (shipped / "starter.json").exists()


def test_training_reads_text_as_the_shipped_tokenizer_does() -> None:
    text = "[S1] Hello, my friend. [S2] Caf\u00e9?"
    assert DiaTokenizer.from_pretrained(SHIPPED)(text)["input_ids"] == model.text_ids(text)


def test_training_lays_codes_out_as_the_processor_does() -> None:
    codes = np.arange(20).reshape(5, 4)
    rows = 5 + 2 + max(model.DELAY)
    plain = torch.full((1, rows, 4), model.PAD)
    plain[0, 0], plain[0, 1:6], plain[0, 6] = model.BOS, torch.from_numpy(codes), model.EOS
    places = DiaProcessor.build_indices(
        bsz=1, seq_len=rows, num_channels=4, delay_pattern=list(model.DELAY), revert=False
    )
    theirs = DiaProcessor.apply_audio_delay(
        audio=plain, pad_token_id=model.PAD, bos_token_id=model.BOS, precomputed_idx=places
    )
    assert np.array_equal(model.delayed(codes, rows), theirs[0].numpy())


PHONES = (Phone("pau", -1, 0.1), Phone("w", 0, 0.2), Phone("ah", 0, 0.3), Phone("n", 0, 0.4), Phone("pau", -1, 0.5))


def made_up() -> corpus.Recordings:
    codes = np.arange(80).reshape(20, 4)
    pieces = {
        (who, word, last): corpus.cut(PHONES, codes, 0, 2 * last)
        for who in ("S1", "S2")
        for word in words.vocabulary()
        for last in (False, True)
    }
    return corpus.Recordings(pieces, {"S1": np.full(4, 200), "S2": np.full(4, 201)})


def test_a_word_is_cut_at_its_phones() -> None:
    piece = corpus.cut(PHONES, np.arange(80).reshape(20, 4), 0, decay=2)
    assert piece.codes[:, 0].tolist() == list(range(16, 72, 4))
    assert (np.diff(piece.progress) >= 0).all() and piece.progress[0] < 0.1 and piece.progress[-1] == 1
    assert piece.progress[5] == pytest.approx((1 + 0.375) / 3, abs=0.1)


def test_every_frame_of_a_script_knows_its_letter() -> None:
    example = corpus.script([("S1", "One, two"), ("S2", "six")], made_up())
    text = [1, *b" One, two ", 2, *b" six"]
    assert example.ids == text and len(example.place) == len(example.codes)
    assert (np.diff(example.place) >= -1e-6).all()
    said = [chr(text[int(place)]) for place in example.place]
    assert [letter for letter, before in zip(said, ["", *said], strict=False) if letter != before] == list(
        "One,two six"
    )
    assert (example.codes[:4] == 200).all() and (example.codes[-3:] == 201).all()


def test_held_out_phrases_are_never_trained_on() -> None:
    rng, left_out, recordings = random.Random(5), corpus.banned(), made_up()
    for kind in corpus.KINDS:
        assert {corpus.key(text) for text in corpus.held_out(corpus.TEST_SEED, kind, 40)} <= left_out
    drawn = {bytes(corpus.draw(rng, recordings, left_out, 10).ids[2:]).decode() for _ in range(300)}
    assert len(drawn) > 250 and not {corpus.key(text) for text in drawn} & left_out
    assert set(words.spoken_words(words.phrase(rng, "sentence"))) <= set(words.vocabulary())


def test_the_judge_counts_errors() -> None:
    assert judge.word_errors(["one", "two", "three"], ["one", "three"]) == 1
    assert judge.word_errors(["one"], ["two", "one", "two"]) == 2
    assert judge.word_errors([], ["one"]) == 1


def test_a_clipped_end_is_told_from_a_quiet_one() -> None:
    tone = np.sin(np.arange(16000) * 0.1).astype(np.float32) * 0.3
    assert judge.clipped_end(tone)
    assert not judge.clipped_end(np.concatenate([tone, np.zeros(1600, np.float32)]))


def test_two_steps_of_the_training_fit_together(tmp_path: Path) -> None:
    told = smoke.run(tmp_path)
    assert told["second_loss"] < told["first_loss"] < 8
    assert told["seconds"] == pytest.approx(told["frames"] * codec.HOP / codec.RATE_HZ)
