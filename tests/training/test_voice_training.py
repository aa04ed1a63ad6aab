"""Test the training of the starter voice: its data, its judge, and two steps of every part."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import DiaProcessor

from app.base.paths import assets
from app.engine.speech.text import pronounce
from training.muon import Muon
from training.voice import batches, codec, corpus, earlier, judge, letters, lookup, model, sentences, smoke, train
from training.voice.flite import SPEAKERS, VOICES, Phone, Utterance

pytestmark = pytest.mark.slow  # no part of Hearth: run before weights are trained anew

SHIPPED = assets() / "starter" / "voice"
PHONES = (
    Phone("pau", -1, 0.2), Phone("w", 0, 0.3), Phone("ah", 0, 0.4, True), Phone("n", 0, 0.5), Phone("pau", -1, 0.6),
    Phone("t", 1, 0.7), Phone("uw", 1, 0.8), Phone("pau", -1, 1.0),
)  # fmt: skip
TONE = (np.sin(np.arange(16000) * 0.2) * 9000).astype(np.int16)


def books() -> torch.Tensor:
    return torch.randn(codec.CHANNELS, codec.CODES, codec.FEATURES, generator=torch.Generator().manual_seed(0))


def made_up(sounds: str, code: int) -> corpus.Phrase:
    frames = np.arange(len(sounds), dtype=np.float32)
    return corpus.Phrase(sounds, np.full((len(sounds), 4), code), frames + np.float32(0.5))


def test_a_phrase_is_cut_to_its_speech_and_knows_its_sounds() -> None:
    phrase = corpus.phrase("One, two", Utterance(TONE, PHONES), books())
    assert phrase.sounds == "wUn, t/"
    assert len(phrase.codes) == len(phrase.place) == corpus.LEAD_FRAMES + 24 + corpus.STOP_FRAMES
    assert (np.diff(phrase.place) >= 0).all() and (phrase.place[:4] == 0).all()
    assert phrase.place[4 + 6] == pytest.approx(1.625), "the second sound, an eighth through it"
    assert (phrase.place[4 + 12 : 4 + 16] == 3).all(), "the pause belongs to the comma"
    assert 5 <= phrase.place[4 + 16] < 6 <= phrase.place[4 + 23] < 7
    with pytest.raises(ValueError, match="other words"):
        corpus.phrase("One", Utterance(TONE, PHONES), books())


def test_an_s_that_owns_is_no_word_apart() -> None:
    phones = (Phone("k", 0, 0.1), Phone("ae", 0, 0.2, True), Phone("t", 0, 0.3), Phone("s", 1, 0.4), Phone("pau", -1, 0.5))
    assert corpus.read_out("Cat's.", phones, 20)[0] == "kQts."


def test_every_frame_of_a_script_knows_its_sound_and_every_named_speaker_has_that_voice() -> None:
    rng, phrases = random.Random(3), {name: [made_up("abc.", number)] for number, name in enumerate(VOICES)}
    usual = {1: list(VOICES).index(SPEAKERS["S1"]), 2: list(VOICES).index(SPEAKERS["S2"])}
    others = prompts = 0
    for _ in range(500):
        example = corpus.draw(rng, phrases, 60)
        said = "".join(chr(example.ids[int(place)]) for place in example.place)
        assert said == "abc." * (len(example.codes) // 4)
        voices, at = [], 0
        for index, sign in enumerate(example.ids):
            if sign in (1, 2):
                named = chr(example.ids[index + 1])
                at = int(named) if named.isdigit() else usual[sign]
            voices += [at] if sign == ord("a") else []
        if example.heard:
            assert example.heard == 4 and example.codes[4, 0] == example.codes[0, 0], "a voice heard in a prompt is kept"
            prompts += 1
        else:
            assert example.codes[::4, 0].tolist() == voices
            others += any(voice not in usual.values() for voice in voices)
    assert others > 50 and prompts > 5


def test_a_prompt_is_shown_and_not_learned() -> None:
    ids, codes = model.text_ids("[S1] abc. de."), np.repeat([[7] * 4, [9] * 4], [4, 3], axis=0)
    place = np.array([2, 3, 4, 5, 7, 8, 9], np.float32)
    batch = batches.collate([corpus.Example(ids, codes, place, 4)], books(), np.random.default_rng(1))
    for channel, late in enumerate(model.DELAY):
        learned = batch.labels[0, :, channel]
        assert (learned[: 4 + late] == model.IGNORED).all()
        assert learned[4 + late : 8 + late].tolist() == [9, 9, 9, model.EOS]


def test_training_lays_codes_out_as_the_processor_does() -> None:
    codes = np.arange(20).reshape(5, 4)
    rows = 5 + 2 + max(model.DELAY)
    plain = torch.full((1, rows, 4), model.PAD)
    plain[0, 0], plain[0, 1:6], plain[0, 6] = model.BOS, torch.from_numpy(codes), model.EOS
    places = DiaProcessor.build_indices(bsz=1, seq_len=rows, num_channels=4, delay_pattern=list(model.DELAY), revert=False)
    theirs = DiaProcessor.apply_audio_delay(audio=plain, pad_token_id=model.PAD, bos_token_id=model.BOS, precomputed_idx=places)
    assert np.array_equal(model.delayed(codes, rows), theirs[0].numpy())


def test_the_codec_finds_the_codes_that_the_training_has() -> None:
    draw = torch.Generator().manual_seed(0)
    points = torch.randn(4000, codec.FEATURES, generator=draw) * torch.linspace(3, 0.2, codec.FEATURES) + 4
    found_books = codec.fit_codebooks(points, seed=1, rounds=3)
    dac = model.dac()
    lookup.lay(dac, found_books)
    with torch.no_grad():
        for quantizer in lookup.list_stages(dac):  # as the decoder's training leaves them
            quantizer.codebook.weight[:, lookup.OWN] += torch.randn(codec.CODES, codec.FEATURES, generator=draw)
        lookup.level(dac)
        hidden = torch.randn(1, 128, 4000, generator=draw)
        hidden[0, : codec.FEATURES] = lookup.scaled(points, found_books).T
        found = dac.quantizer(hidden)[1][0].T
    assert (found == codec.quantise(points, found_books)).float().mean() > 0.97


def test_codebooks_are_found_again_in_a_codec_that_holds_them_in_a_scale_of_its_own(tmp_path: Path) -> None:
    """A released voice trains on in the codes it knows. Their middle and scale, which the codec does not hold, follow from the points."""
    draw = torch.Generator().manual_seed(0)
    points = torch.randn(6_000, codec.FEATURES, generator=draw) * 3 + torch.randn(codec.FEATURES, generator=draw)
    known, dac = codec.fit_codebooks(points, seed=1, rounds=3), model.dac()
    lookup.lay(dac, known)
    dac.half().save_pretrained(tmp_path / "codec")
    middle, scale = lookup.middle_and_scale(known)
    found = earlier.books(earlier.centres(tmp_path), points, middle + 0.3, float(scale) * 1.1)
    assert (
        (found - known).abs().max() < 0.1 < (earlier.in_features(earlier.centres(tmp_path), middle + 0.3, float(scale)) - known).abs().max()
    )
    changed = (codec.quantise(points[:2000], found) != codec.quantise(points[:2000], known)).float().mean()
    assert changed < 0.05


def test_training_on_begins_with_the_weights_of_the_released_voice() -> None:
    begun = train.begin(books(), 1e-3, SHIPPED)
    shipped = load_file(SHIPPED / "model.safetensors")
    assert begun.trainee.plain().keys() == shipped.keys()
    assert all(torch.equal(begun.trainee.plain()[name], weight.float()) for name, weight in shipped.items())


def test_sentences_are_taken_clean_or_not_at_all() -> None:
    known = frozenset(["the", "cat", "sat", "on", "a", "well", "known", "mat", "I", "don't"])
    assert sentences.cleaned('the cat sat; the "mat" sat', known) == "The cat sat, the mat sat"
    assert sentences.cleaned("a well-known cat.", known) == "A well known cat."
    for text in (
        "the 2 cats",
        "the dog",
        "the CAT sat",
        "the cat. the mat",
        "the cat... sat",
        "caf\u00e9",
        "x the cat",
        " ".join(["cat"] * 19),
    ):
        assert sentences.cleaned(text, known) is None, text
    assert sum(sentences.is_held_out(f"the cat {number}x" + "a" * number) for number in range(400)) in range(2, 30)


def test_numbers_are_drawn_as_they_are_written_out_when_read() -> None:
    """Every kind of them: what is trained is what the app makes of figures."""
    drawn = {sentences.numbers(random.Random(seed)) for seed in range(1000)}
    assert not any(re.search("[0-9]", text) for text in drawn)
    assert any(text.startswith("March ") for text in drawn) and any(text.endswith("pounds") for text in drawn)


def test_reading_is_learned_and_the_rest_is_kept_as_exceptions() -> None:
    learned = {
        word: "".join({"c": "k", "a": "q", "e": "E"}.get(letter, letter) for letter in word)
        for word in (
            "cat",
            "tac",
            "bad",
            "dab",
            "bed",
            "deb",
            "net",
            "ten",
            "can",
            "act",
            "bat",
            "tab",
            "den",
            "end",
            "cab",
            "dot",
            "pot",
            "top",
        )
    }
    read = letters.learn(learned | {"one": "wUn"}, {"the": "D@"})
    assert all(read.spell(word) == said for word, said in learned.items())
    assert read.spell("one") == "wUn" and read.spell("the") == "D@" and read.spell("tet") == "tEt"
    assert letters.align("cat", "kqt", None) == ["k", "q", "t"] and letters.align("a", "wUnt", None) is None


def test_the_table_survives_its_file(tmp_path: Path) -> None:
    read = pronounce.Letters({"one": "wUn"}, {".a.": "q"})
    letters.save(read, tmp_path / "letters.bin")
    assert pronounce.read_letters(tmp_path / "letters.bin") == read


def test_the_judge_counts_errors_and_finds_lost_and_repeated_clauses() -> None:
    assert judge.word_errors(["one", "two", "three"], ["one", "three"]) == 1
    assert judge.word_errors(["one"], ["two", "one", "two"]) == 2
    said = ["we", "went", "home", "and", "then", "it", "rained", "all", "day"]
    assert judge.lost_and_repeated(said, said) == (0, 0)
    assert judge.lost_and_repeated(said, said[:3] + said[7:]) == (4, 0)
    assert judge.lost_and_repeated(said, said[:5] + said[1:]) == (0, 4)
    assert judge.lost_and_repeated(said, [f"{word}s" for word in said]) == (0, 0)


def test_muon_steps_as_torch_does() -> None:
    ours, theirs = (torch.nn.Parameter(torch.randn(24, 8, generator=torch.Generator().manual_seed(1))) for _ in range(2))
    mine, other = Muon([ours], 0.1), torch.optim.Muon(
        [theirs], lr=0.1, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw", ns_steps=4
    )  # fmt: skip
    for step in range(3):
        slope = torch.randn(24, 8, generator=torch.Generator().manual_seed(step))
        for weight, stepper in ((ours, mine), (theirs, other)):
            weight.grad = slope.clone()
            stepper.step()
    assert (ours - theirs).abs().max() < 0.03 * theirs.abs().max()


@pytest.mark.slow
@pytest.mark.slow
def test_two_steps_of_the_training_fit_together(tmp_path: Path) -> None:
    told = smoke.run(tmp_path)
    assert told["second_loss"] < told["first_loss"] < 8
    assert told["seconds"] == pytest.approx(told["frames"] * codec.HOP / codec.RATE_HZ)
