"""Test the shipped starter voice: it loads, speaks and matches its model card; its training runs two steps."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import DiaProcessor, DiaTokenizer

from assets.starter.training.voice import __main__ as program
from assets.starter.training.voice import batches, card, codec, corpus, evaluate, judge, lookup, model, prompts, smoke, speak, words
from assets.starter.training.voice.flite import Phone, Utterance

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


def test_after_a_prompt_of_the_other_voice_it_often_goes_on_in_that_voice(voice: speak.Voice) -> None:
    """MODEL.md says three times of four after flite; half is required here. After its own voice it never changes."""
    before = "The green book is on the table."
    texts = ("We can sing and dance tomorrow.", "One two three four.", "My friend is happy.", "The river is near the house.")
    voices = dict(zip(corpus.OTHER, speak.speak(voice, [f"[{who}] {before}" for who in corpus.OTHER], seed=5), strict=True))
    heard_hz = {who: prompts.median_hz(said.sound) for who, said in voices.items()}
    assert heard_hz["S1"] > 1.3 * heard_hz["S2"]
    between_hz = (heard_hz["S1"] * heard_hz["S2"]) ** 0.5
    taken = kept = 0
    for speaker, other in corpus.OTHER.items():
        for prompt in (speaker, other):
            scripts = [f"[{speaker}] {before} {text}" for text in texts]
            went_on = speak.speak(voice, scripts, seed=6, prompts=[voices[prompt].sound] * len(texts))
            assert all(said.ended for said in went_on)
            right = sum((prompts.median_hz(said.sound) > between_hz) == (prompt == "S1") for said in went_on)
            taken, kept = (taken + right, kept) if prompt == other else (taken, kept + right)
    assert taken >= 3 and kept == 8


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
    places = DiaProcessor.build_indices(bsz=1, seq_len=rows, num_channels=4, delay_pattern=list(model.DELAY), revert=False)
    theirs = DiaProcessor.apply_audio_delay(audio=plain, pad_token_id=model.PAD, bos_token_id=model.BOS, precomputed_idx=places)
    assert np.array_equal(model.delayed(codes, rows), theirs[0].numpy())


PHONES = (
    Phone("pau", -1, 0.2), Phone("w", 0, 0.3), Phone("ah", 0, 0.4), Phone("n", 0, 0.5), Phone("pau", -1, 0.6),
    Phone("t", 1, 0.7), Phone("uw", 1, 0.8), Phone("pau", -1, 1.0),
)  # fmt: skip


def made_up(text: str, code: int) -> corpus.Phrase:
    frames = np.arange(len(text), dtype=np.float32)
    return corpus.Phrase(text, np.full((len(text), 4), code), frames + np.float32(0.5))


def test_a_phrase_is_cut_to_its_speech_and_knows_its_letters() -> None:
    books = torch.randn(codec.CHANNELS, codec.CODES, codec.FEATURES, generator=torch.Generator().manual_seed(0))
    tone = (np.sin(np.arange(16000) * 0.2) * 9000).astype(np.int16)
    phrase = corpus.phrase("One, two", Utterance(tone, PHONES), books)
    assert len(phrase.codes) == len(phrase.place) == corpus.LEAD_FRAMES + 24 + corpus.STOP_FRAMES
    assert (np.diff(phrase.place) >= 0).all() and (phrase.place[:4] == 0).all()
    assert phrase.place[4 + 6] == pytest.approx(6.5 / 12 * 3, abs=0.01)
    assert (phrase.place[4 + 12 : 4 + 16] == 3).all(), "the pause belongs to the comma"
    assert 5 <= phrase.place[4 + 16] < 6 and phrase.place[4 + 23] < 8
    assert np.array_equal(phrase.codes, corpus.codes_of(Utterance(tone, PHONES), books)[4 : 4 + len(phrase.codes)])
    with pytest.raises(ValueError, match="other words"):
        corpus.phrase("One", Utterance(tone, PHONES), books)


def test_every_frame_of_a_script_knows_its_letter() -> None:
    turns = [corpus.Turn("S1", made_up("One, two", 7)), corpus.Turn("S2", made_up("six", 8))]
    turns.append(corpus.Turn("S2", made_up("Go.", 9)))
    example = corpus.script(turns, heard=1)
    text = [1, *b" One, two ", 2, *b" six Go."]
    assert example.ids == text and len(example.place) == len(example.codes) == 14
    said = "".join(chr(text[int(place)]) for place in example.place)
    assert said == "One, twosixGo."
    assert example.codes[:, 0].tolist() == [7] * 8 + [8] * 3 + [9] * 3 and example.heard == 8


def test_a_prompt_is_shown_and_not_learned() -> None:
    books = torch.randn(codec.CHANNELS, codec.CODES, codec.FEATURES, generator=torch.Generator().manual_seed(0))
    turns = [corpus.Turn("S1", made_up("One two three", 7)), corpus.Turn("S1", made_up("four", 9))]
    batch = batches.collate([corpus.script(turns, heard=1)], books, np.random.default_rng(1))
    for channel, late in enumerate(model.DELAY):
        learned = batch.labels[0, :, channel]
        assert (learned[: 13 + late] == model.IGNORED).all()
        assert learned[13 + late : 18 + late].tolist() == [9, 9, 9, 9, model.EOS]
    whole = batches.collate([corpus.script(turns)], books, np.random.default_rng(1))
    assert whole.labels[0, :13, 0].tolist() == [7] * 13


def test_a_voice_heard_in_a_prompt_is_kept_and_no_other_is_taken() -> None:
    rng, phrases = random.Random(3), {who: [made_up("one", code)] for who, code in (("S1", 1), ("S2", 2))}
    swapped = 0
    for _ in range(400):
        example = corpus.draw(rng, phrases, 60)
        tags = [{1: "S1", 2: "S2"}[byte] for byte in example.ids if byte in (1, 2)]
        turns, heard, said = len(example.codes) // 3, example.heard // 3, example.codes[::3, 0].tolist()
        assert heard < turns
        if len(tags) == turns:  # every turn has its tag, so that it is known whose it is
            voices = dict(zip(tags[:heard], said[:heard], strict=True))
            own = {"S1": 1, "S2": 2}
            assert all(code == voices.get(tag, own[tag]) for tag, code in zip(tags[heard:], said[heard:], strict=True))
            swapped += any(own[tag] != code for tag, code in zip(tags[heard:], said[heard:], strict=True))
    assert swapped > 5


def test_held_out_phrases_are_never_trained_on() -> None:
    left_out = corpus.banned()
    for kind in corpus.KINDS:
        assert {corpus.key(text) for text in corpus.held_out(corpus.TEST_SEED, kind, 40)} <= left_out
    drawn = list(islice(corpus.texts(random.Random(5), left_out), 400))
    assert len(set(drawn)) > 350 and not {corpus.key(text) for text in drawn} & left_out
    assert {word for text in drawn for word in words.spoken_words(text)} <= set(words.vocabulary())


def test_the_codec_finds_the_codes_that_the_training_has() -> None:
    draw = torch.Generator().manual_seed(0)
    points = torch.randn(4000, codec.FEATURES, generator=draw) * torch.linspace(3, 0.2, codec.FEATURES) + 4
    books = codec.fit_codebooks(points, seed=1, rounds=3)
    dac = model.dac()
    lookup.lay(dac, books)
    with torch.no_grad():
        for quantizer in dac.quantizer.quantizers:  # as the decoder's training leaves them
            quantizer.codebook.weight[:, lookup.OWN] += torch.randn(codec.CODES, codec.FEATURES, generator=draw)
        lookup.level(dac)
        hidden = torch.randn(1, 128, 4000, generator=draw)
        hidden[0, : codec.FEATURES] = lookup.scaled(points, books).T
        found = dac.quantizer(hidden)[1][0].T
    assert (found == codec.quantise(points, books)).float().mean() > 0.97


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
