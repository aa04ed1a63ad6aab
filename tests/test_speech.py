"""Speech with tiny Dias of the real classes: the same tokens as plain transformers, whole under streaming, Stop, faults and bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    DacModel,
    DiaFeatureExtractor,
    DiaForConditionalGeneration,
    DiaProcessor,
    DiaTokenizer,
)

from app.compat.hardware import probe
from app.compat.meter import read
from app.compat.plan import Choice, Need, Part, Plan, Precision, decide
from app.compat.seam import applied
from app.engine import sound, speech, takes, voices
from app.engine.codec import Codec
from app.engine.control import Control
from app.engine.dia import Decoding, Sampling
from app.engine.event import Event, Finished, Note, Sound, Step, Stopped
from app.engine.event import Part as Spoken
from app.engine.faults import NumbersBroke
from app.engine.hearing import Heard, chosen, composed
from app.engine.limits import DIA
from app.engine.request import SpeechRequest, VoicePrompt, from_json
from app.engine.turns import Part as ScriptPart
from app.engine.turns import Turn
from app.paths import Home
from app.sentence import Trouble
from tests import tiny

SHAPES = {"dia": tiny.DIA, "starter": tiny.STARTER}
TEXT = (
    "[S1] Hello there, how are you on this fine day? [S2] I am well, thank you (laughs), and you are as well, I hope."
)
LONG = " ".join(
    f"[S{1 + index % 2}] This is sentence number {index}, and it goes on for quite a while." for index in range(9)
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("voices")
    return {name: tiny.save_voice(top / name, shape) for name, shape in SHAPES.items()}


@pytest.fixture(scope="module")
def plan() -> Plan:
    parts = (Part("model", "speech", 10_000), Part("codec", "codec", 10_000))
    return decide(probe(), Need(kind="speech", parts=parts), Choice(dtype="float32"), {})


@pytest.fixture(scope="module")
def speakers(folders: dict[str, Path], plan: Plan) -> dict[str, speech.Speaker]:
    return {name: speech.load(folder, plan) for name, folder in folders.items()}


def run(
    speaker: speech.Speaker, job: Path, control: Control | None = None, plan: Plan | None = None, **settings: Any
) -> list[Event]:
    request = SpeechRequest(**({"text": TEXT, "seed": 5, "max_frames": 60} | settings))
    with applied(plan or PLAIN) as seam:
        return list(speaker.run(request, control or Control(), seam, job))


PLAIN = decide(probe(), Need(kind="speech"), Choice(dtype="float32"), {})


def joined(events: list[Event]) -> Path:
    assert isinstance(events[-1], Finished), events[-1]
    return Path(events[-1].files[0])


# The loop against transformers


def transformers_tokens(folder: Path, shape: tiny.Shape, prompt: sound.Samples | None, rows: int, **how: Any) -> Any:
    """Plain transformers, as its documentation says: processor, then generate()."""
    model = DiaForConditionalGeneration.from_pretrained(folder).eval()
    codec = DacModel.from_pretrained(folder / "codec").eval()
    hop = int(np.prod(shape.ratios))
    extractor = DiaFeatureExtractor(sampling_rate=shape.rate, hop_length=hop)
    processor = DiaProcessor(extractor, DiaTokenizer.from_pretrained(folder), codec)
    special = {"eos_token_id": shape.codes, "pad_token_id": shape.codes + 1, "bos_token_id": shape.codes + 2}
    inputs = processor(
        text=[TEXT], audio=prompt, return_tensors="pt",
        audio_kwargs={"delay_pattern": list(shape.delays), "sampling_rate": shape.rate} | special,
    )  # fmt: skip
    torch.manual_seed(11)
    with torch.inference_mode():
        rows_out = model.generate(
            **inputs, max_new_tokens=rows, decoder_start_token_id=shape.codes + 2, **special, **how
        )
        kwargs = {"delay_pattern": list(shape.delays), "bos_token_id": shape.codes + 2, "pad_token_id": shape.codes + 1}
        heard = (
            processor.get_audio_prompt_len(inputs["decoder_attention_mask"], audio_kwargs=kwargs)
            if prompt is not None
            else None
        )
        sounds = processor.batch_decode(rows_out, audio_prompt_len=heard, audio_kwargs=kwargs)
    return rows_out[0], sounds[0].numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("with_prompt", [False, True], ids=["plain", "prompted"])
@pytest.mark.parametrize(
    ("temperature", "guidance"), [(0.0, 3.0), (1.3, 3.0), (1.8, 1.0)], ids=["greedy", "sampled", "unguided"]
)
def test_tokens_and_sound_equal_plain_transformers(
    folders: dict[str, Path], name: str, with_prompt: bool, temperature: float, guidance: float, plan: Plan
) -> None:
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
        decoding = Decoding(model, "cpu", ids, heard, Sampling(guidance, temperature, 0.95, 45), 11, 80)
        while not decoding.done:
            decoding.step()
        assert seam.calls > 0
    assert torch.equal(decoding.rows, wanted)
    ours = codec.decode(decoding.codes(0, decoding.frames))
    assert ours.shape == wanted_sound.shape
    assert np.abs(ours - wanted_sound).max() < 2e-6


def test_a_seed_is_all_that_chance_is(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()

    def rows(seed: int, disturbed: bool = False) -> torch.Tensor:
        decoding = Decoding(model, "cpu", torch.tensor([1, 72, 105]), None, Sampling(), seed, 40)
        while not decoding.done:
            if disturbed:
                torch.rand(3)  # somebody else draws from torch's own generator meanwhile
            decoding.step()
        return decoding.rows

    assert torch.equal(rows(3), rows(3, disturbed=True))
    assert not torch.equal(rows(3), rows(4))


def test_max_frames_counts_the_delay_as_transformers_does(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    decoding = Decoding(model, "cpu", torch.tensor([1, 72]), None, Sampling(), 0, 50)
    while not decoding.done:
        decoding.step()
    assert (decoding.made, decoding.frames, decoding.cut_off) == (50, 50 - 16, True)


def test_going_on_makes_the_same_rows(folders: dict[str, Path]) -> None:
    model = DiaForConditionalGeneration.from_pretrained(folders["starter"]).eval()
    for broken_off in (1, 3, 20, 47, 49):
        whole, first = (Decoding(model, "cpu", torch.tensor([1, 72]), None, Sampling(), 0, 50) for _ in range(2))
        for _ in range(broken_off):
            first.step()
        second = Decoding(model, "cpu", torch.tensor([1, 72]), None, Sampling(), 99, 50, first.state(0))
        for each in (whole, second):
            while not each.done:
                each.step()
        assert torch.equal(whole.rows, second.rows)


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


def test_broken_numbers_are_noticed_and_the_ladder_goes_on_from_there(
    folders: dict[str, Path], plan: Plan, tmp_path: Path
) -> None:
    whole = joined(run(speech.load(folders["dia"], plan), tmp_path / "whole", max_frames=140))
    speaker = speech.load(folders["dia"], plan)
    dense = speaker._model.logits_dense
    made = itertools.count()

    def breaking(hidden: torch.Tensor) -> torch.Tensor:
        return torch.full_like(plain(hidden), torch.nan) if next(made) == 100 else plain(hidden)

    plain, dense.forward = dense.forward, breaking
    with pytest.raises(NumbersBroke) as caught:
        run(speaker, tmp_path / "broken", max_frames=140)
    assert (caught.value.step, caught.value.where) == (100, "speech")
    before = next(made)
    mended = joined(run(speaker, tmp_path / "broken", max_frames=140))
    assert next(made) - before - 1 == 40  # the hundred rows before were not made again
    assert np.array_equal(sound.read(mended)[0], sound.read(whole)[0])


# A whole run


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_tells_all_and_its_file_restores_the_request(
    speakers: dict[str, speech.Speaker], name: str, tmp_path: Path
) -> None:
    speaker, job = speakers[name], tmp_path / "job"
    events = run(speaker, job, text=LONG, format="flac", tail_s=0.5)
    path = joined(events)
    end = events[-1]
    assert isinstance(end, Finished)
    parts = [event for event in events if isinstance(event, Spoken)]
    assert len(parts) > 1 and [part.index for part in parts] == list(range(len(parts)))
    assert [part.seed for part in parts] == [5 + index for index in range(len(parts))]
    for part in parts:
        chunks = [event for event in events if isinstance(event, Sound) and event.part == part.index]
        whole = np.concatenate([sound.read(Path(chunk.path))[0] for chunk in chunks])
        assert np.array_equal(whole, sound.read(Path(part.path))[0])
        for one, other in itertools.pairwise(chunks):
            assert one.start_s + one.seconds == pytest.approx(other.start_s)
        assert part.seconds == pytest.approx(sum(chunk.seconds for chunk in chunks))
    steps = [event for event in events if isinstance(event, Step)]
    assert steps and all(step.unit == "frames" and step.memory.process_bytes > 0 for step in steps)
    assert all(step.done <= step.total and step.parts == len(parts) for step in steps)
    assert all(step.realtime == pytest.approx(step.rate / speaker.limits.frame_rate) for step in steps)
    assert any(step.attention for step in steps)
    assert end.seconds == pytest.approx(sound.seconds_of(path), abs=0.01)
    assert from_json(sound.read_settings(path) or {}) == SpeechRequest(
        text=LONG, seed=5, max_frames=60, format="flac", tail_s=0.5
    )
    assert not list(job.glob(".*")) and not list(job.glob("unfinished-*"))


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_sound_comes_within_a_second_and_a_half(
    speakers: dict[str, speech.Speaker], name: str, tmp_path: Path
) -> None:
    speaker = speakers[name]
    rows: list[int] = []
    step = Decoding.step

    def counting(decoding: Decoding) -> None:
        step(decoding)
        rows.append(decoding.made)

    with pytest.MonkeyPatch.context() as patch, applied(PLAIN) as seam:
        patch.setattr(Decoding, "step", counting)
        for event in speaker.run(SpeechRequest(text=TEXT, seed=1, max_frames=300), Control(), seam, tmp_path / "job"):
            if isinstance(event, Sound):
                break
    assert rows[-1] <= 1.5 * speaker.limits.frame_rate


def test_running_again_does_nothing_twice(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    first = run(speakers["dia"], tmp_path, text=LONG, seed=None)
    again = run(speakers["dia"], tmp_path, text=LONG, seed=None)
    assert [e for e in again if isinstance(e, Spoken)] == [e for e in first if isinstance(e, Spoken)]
    assert not [e for e in again if isinstance(e, Step | Sound)]
    other = run(speakers["dia"], tmp_path, text=LONG, seed=None, temperature=1.0)
    assert [e for e in other if isinstance(e, Step)]  # other settings: other parts


def test_what_a_kill_leaves_is_gone_on_with(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    """As if it were killed in the middle: parts without their words, half-written files, a broken part."""
    whole = joined(run(speakers["starter"], tmp_path / "whole", text=LONG))
    job = tmp_path / "killed"
    with applied(PLAIN) as seam:
        request = SpeechRequest(text=LONG, seed=5, max_frames=60)
        spoken = 0
        for event in speakers["starter"].run(request, Control(), seam, job):
            spoken += isinstance(event, Spoken)
            if spoken == 2 and isinstance(event, Sound):
                break
    (job / "part-001.json").unlink()
    (job / ".part-002.wav.99").write_bytes(b"RIFF")
    (job / "part-002.wav").write_bytes(b"RIFF half")
    assert np.array_equal(sound.read(joined(run(speakers["starter"], job, text=LONG)))[0], sound.read(whole)[0])


def test_a_take_and_its_words_never_belong_to_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between writing the sound and writing the words about it: then it was not there."""
    rest: dict[str, Any] = {"text": "x", "seed": 1, "whole": True, "codes": np.zeros((3, 9), np.int16)}
    takes.save(tmp_path, 0, np.zeros(100, np.float32), 16000, key="first", **rest)
    assert takes.find(tmp_path / "part-000.wav") is not None
    monkeypatch.setattr(takes.json, "dumps", lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        takes.save(tmp_path, 0, np.ones(100, np.float32), 16000, key="second", **rest)
    assert takes.find(tmp_path / "part-000.wav") is None


def test_stop_keeps_what_is_there_each_of_fifty_times(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    step = Decoding.step
    settled_bytes = 0
    for time in range(50):
        control, at, made = Control(), int(rng.integers(1, 100)), itertools.count(1)
        seen: list[int] = []

        def stopping(
            decoding: Decoding, control: Control = control, at: int = at, made: Any = made, seen: list[int] = seen
        ) -> None:
            step(decoding)
            seen.append(next(made))
            if seen[-1] == at:
                control.stop()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Decoding, "step", stopping)
            events = run(speakers["starter"], tmp_path / str(time), control, text=LONG, max_frames=60)
        assert seen[-1] == at, "not one step more"
        end = events[-1]
        assert isinstance(end, Stopped)
        assert bool(end.files) == (at > 3)  # the first frame is whole once the delay is over
        for file in end.files:
            assert sound.seconds_of(Path(file)) == pytest.approx(end.seconds, abs=0.01)
            assert sound.read_settings(Path(file))
        shutil.rmtree(tmp_path / str(time))
        if time == 9:
            settled_bytes = read().process_bytes
    assert read().process_bytes < 1.05 * settled_bytes


def test_a_stopped_run_goes_on_and_ends_like_one_that_was_not(
    speakers: dict[str, speech.Speaker], tmp_path: Path
) -> None:
    whole = joined(run(speakers["dia"], tmp_path / "whole", max_frames=200))
    control = Control()
    with applied(PLAIN) as seam:
        request = SpeechRequest(text=TEXT, seed=5, max_frames=200)
        for event in speakers["dia"].run(request, control, seam, tmp_path / "job"):
            if isinstance(event, Sound):
                control.stop()
    assert isinstance(event, Stopped)
    assert np.array_equal(
        sound.read(joined(run(speakers["dia"], tmp_path / "job", max_frames=200)))[0], sound.read(whole)[0]
    )


def test_a_stop_before_the_start(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    control = Control()
    control.stop()
    assert isinstance(run(speakers["dia"], tmp_path, control)[-1], Stopped)


def test_one_part_is_done_again_and_the_others_stay(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    first = [e for e in run(speakers["dia"], tmp_path / "first", text=LONG) if isinstance(e, Spoken)]
    keep = tuple(part.path for part in first)
    events = run(speakers["dia"], tmp_path / "again", text=LONG, seed=77, only_parts=(1,), keep=keep)
    (redone,) = [e for e in events if isinstance(e, Spoken)]
    assert (redone.index, redone.seed) == (1, 78)
    joined(events)
    for index, part in enumerate(first):
        same = np.array_equal(
            sound.read(Path(part.path))[0], sound.read(tmp_path / "again" / f"part-{index:03d}.wav")[0]
        )
        assert same == (index != 1)
    alone = run(speakers["dia"], tmp_path / "alone", text=LONG, only_parts=(1,))
    assert [e.index for e in alone if isinstance(e, Spoken)] == [1]
    for wrong in (
        {"only_parts": (99,)},
        {"only_parts": (0,), "keep": keep[:1]},
        {"only_parts": (0,), "keep": ("gone",) * len(keep)},
    ):
        with pytest.raises(Trouble):
            run(speakers["dia"], tmp_path / "wrong", text=LONG, **wrong)
    with pytest.raises(Trouble, match="other words"):
        run(
            speakers["dia"],
            tmp_path / "wrong",
            text=LONG.replace("9", "ten").replace("sentence", "phrase"),
            only_parts=(0,),
            keep=keep,
        )


def test_a_pause_is_silence_of_that_length(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    plain = joined(
        run(speakers["starter"], tmp_path / "plain", text="[S1] One two three. (pause 0.001s) Four five six.")
    )
    paused = joined(
        run(speakers["starter"], tmp_path / "paused", text="[S1] One two three. (pause 1.5s) Four five six. (pause 2s)")
    )
    assert sound.seconds_of(paused) - sound.seconds_of(plain) == pytest.approx(3.5, abs=0.01)


# What is heard before


def test_the_voice_of_the_part_before_is_heard(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    heard: list[int] = []
    begin = Decoding.__init__

    def listening(self: Decoding, model: Any, device: str, text: Any, prompt: Any, *others: Any) -> None:
        heard.append(0 if prompt is None else len(prompt))
        begin(self, model, device, text, prompt, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decoding, "__init__", listening)
        run(speakers["dia"], tmp_path / "with", text=LONG)
        take = takes.find(tmp_path / "with" / "part-000.wav")
        assert take is not None and heard[0] == 0 and heard[1] == take.frames > 0
        heard.clear()
        run(speakers["dia"], tmp_path / "without", text=LONG, carry_voice=False)
        assert set(heard) == {0}


def test_a_part_that_lost_its_way_is_not_heard(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    """It would leave no room for the next one: prompt and part share the decoder's positions."""
    run(speakers["starter"], tmp_path, text=LONG)
    saved = takes.find(tmp_path / "part-000.wav")
    assert saved is not None
    lost = np.zeros((3050, 4), np.int16)
    takes.save(
        tmp_path,
        0,
        np.zeros(16000, np.float32),
        16000,
        text=saved.text,
        seed=saved.seed,
        key=saved.key,
        whole=True,
        codes=lost,
    )
    events = run(speakers["starter"], tmp_path, text=LONG)
    assert next(event.part for event in events if isinstance(event, Step)) == 1
    take = takes.find(tmp_path / "part-001.wav")
    assert take is not None and 30 < take.frames < 60


def turns(*said: tuple[int, str]) -> tuple[Turn, ...]:
    return tuple(Turn(*each) for each in said)


def test_who_is_heard_before_a_part() -> None:
    one, two = (Heard(torch.zeros(1, 9), turns((speaker, "x"))) for speaker in (1, 2))
    both = Heard(torch.zeros(1, 9), turns((1, "x"), (2, "y")))
    for clip, before, speaker, wanted in (
        (None, (), (1,), None), (one, (both,), (1,), one), (one, (both,), (2,), both), (one, (one, both), (1, 2), both),
        (one, (), (2,), one), (None, (one, two), (2,), two), (None, (one, one), (2,), one),
    ):  # fmt: skip
        assert chosen(ScriptPart(turns(*((each, "z") for each in speaker)), 1.0), clip, before) is wanted


def test_what_the_encoder_reads() -> None:
    assert composed(turns((1, "a")), DIA) == "[S1] a"
    assert composed(turns((1, "a"), (2, "b")), DIA) == "[S1] a [S2] b [S1]"
    assert composed(turns((1, "a"), (1, "b"), (2, "c"), (1, "d")), DIA) == "[S1] a b [S2] c [S1] d [S2]"
    assert composed(turns((2, "a"), (1, "b")), DIA) == "[S1] a [S2] b [S1]"
    assert composed(turns((2, "a"), (1, "b")), dataclasses.replace(DIA, carries=False)) == "[S2] a [S1] b"


def clip(path: Path, seconds: float, rate: int = 22050, loud: float = 0.2) -> str:
    samples = loud * np.random.default_rng(0).standard_normal(int(seconds * rate))
    sound.write(path, samples.astype(np.float32), rate)
    return str(path)


def test_a_clip_gives_the_voice(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    prompt = VoicePrompt(clip(tmp_path / "clip.wav", 6), "Anyone's words, said in six seconds.")
    plain, voiced = (run(speakers["dia"], tmp_path / str(voice is None), voice=voice) for voice in (None, prompt))
    assert not np.array_equal(sound.read(joined(plain))[0], sound.read(joined(voiced))[0])


def test_clips_are_made_ready(tmp_path: Path) -> None:
    silence = np.zeros(22050, np.float32)
    noise = (0.2 * np.random.default_rng(0).standard_normal(22050 * 6)).astype(np.float32)
    sound.write(tmp_path / "padded.wav", np.concatenate([silence, noise, silence]), 22050)
    ready = voices.prepared(VoicePrompt(str(tmp_path / "padded.wav"), "[S1] “Six” seconds."), DIA)
    assert ready.rate == 44100 and len(ready.samples) / 44100 == pytest.approx(6.25, abs=0.05)
    assert ready.turns == turns((1, '"Six" seconds.')) and ready.notes == ()
    brief = voices.prepared(VoicePrompt(clip(tmp_path / "brief.wav", 2), "Two."), DIA)
    assert [note.key for note in brief.notes] == ["voice.brief"]


def test_a_two_hour_clip_is_cut_with_a_word_about_it(tmp_path: Path) -> None:
    words = "[S1] " + "Some words that go on and on. " * 3500
    path = clip(tmp_path / "long.wav", 7200, rate=2000)
    ready = voices.prepared(VoicePrompt(path, words), DIA)
    assert 8 <= len(ready.samples) / ready.rate <= 12
    assert [note.key for note in ready.notes] == ["voice.trimmed"]
    kept = ready.turns[0].text
    assert words[5:].startswith(kept) and 60 < len(kept) < 250
    small = dataclasses.replace(DIA, rows_most=600, frame_rate=40.0, delay=3)
    assert len(voices.prepared(VoicePrompt(path, words), small).samples) / small.rate < small.seconds_most / 2


@pytest.mark.parametrize(
    ("seconds", "loud", "words", "key"),
    [
        (5, 0.0, "Hush.", "voice.silent"), (0, 0.2, "Hush.", "sound.empty"), (0.3, 0.2, "Hush.", "voice.short"),
        (5, 0.2, " ", "voice.no-words"), (5, 0.2, "[S3] Hush.", "voice.bad-words"), (5, 0.2, "hush " * 300, "voice.wordy"),
    ],
)  # fmt: skip
def test_clips_that_are_no_voice(
    speakers: dict[str, speech.Speaker], tmp_path: Path, seconds: float, loud: float, words: str, key: str
) -> None:
    path = clip(tmp_path / "clip.wav", seconds, loud=loud)
    if key == "sound.empty":
        Path(path).write_bytes(b"")
    with pytest.raises(Trouble) as caught:
        run(speakers["dia"], tmp_path / "job", voice=VoicePrompt(path, words))
    assert caught.value.sentence.key == key
    with pytest.raises(Trouble):
        run(speakers["dia"], tmp_path / "job", voice=VoicePrompt(str(tmp_path / "nowhere.wav"), "Hush."))


def test_voices_are_kept_by_name(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "models").made()
    kept = voices.keep(home, "  Grandma's  voice ", Path(clip(tmp_path / "clip.wav", 6)), "Hello, dear.", DIA)
    (home.voices / "junk.json").write_text("{")
    assert voices.list_voices(home) == (kept,)
    assert (kept.name, kept.prompt.transcript) == ("Grandma's voice", "[S1] Hello, dear.")
    joined(run(speakers["dia"], tmp_path / "job", voice=kept.prompt))
    voices.forget(home, kept)
    assert voices.list_voices(home) == ()
    with pytest.raises(Trouble):
        voices.keep(home, "///", tmp_path / "clip.wav", "Hello, dear.", DIA)
    assert voices.list_voices(Home(tmp_path / "none", tmp_path)) == ()


# Loading


def moved(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target


def test_a_folder_may_lie_anywhere_and_its_codec_apart(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    folder = moved(folders["dia"], tmp_path / "there")
    (folder / "processor_config.json").write_text(json.dumps({"audio_tokenizer": {"name_or_path": "/nowhere/dac"}}))
    shutil.move(folder / "codec", tmp_path / "dac")
    with pytest.raises(Trouble, match="codec"):
        speech.load(folder, plan)
    speaker = speech.load(folder, plan, tmp_path / "dac")
    assert speaker.limits.rate == 44100
    joined(run(speaker, tmp_path / "job"))


def test_what_cannot_be_loaded_is_told(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    for number, (name, change) in enumerate(
        {
            "model.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-1000]),
            "codec/model.safetensors": lambda path: path.write_bytes(path.read_bytes()[:5]),
            "config.json": lambda path: path.write_text('{"model_type": "bert"}'),
            "codec/config.json": lambda path: path.write_text("{"),
        }.items()
    ):
        folder = moved(folders["dia"], tmp_path / str(number))
        change(folder / name)
        with pytest.raises(Trouble):
            speech.load(folder, plan)
    folder = moved(folders["dia"], tmp_path / "pickled")
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(Trouble):
        speech.load(folder, plan)
    with pytest.raises(Trouble):
        speech.load(tmp_path / "nowhere", plan)


@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_offloaded_voices_say_the_same(
    folders: dict[str, Path], speakers: dict[str, speech.Speaker], plan: Plan, tmp_path: Path, offload: Any
) -> None:
    """The device that weights travel to is the processor here: what is shown is that each layer finds them."""
    speaker = speech.load(folders["dia"], dataclasses.replace(plan, offload=offload))
    plain = run(speakers["dia"], tmp_path / "plain")
    assert np.array_equal(sound.read(joined(plain))[0], sound.read(joined(run(speaker, tmp_path / offload)))[0])


@pytest.mark.parametrize(
    ("storage", "compute"), [("bfloat16", "bfloat16"), ("float16", "float16"), ("float16", "float32")]
)
def test_every_precision_speaks(
    folders: dict[str, Path], plan: Plan, tmp_path: Path, storage: Any, compute: Any
) -> None:
    precision = tuple(
        Precision(name, role, storage, compute, "cpu") for name, role in (("model", "speech"), ("codec", "codec"))
    )  # type: ignore[arg-type]
    speaker = speech.load(folders["dia"], dataclasses.replace(plan, precision=precision))
    kept = {parameter.dtype for parameter in speaker._model.model.decoder.layers[0].mlp.parameters()}
    assert kept == {getattr(torch, storage)}
    used: set[torch.dtype] = set()
    projection = speaker._model.model.decoder.layers[0].self_attention.q_proj
    projection.register_forward_hook(lambda module, given, result: used.add(result.dtype))
    joined(run(speaker, tmp_path / "job"))
    assert used == {getattr(torch, compute)}


def test_closing_gives_the_weights_back(folders: dict[str, Path], plan: Plan) -> None:
    import gc
    import weakref

    speaker = speech.load(folders["dia"], plan)
    weights = weakref.ref(speaker._model)
    speaker.close()
    gc.collect()
    assert weights() is None


def test_a_fatal_script_is_refused_before_anything_runs(speakers: dict[str, speech.Speaker], tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=r"\[S1\] and \[S2\]"):
        run(speakers["dia"], tmp_path / "job", text="[S3] Who am I?")
    assert not (tmp_path / "job").exists()


def test_a_voice_of_few_words_offers_dia(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    folder = moved(folders["starter"], tmp_path / "starter")
    told = {
        "words": ["hello", "one", "two"],
        "spelling": {"1": "one"},
        "generation": {"temperature": 0.0, "guidance_scale": 1.0},
    }
    (folder / "starter.json").write_text(json.dumps(told))
    speaker = speech.load(folder, plan)
    with pytest.raises(Trouble) as caught:
        run(speaker, tmp_path / "job", text="Hello elephants.")
    assert caught.value.cure == "get-dia" and "elephants" in str(caught.value)
    prompt = VoicePrompt(clip(tmp_path / "clip.wav", 6), "One two.")
    events = run(speaker, tmp_path / "job", text="[S2] Hello 1 two.", voice=prompt)
    joined(events)
    assert "speech.own-voices" in [event.sentence.key for event in events if isinstance(event, Note)]
    assert next(event.text for event in events if isinstance(event, Spoken)) == "[S2] Hello one two."
