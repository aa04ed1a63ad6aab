"""Speak scripts with tiny Dia models: progress, Stop and kills, redoing single parts."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.machine.meter import read
from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, PartDone, Sound, Step, Stopped
from app.engine.jobs.events import PartDone as Spoken
from app.engine.jobs.parts import LESSONS, SPOKEN, mark_elsewhere
from app.engine.jobs.request import SpeechRequest, VoicePrompt, from_json
from app.engine.models.fingerprint import fingerprint
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.families.dia.decoder import Decoding
from app.engine.speech.run import loader
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text.sounds import SIGNS
from tests.support import speech_fixtures
from tests.support.other_functions import set_in
from tests.support.speech_fixtures import LONG, PLAIN, SHAPES, TEXT, copy_voice, dia_of, find_result, run, write_clip

pytestmark = pytest.mark.long

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers


@pytest.mark.parametrize("name", ["dia", pytest.param("starter", marks=pytest.mark.slow)])
def test_a_run_tells_all_and_its_file_restores_the_request(speakers: dict[str, loader.Speaker], name: str, tmp_path: Path) -> None:
    speaker, job = speakers[name], tmp_path / "job"
    events = run(speaker, job, text=LONG, format="flac", tail_s=0.5)
    path = find_result(events)
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
    assert any(step.ran for step in steps)
    assert end.rate > 0.9 * sum(part.seconds for part in parts) * speaker.limits.frame_rate / end.elapsed_s, "all parts count"
    assert end.seconds == pytest.approx(sound.measure_seconds(path), abs=0.01)
    assert from_json(sound.read_settings(path) or {}) == SpeechRequest(text=LONG, seed=5, max_frames=60, format="flac", tail_s=0.5)
    assert not list(job.glob(".*")) and not list(job.glob("unfinished-*"))


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_sound_comes_within_a_second_and_a_half(speakers: dict[str, loader.Speaker], name: str, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_running_again_does_nothing_twice(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    first = run(speakers["dia"], tmp_path, text=LONG, seed=None)
    again = run(speakers["dia"], tmp_path, text=LONG, seed=None)
    assert [e for e in again if isinstance(e, Spoken)] == [e for e in first if isinstance(e, Spoken)]
    assert not [e for e in again if isinstance(e, Step | Sound)]
    other = run(speakers["dia"], tmp_path, text=LONG, seed=None, temperature=1.0)
    assert [e for e in other if isinstance(e, Step)]  # other settings: other parts


def test_other_weights_make_every_part_anew(speakers: dict[str, loader.Speaker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job stopped before an update of Hearth does not go on in the middle with other codes."""
    run(speakers["starter"], tmp_path, text=LONG)
    dia = dia_of(speakers["starter"])
    newer = dataclasses.replace(dia, limits=dataclasses.replace(dia.limits, edition="3"))
    monkeypatch.setattr(speakers["starter"], "voice", newer)
    assert [e for e in run(speakers["starter"], tmp_path, text=LONG) if isinstance(e, Step)]


