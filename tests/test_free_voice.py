"""The recipe of the voice that speaks any English: its table of sounds, corpus, batches, judge and gate; two steps of it fit together."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from assets.starter.training.free import __main__ as program
from assets.starter.training.free import batches, card, corpus, evaluate, flite, letters, smoke, texts
from assets.starter.training.free.flite import Phone, Utterance
from assets.starter.training.free.phones import sounded, table, word_sounds
from assets.starter.training.voice import model

GOOD = {
    "words": {"wer": 0.3, "flite_wer": 0.24, "sentences": 200, "words": 1700},
    "digits": {"wer": 0.0, "flite_wer": 0.0, "sentences": 60, "words": 300},
    "unended_share": 0.0, "lost_or_repeated_share": 0.0, "length_ratio_mean": 1.0, "semitones_apart": 8.6, "voices_missed": 0,
}  # fmt: skip
PHONES = (
    Phone("pau", -1, 0.2), Phone("ih", 0, 0.3, True), Phone("t", 0, 0.4), Phone("s", 1, 0.5), Phone("pau", -1, 0.6),
    Phone("n", 2, 0.7), Phone("ow", 2, 0.8), Phone("pau", -1, 1.0),
)  # fmt: skip
SAID = Utterance(np.zeros(16000, np.int16), PHONES, ("it", "'s", "no"))


def test_letters_are_aligned_and_every_word_is_learned(tmp_path: Path) -> None:
    known = {"box": "bAks", "ox": "Aks", "fox": "fAks", "no": "nN", "knot": "nAt", "not": "nAt", "know": "nN", "on": "An"}
    instances, left = letters.alignments(known)
    assert not left and len(instances) == sum(map(len, known))
    rows = letters.learned(instances)
    whole = {**rows, **letters.exact(rows, {**known, "ocks": "Aks"})}
    letters.write(whole, tmp_path / "sounds.gz")
    assert table(tmp_path / "sounds.gz") == whole and len(rows) < len(instances)
    assert {word: word_sounds(word, tmp_path / "sounds.gz") for word in known} == known
    assert word_sounds("ocks", tmp_path / "sounds.gz") == "Aks" and word_sounds("noon", tmp_path / "sounds.gz")[0] == "n"


def test_what_flite_said_becomes_sounds_with_the_marks_of_the_text() -> None:
    sounds, places = corpus.heard(["it's,", "no!"], SAID)
    assert sounds == "Its, n8!" and places == [0, 0, 1, 2, 3, 5, 6, 7]
    with pytest.raises(ValueError, match="other words"):
        corpus.heard(["it's,", "no", "more!"], SAID)


def test_every_frame_of_a_phrase_knows_its_sound() -> None:
    phrase = corpus.laid(["it's,", "no!"], "#", SAID, np.zeros((40, 6), np.int64))
    assert len(phrase.codes) == len(phrase.place) == corpus.LEAD_FRAMES + 24 + corpus.STOP_FRAMES
    said = "".join(phrase.sounds[min(int(place), len(phrase.sounds) - 1)] for place in phrase.place)
    assert said == "IIII" + "IIII" + "tttt" + "ssss" + ",,,," + "nnnn" + "8888" + "!!!!!!!"
    assert (np.diff(phrase.place) >= 0).all()


def made_up(sounds: str, voice: str, code: int) -> corpus.Phrase:
    frames = np.arange(len(sounds), dtype=np.float32)
    return corpus.Phrase(voice, sounds, np.full((len(sounds), 6), code), frames + np.float32(0.5))


def test_a_script_names_its_voices_and_a_speaker_keeps_one() -> None:
    phrases = {voice: [made_up("wUn", voice, code)] for code, voice in enumerate(flite.VOICES)}
    signs = list(flite.VOICES)
    named = unnamed = 0
    for seed in range(300):
        example = corpus.draw(random.Random(seed), phrases, 60)
        text = bytes(example.ids)
        assert len(example.place) == len(example.codes) == 3 * text.count(b"wUn")
        spoken = bytes(text[int(place)] for place in example.place)
        assert spoken == b"wUn" * (len(spoken) // 3)
        codes, voices = iter(example.codes[::3, 0].tolist()), dict[int, str]()
        for piece in text.replace(b"\x01", b"|\x01").replace(b"\x02", b"|\x02").split(b"|")[1:]:
            tag, first = piece[0], chr(piece[2])
            for _ in range(piece.count(b"wUn")):
                voice = signs[next(codes)]
                assert voices.setdefault(tag, voice) == voice
                assert voice == (first if first in signs else flite.OWN[f"S{tag}"])
            named, unnamed = named + (first in signs), unnamed + (first not in signs)
    assert named > 100 and unnamed > 100


def test_batches_read_what_there_is_and_lay_codes_out(tmp_path: Path) -> None:
    corpus.save(tmp_path / "phrases.part" / "000000.npz", [made_up("wUn tM", "#", 7), made_up("TrX", "$", 9)])
    found = next(batches.batches(tmp_path / "phrases", seed=1, frames=400))
    count, rows, channels = found.inputs.shape
    assert channels == 6 and count * (rows - 24) <= 400 and found.ids.shape[0] == count
    for row in range(count):
        own = found.labels[row, :, 5][found.labels[row, :, 5] >= 0]
        assert int(own[-1]) == model.EOS and set(own[:-1].tolist()) <= {7, 9}
        assert (found.labels[row, :5, 5] == model.IGNORED).all(), "the last codebook comes five rows late"


def test_sentences_fit_and_those_of_the_test_are_known_by_their_words() -> None:
    assert texts.fit("The 3 cats sat on Dr. Smith's mat.") and not texts.fit("if (a == b) { }") and not texts.fit("No.")
    assert texts.part_of("Hello, there!") == texts.part_of("hello there")
    for make in (texts.digits, texts.number):
        drawn = [make(random.Random(seed)) for seed in range(300)]
        assert len(set(drawn)) > 200 and all(1 <= len(texts.words_of(text)) < 40 for text in drawn)


def test_a_lost_clause_is_told() -> None:
    heard = "the cat sat on the mat and then it slept all day".split()  # noqa: SIM905
    whole = evaluate.Verdict("The cat sat on the mat, and then it slept all day.", heard, heard, 1.0, True)
    assert not whole.lost and evaluate.rate([whole], "voice") == 0
    cut = evaluate.Verdict(whole.text, heard[:6], heard, 0.8, True)
    assert cut.lost and evaluate.rate([cut], "voice") == pytest.approx(6 / 12)
    assert evaluate.Verdict(whole.text, heard, heard, 1.5, True).lost


def test_the_gate_names_every_miss_and_releases_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluate.misses(GOOD) == []
    bad = {**GOOD, "words": {**GOOD["words"], "wer": 0.33}, "semitones_apart": 4.0, "unended_share": float("nan")}  # type: ignore[dict-item]
    assert [each.split()[0] for each in evaluate.misses(bad)] == ["words_wer_above_flite", "unended_share", "semitones_too_near"]
    assert "These weights miss it: words_wer_above_flite is 0.09" in card.write(bad) and "pass it" in card.write(GOOD)
    ready, shipped = tmp_path / "ready", tmp_path / "shipped"
    ready.mkdir()
    (ready / "starter.json").write_text("{}")
    for measured, released in ((bad, False), (GOOD, True)):
        monkeypatch.setattr(program, "judge_folder", lambda folder, measured=measured: measured)
        assert program.release(ready, shipped) == (0 if released else 1) and shipped.exists() == released


def test_a_shifted_voice_keeps_its_pitch_ratio_and_loudness() -> None:
    tone = (np.sin(np.arange(16000) * 2 * np.pi * 200 / 16000) * 8000).astype(np.int16)
    higher = flite.shifted(tone, 1.25)
    assert len(higher) == 12800 and np.argmax(np.abs(np.fft.rfft(higher))) * 16000 / 12800 == pytest.approx(250, abs=2)
    assert np.abs(higher).max() == pytest.approx(8000, rel=0.05)


def test_two_steps_of_the_training_fit_together(tmp_path: Path) -> None:
    told = smoke.run(tmp_path)
    assert told["second_loss"] < told["first_loss"] < 8 and 0 < told["frames"] <= 24
    assert told["seconds"] == pytest.approx(told["frames"] / 40)
    assert sounded("no ten", tmp_path / "voice" / "sounds.gz") == "nN tEn"
    assert len(json.loads((tmp_path / "voice" / "starter.json").read_text())["voices"]) == 8
    assert next(islice(torch.load(tmp_path / "dia.pt", weights_only=True)["average"].values(), 1)).isfinite().all()