def test_what_a_kill_leaves_is_gone_on_with(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    """Simulate a kill: parts without their description, half-written files, a broken part."""
    whole = find_result(run(speakers["starter"], tmp_path / "whole", text=LONG))
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
    assert np.array_equal(sound.read(find_result(run(speakers["starter"], job, text=LONG)))[0], sound.read(whole)[0])


def test_a_take_and_its_words_never_belong_to_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part killed between writing its sound and its description does not count as finished."""
    path = SPOKEN.shown(tmp_path, 0)
    part = SpokenPart("x", 1, "first", 100 / 16000, True, np.zeros((3, 9), np.int16), path)
    spoken_parts.save(part, np.zeros(100, np.float32), 16000)
    assert spoken_parts.find(tmp_path / "part-000.wav") is not None
    set_in(monkeypatch, spoken_parts, "json", dumps=lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        spoken_parts.save(dataclasses.replace(part, key="second"), np.ones(100, np.float32), 16000)
    assert spoken_parts.find(tmp_path / "part-000.wav") is None


@pytest.mark.slow
def test_stop_keeps_what_is_there_each_of_fifty_times(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    step = Decoding.step
    settled_bytes = 0
    for time in range(50):
        control, at, made = Control(), int(rng.integers(1, 100)), itertools.count(1)
        seen: list[int] = []

        def stopping(decoding: Decoding, control: Control = control, at: int = at, made: Any = made, seen: list[int] = seen) -> None:
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
            assert sound.measure_seconds(Path(file)) == pytest.approx(end.seconds, abs=0.01)
            assert sound.read_settings(Path(file))
        shutil.rmtree(tmp_path / str(time))
        if time == 9:
            settled_bytes = read().process_bytes
    assert read().process_bytes < 1.05 * settled_bytes


def test_a_stopped_run_goes_on_and_ends_like_one_that_was_not(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    whole = find_result(run(speakers["dia"], tmp_path / "whole", max_frames=200))
    control = Control()
    with applied(PLAIN) as seam:
        request = SpeechRequest(text=TEXT, seed=5, max_frames=200)
        for event in speakers["dia"].run(request, control, seam, tmp_path / "job"):
            if isinstance(event, Sound):
                control.stop()
            if isinstance(event, PartDone):
                assert not event.whole, "the page would show it as finished"
    assert isinstance(event, Stopped)
    assert np.array_equal(sound.read(find_result(run(speakers["dia"], tmp_path / "job", max_frames=200)))[0], sound.read(whole)[0])


def test_a_stop_before_the_start(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    control = Control()
    control.stop()
    assert isinstance(run(speakers["dia"], tmp_path, control)[-1], Stopped)


def test_one_part_is_done_again_and_the_others_stay(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    first = [e for e in run(speakers["dia"], tmp_path / "first", text=LONG) if isinstance(e, Spoken)]
    keep = tuple(part.path for part in first)
    events = run(speakers["dia"], tmp_path / "again", text=LONG, seed=77, only_parts=(1,), keep=keep)
    told = {e.index: e for e in events if isinstance(e, Spoken)}
    assert told[1].seed == 78 and sorted(told) == list(range(len(first))), "the others can still be heard and redone"
    assert [told[part.index].text for part in first] == [part.text for part in first]
    settings = sound.read_settings(find_result(events))
    assert settings is not None and settings["seed"] == first[0].seed, (
        "most parts are of the first: its seed comes back with Reuse settings"
    )
    for index, part in enumerate(first):
        same = np.array_equal(sound.read(Path(part.path))[0], sound.read(tmp_path / "again" / f"part-{index:03d}.wav")[0])
        assert same == (index != 1)
    run(speakers["dia"], tmp_path / "same", text=LONG, only_parts=(1,), keep=keep)
    assert (tmp_path / "same" / "part-001.wav").read_bytes() == Path(first[1].path).read_bytes(), (
        "it hears what came before it, not what comes after"
    )
    alone = run(speakers["dia"], tmp_path / "alone", text=LONG, only_parts=(1,))
    assert [e.index for e in alone if isinstance(e, Spoken)] == [1]
    for wrong in ({"only_parts": (99,)}, {"only_parts": (0,), "keep": keep[:1]}, {"only_parts": (0,), "keep": ("gone",) * len(keep)}):
        with pytest.raises(Trouble):
            run(speakers["dia"], tmp_path / "wrong", text=LONG, **wrong)
    with pytest.raises(Trouble, match=r"The sound of part 3 .*gone"):
        run(speakers["dia"], tmp_path / "wrong", text=LONG, only_parts=(0,), keep=(*keep[:2], "gone", *keep[3:]))
    with pytest.raises(Trouble, match="text of part"):
        run(speakers["dia"], tmp_path / "wrong", text=LONG.replace("9", "ten").replace("sentence", "phrase"), only_parts=(0,), keep=keep)


@pytest.mark.slow
def test_a_redo_that_is_stopped_before_it_makes_a_sound_loses_nothing(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    first = [e for e in run(speakers["dia"], tmp_path / "first", text=LONG) if isinstance(e, Spoken)]
    control = Control()
    control.stop()
    keep = tuple(part.path for part in first)
    events = run(speakers["dia"], tmp_path / "again", control, text=LONG, seed=77, only_parts=(1,), keep=keep)
    told = sorted(e.index for e in events if isinstance(e, Spoken))
    assert isinstance(events[-1], Stopped) and told == list(range(len(first)))
    whole = find_result(run(speakers["dia"], tmp_path / "first", text=LONG))
    assert np.array_equal(sound.read(Path(events[-1].files[0]))[0], sound.read(whole)[0])
    resumed = run(speakers["dia"], tmp_path / "again", text=LONG, seed=77, only_parts=(1,), keep=keep)
    assert isinstance(resumed[-1], Finished) and next(e for e in resumed if isinstance(e, Spoken) and e.index == 1).seed == 78


@pytest.mark.slow
def test_only_what_changed_is_spoken_and_the_rest_taken_over(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    """A new first part hears what was taken over after it: it would have another voice otherwise."""
    sentences = [f"{name} went down to the river with the other boats." for name in ("Anna", "Boris", "Clara")]
    text, changed = (" (pause 0.2s) ".join(["[S1] " + first, *sentences[1:]]) for first in (sentences[0], "Nobody stayed at home all day."))
    takes = tuple(e.path for e in run(speakers["dia"], tmp_path / "first", text=text) if isinstance(e, Spoken))
    assert len(takes) == 3

    def read(folder: str, index: int) -> bytes:
        return (tmp_path / folder / f"part-{index:03d}.wav").read_bytes()

    events = run(speakers["dia"], tmp_path / "changed", text=changed, only_parts=(0,), keep=("", *takes[1:]))
    assert isinstance(events[-1], Finished) and [e.index for e in events if isinstance(e, Spoken)] == [1, 2, 0]
    assert [read("changed", n) == read("first", n) for n in range(3)] == [False, True, True]
    run(speakers["dia"], tmp_path / "alone", text=changed, only_parts=(0,))
    assert read("alone", 0) != read("changed", 0)
    moved = " (pause 0.2s) ".join(["[S1] " + sentences[2], sentences[0]])
    joined = run(speakers["dia"], tmp_path / "moved", text=moved, keep=(takes[2], takes[0]))
    assert isinstance(joined[-1], Finished) and [read("moved", n) for n in range(2)] == [read("first", n) for n in (2, 0)]
    assert not any(isinstance(e, Sound | Step) for e in joined), "nothing is spoken"


@pytest.mark.slow
def test_a_part_of_a_stopped_script_is_done_again_and_the_script_gone_on_with(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    text = " (pause 0.2s) ".join(["[S1] Anna went down to the river.", "Boris stayed behind.", "Clara had gone before."])
    first = [e for e in run(speakers["dia"], tmp_path / "first", text=text, only_parts=(0, 1)) if isinstance(e, Spoken)]
    asked: dict[str, Any] = {"text": text, "seed": 77, "keep": (*(part.path for part in first), "")}
    events = run(speakers["dia"], tmp_path / "again", only_parts=(1,), **asked)
    assert isinstance(events[-1], Stopped) and events[-1].files, "a part is missing still"
    assert sorted(e.index for e in events if isinstance(e, Spoken)) == [0, 1]
    redone = (tmp_path / "again" / "part-001.wav").read_bytes()
    shutil.rmtree(tmp_path / "first")  # what was taken over lies in the job's own folder
    resumed = run(speakers["dia"], tmp_path / "again", only_parts=(1, 2), **asked)
    assert isinstance(resumed[-1], Finished) and (tmp_path / "again" / "part-001.wav").read_bytes() == redone
    assert sorted(e.index for e in resumed if isinstance(e, Spoken)) == [0, 1, 2]
    control = Control()
    control.stop()
    cut = run(
        speakers["dia"],
        tmp_path / "cut",
        control,
        text=text,
        keep=("", *(str(tmp_path / "again" / f"part-00{n}.wav") for n in (1, 2))),
        only_parts=(0,),
    )
    assert isinstance(cut[-1], Stopped) and sorted(e.index for e in cut if isinstance(e, Spoken)) == [1, 2]


def test_a_pause_is_silence_of_that_length(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    plain = find_result(run(speakers["starter"], tmp_path / "plain", text="[S1] One two three. (pause 0.001s) Four five six."))
    paused = find_result(run(speakers["starter"], tmp_path / "paused", text="[S1] One two three. (pause 1.5s) Four five six. (pause 2s)"))
    assert sound.measure_seconds(paused) - sound.measure_seconds(plain) == pytest.approx(3.5, abs=0.01)


def test_a_fatal_script_is_refused_before_anything_runs(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=r"has only tags, pauses or punctuation"):
        run(speakers["dia"], tmp_path / "job", text="[S3] (pause 1s)")
    assert not (tmp_path / "job").exists()


def test_a_voice_that_reads_sounds_is_given_words_and_refuses_other_voices(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    folder = copy_voice(folders["starter"], tmp_path / "starter")
    (folder / "letters.bin").write_bytes(zlib.compress(json.dumps({"signs": SIGNS, "words": {}, "rules": {}}).encode()))
    told = {"letters": "letters.bin", "generation": {"temperature": 0.0, "guidance_scale": 1.0}}
    (folder / "starter.json").write_text(json.dumps(told))
    speaker = loader.load(folder, plan)
    prompt = VoicePrompt(write_clip(tmp_path / "clip.wav", 6), "One two.")
    with pytest.raises(Trouble) as caught:
        run(speaker, tmp_path / "job", text="[S2] Hello 1 two.", voice=prompt)
    assert caught.value.sentence.key == "voice.not-own" and caught.value.cure == "use:dia-1.6b"
    events = run(speaker, tmp_path / "job", text="[S2] Hello 1 two.")
    find_result(events)
    assert next(event.text for event in events if isinstance(event, Spoken)) == "[S2] Hello one two."


def stop_in_the_middle(speaker: loader.Speaker, job: Path) -> Path:
    """Return what is kept of the part that was being spoken."""
    control = Control()
    with applied(PLAIN) as seam:
        for event in speaker.run(SpeechRequest(text=TEXT, seed=5, max_frames=200), control, seam, job):
            if isinstance(event, Sound):
                control.stop()
    return job / "unfinished-000.json"


@pytest.mark.slow
def test_a_part_that_another_machine_began_goes_on_here(folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    """It has the voice in a folder of another name; what counts is what lies in it."""
    copy = copy_voice(folders["dia"], tmp_path / "another name")
    here, there = (loader.load(folder, plan, name=fingerprint(folder)) for folder in (folders["dia"], copy))
    whole = run(here, tmp_path / "whole", max_frames=200)
    kept = stop_in_the_middle(there, tmp_path / "begun")
    (tmp_path / "job").mkdir()
    shutil.copy(kept, tmp_path / "job")
    again = run(here, tmp_path / "job", max_frames=200)
    assert sum(isinstance(each, Sound) for each in again) < sum(isinstance(each, Sound) for each in whole)
    assert np.array_equal(sound.read(find_result(whole))[0], sound.read(find_result(again))[0])
    shutil.copytree(tmp_path / "begun", tmp_path / "other voice")
    (copy / "config.json").write_text((copy / "config.json").read_text() + "\n")
    other = loader.load(copy, plan, name=fingerprint(copy))
    assert sum(isinstance(each, Sound) for each in run(other, tmp_path / "other voice", max_frames=200)) == sum(
        isinstance(each, Sound) for each in whole
    )


@pytest.fixture(scope="module")
def begun(speakers: dict[str, loader.Speaker], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, sound.Samples]:
    """What a stop in the middle of a part left, and what the part is where nobody stops it."""
    folder = tmp_path_factory.mktemp("begun")
    whole = sound.read(find_result(run(speakers["dia"], folder / "whole", max_frames=200)))[0]
    stop_in_the_middle(speakers["dia"], folder / "job")
    for part in (folder / "job").glob("part-*"):
        part.unlink()
    return folder / "job", whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"rows": [[1, 2]]}, {"rows": "x"}, {"rows": [[5000] * 9] * 60}, {"rows": [[-1] * 9] * 60}, {"rows": [[1024] * 9] * 60},
        {"rows": [[1] * 9] * 9999}, {"rows": [[0.5] * 9] * 60}, {"generator": ""}, {"generator": "AAAA"}, {"ended": "x"}, {"ended": 10**9},
        {"generator": "/" * 6741 + "w=="}, {"given": 10**9}, {"given": -1}, {"given": "x"},
    ],
    ids=lambda change: str(change)[:30],
)  # fmt: skip
def test_a_part_whose_beginning_is_odd_begins_anew(
    change: dict[str, object], begun: tuple[Path, sound.Samples], speakers: dict[str, loader.Speaker], tmp_path: Path
) -> None:
    """What another machine sends may hold anything; the worst that it does is to be of no use."""
    kept = Path(shutil.copytree(begun[0], tmp_path / "job")) / "unfinished-000.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **change}))
    again = run(speakers["dia"], tmp_path / "job", max_frames=200)
    assert np.array_equal(begun[1], sound.read(find_result(again))[0])


@pytest.mark.slow
@pytest.mark.parametrize("codes", [[[32767] * 9], [[-5] * 9], [[5]]], ids=str)
def test_a_finished_part_whose_codes_are_odd_is_heard_by_its_sound(
    codes: list[list[int]], speakers: dict[str, loader.Speaker], tmp_path: Path
) -> None:
    """What another machine sends may hold anything, and each resume reads it again."""
    job = tmp_path / "job"
    run(speakers["dia"], job, text=LONG, max_frames=30, only_parts=(0,))
    about = job / "part-000.json"
    odd = np.tile(np.array(codes, "<i2"), (20, 1))
    about.write_text(
        json.dumps({**json.loads(about.read_text()), "channels": odd.shape[1], "codes": base64.b64encode(odd.tobytes()).decode()})
    )
    assert isinstance(run(speakers["dia"], job, text=LONG, max_frames=30)[-1], Finished)


@pytest.mark.slow
@pytest.mark.parametrize(("elsewhere", "clip"), [(True, False), (False, False), (True, True)])
def test_what_breaks_after_another_machines_part_was_its_voice_is_learned_in_the_job_alone(
    elsewhere: bool, clip: bool, speakers: dict[str, loader.Speaker], tmp_path: Path
) -> None:
    """Before anything can break; a recording goes before it."""
    job = tmp_path / "job"
    voice = VoicePrompt(write_clip(tmp_path / "clip.wav", 3.0), "[S1] Hello. [S2] Hello.") if clip else None
    run(speakers["dia"], job, text=LONG, max_frames=30, only_parts=(0,), voice=voice)
    if elsewhere:
        mark_elsewhere(SPOKEN.shown(job, 0))
    assert not (job / LESSONS).exists()
    run(speakers["dia"], job, text=LONG, max_frames=30, only_parts=(0, 1), voice=voice)
    assert (job / LESSONS).is_dir() is (elsewhere and not clip)


@pytest.mark.slow
def test_a_finished_part_far_longer_than_a_voice_remembers_is_passed_over(
    speakers: dict[str, loader.Speaker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five minutes of sound may come from another machine: encoding them would take more memory than speaking."""
    job, encoded = tmp_path / "job", list[int]()
    run(speakers["dia"], job, text=LONG, max_frames=30, only_parts=(0,))
    about, most_s = job / "part-000.json", speakers["dia"].limits.rows_most / speakers["dia"].limits.frame_rate
    about.write_text(json.dumps({**json.loads(about.read_text()), "channels": 1, "codes": base64.b64encode(b"\0\0").decode()}))
    write_clip(job / "part-000.wav", 1.1 * most_s)
    monkeypatch.setattr(Codec, "encode", lambda self, samples: encoded.append(len(samples)))
    assert isinstance(run(speakers["dia"], job, text=LONG, max_frames=30, only_parts=(0, 1))[-1], Finished) and not encoded
