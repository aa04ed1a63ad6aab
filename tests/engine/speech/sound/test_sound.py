"""Sound files: read in any form, joined without clicks, their settings read back exactly."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.base import paths
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt, from_json, to_json
from app.engine.kinds import KINDS
from app.engine.models.catalog import BY_ID
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.join_sound import Finish, Segment
from app.engine.speech.sound.lufs import measure_lufs
from tests.support.places import TOP


def tone(seconds: float, rate: int = 16000, hertz: float = 220.0, loud: float = 0.3) -> sound.Samples:
    return (loud * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def silence(seconds: float, rate: int = 16000) -> sound.Samples:
    return np.zeros(int(seconds * rate), np.float32)


def part(path: Path, samples: sound.Samples, rate: int = 16000) -> Path:
    sound.write(path, samples, rate)
    return path


def pitch(samples: sound.Samples, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


@pytest.mark.parametrize("coding", sound.CODINGS)
@pytest.mark.parametrize("rate", [16000, 44100])
def test_every_format_keeps_sound_and_settings(tmp_path: Path, coding: str, rate: int) -> None:
    request = SpeechRequest(text="[S1] Ünïcødé, “quotes”, \\ and 漢字. " * 3, seed=7, voice=None, format=coding, temperature=1.25)
    target = tmp_path / f"out.{coding}"
    source = part(tmp_path / "part-000.wav", tone(2, rate), rate)
    seconds = join_sound.join([Segment(source)], target, Finish(coding, tail_s=0.5), to_json(request)).seconds
    assert seconds == pytest.approx(2.5, abs=0.01)
    samples, out_rate = sound.read(target)
    assert out_rate == (48000 if coding == "opus" and rate == 44100 else rate)
    assert len(samples) / out_rate == pytest.approx(2.5, abs=0.08)  # lossy formats add a little
    assert pitch(samples, out_rate) == pytest.approx(220, abs=1)
    assert from_json(sound.read_settings(target) or {}) == request
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("coding", sound.CODINGS)
def test_every_format_says_whom_a_licence_credits(tmp_path: Path, coding: str) -> None:
    """Behind who speaks: the cast, else a voice that has a name; where there is nobody, the model is the artist."""
    credit, saved = BY_ID["pocket-tts"].credit, VoicePrompt("/home/voices/anna.ogg", "Hello.")
    assert "Kyutai, CC BY 4.0" in credit
    for model, voice, names, artist in (
        ("pocket-tts", None, (), credit),
        ("pocket-tts", None, ("Anna", "Ben"), f"Anna, Ben, {credit}"),
        ("dia-1.6b", saved, (), "Anna"),
        ("dia-1.6b", VoicePrompt("/home/mine.wav", "Hello."), (), BY_ID["dia-1.6b"].title),
        (str(tmp_path / "mine"), None, (), ""),
    ):
        target, settings = tmp_path / f"out.{coding}", to_json(SpeechRequest("[S1] Hello.", model, voice, cast=tuple(map(Actor, names))))
        join_sound.join([Segment(part(tmp_path / "part.wav", tone(1)))], target, Finish(coding), settings)
        with soundfile.SoundFile(target) as file:
            assert file.artist == artist
        assert (sound.read_settings(target) or {})["text"] == "[S1] Hello."


def test_who_speaks_is_named_once_and_nobody_without_a_name() -> None:
    assert sound.name_artist({"cast": [{"name": "Anna"}, {"name": "Anna"}, {}, {"name": None}, {"name": "Ben"}]}) == "Anna, Ben"
    assert sound.name_artist({"cast": [{"name": " "}, {"name": "Anna "}]}) == "Anna"
    assert sound.name_artist({"cast": [{"name": None}], "model": "dia-1.6b"}) == BY_ID["dia-1.6b"].title


@pytest.mark.parametrize("coding", sound.CODINGS)
def test_titles_and_names_are_told_in_letters_of_every_language(tmp_path: Path, coding: str) -> None:
    target, settings = tmp_path / f"out.{coding}", to_json(SpeechRequest("[Jörg] 三体", "dia-1.6b", cast=(Actor("Jörg"), Actor("さくら"))))
    join_sound.join([Segment(part(tmp_path / "part.wav", tone(1)))], target, Finish(coding), settings, "三体 – Über 𝄞")
    with soundfile.SoundFile(target) as file:
        assert (file.title, file.artist) == ("三体 – Über 𝄞", "Jörg, さくら")
    assert (sound.read_settings(target) or {})["text"] == "[Jörg] 三体" and len(sound.read(target)[0]) > 16000
    if coding == "mp3":
        assert b"TAG" not in target.read_bytes()[-128:], "the older tag has Latin letters alone"


@pytest.mark.parametrize("coding", sound.CODINGS)
def test_long_scripts_fit_in_the_tags(tmp_path: Path, coding: str) -> None:
    request = SpeechRequest(text="[S1] The quick brown fox jumps over the lazy dog. é" * 2000)
    target = tmp_path / f"out.{coding}"
    join_sound.join([Segment(part(tmp_path / "part.wav", tone(1)))], target, Finish(coding), to_json(request))
    assert from_json(sound.read_settings(target) or {}) == request
    assert len(sound.read(target)[0]) > 16000


def test_an_opus_file_without_room_for_its_settings_is_still_a_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0x4E00, 0x9FFF, 60_000)
    settings = to_json(SpeechRequest(text="".join(map(chr, noise))))
    target = tmp_path / "out.opus"
    join_sound.join([Segment(part(tmp_path / "part.wav", tone(1)))], target, Finish("opus"), settings)
    assert sound.read_settings(target) is None
    assert len(sound.read(target)[0]) > 16000


def test_foreign_files_have_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "foreign.wav"
    soundfile.write(path, tone(1), 16000)
    assert sound.read_settings(path) is None
    for name in ("text.wav", "text.flac", "short.wav"):
        (tmp_path / name).write_text("RIFF" if name == "short.wav" else "this is no sound at all, only words " * 9)
        assert sound.read_settings(tmp_path / name) is None


@pytest.mark.parametrize("coding", ["wav", "flac", "mp3", "ogg", "opus"])
def test_any_format_and_channel_count_is_read_as_mono(tmp_path: Path, coding: str) -> None:
    container, subtype = sound.CODINGS[coding]
    path = tmp_path / f"stereo.{coding}"
    soundfile.write(path, np.stack([tone(1, 48000), silence(1, 48000)], 1), 48000, format=container, subtype=subtype)
    samples, rate = sound.read(path)
    assert samples.ndim == 1 and samples.dtype == np.float32 and rate == 48000
    assert np.abs(samples).max() == pytest.approx(0.15, abs=0.05)
    assert len(sound.read(path, most_s=0.25)[0]) == 12000
    assert pitch(sound.resample(samples, rate, 44100), 44100) == pytest.approx(220, abs=2)


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["wav", "flac", "mp3", "ogg", "opus"])
@pytest.mark.parametrize("most_s", [None, 11.5])
def test_reading_in_blocks_changes_no_sample(tmp_path: Path, coding: str, most_s: float | None) -> None:
    container, subtype = sound.CODINGS[coding]
    path, noise = tmp_path / f"noise.{coding}", np.random.default_rng(0).standard_normal((24_000 * 12, 2)) * 0.1
    soundfile.write(path, noise.astype(np.float32), 24_000, format=container, subtype=subtype)
    frames = -1 if most_s is None else int(most_s * 24_000)
    with soundfile.SoundFile(path) as file:
        whole = file.read(frames, dtype="float32", always_2d=True).mean(axis=1, dtype=np.float32)
    assert len(whole) > 4 * sound.BLOCK_FRAMES
    samples, rate = sound.read(path, most_s)
    assert rate == 24_000 and np.array_equal(samples, whole)


def test_a_small_file_of_many_channels_and_a_high_rate_takes_little_memory(tmp_path: Path) -> None:
    """200 KB of a minute, as a guest may send, took 941 MB; here it is two seconds."""
    path = tmp_path / "constant.flac"
    soundfile.write(path, np.repeat(tone(2, sound.RATE_MOST)[:, None], sound.CHANNELS_MOST, 1), sound.RATE_MOST)
    tracemalloc.start()
    samples, rate = sound.read(path, most_s=60.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20
    assert rate == sound.RATE_KEPT and len(samples) == 2 * rate
    assert pitch(samples, rate) == pytest.approx(220, abs=2)
    assert np.abs(samples).max() == pytest.approx(np.abs(tone(2)).max(), rel=0.05)


def test_a_part_at_a_rate_that_no_voice_has_is_told(tmp_path: Path) -> None:
    """The stretcher never ended at 10 Hz, and crashed at 2."""
    parts = [Segment(tmp_path / f"{rate}.wav") for rate in (24_000, 10)]
    for part in parts:
        sound.write(part.path, tone(1), int(part.path.stem))
    with pytest.raises(Trouble, match=r"10\.wav has 1 channel at 10 Hz"):
        join_sound.join(parts, tmp_path / "out.wav", Finish(), {})


def test_what_is_no_sound_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # as on a machine without ffmpeg
    (tmp_path / "text.mp3").write_text("no sound")
    (tmp_path / "nothing.wav").touch()
    for name, key in (("text.mp3", "unreadable"), ("nothing.wav", "empty"), ("gone.wav", "missing")):
        with pytest.raises(Trouble) as caught:
            sound.read(tmp_path / name)
        assert caught.value.sentence.key == f"sound.{key}"


def test_silence_around_speech_is_found() -> None:
    samples = np.concatenate([silence(1), tone(0.5), silence(0.5), tone(0.5), silence(2)])
    first, last = sound.find_spoken_span(samples, 16000, lead_s=0.1, tail_s=0.2)
    assert first / 16000 == pytest.approx(0.9, abs=0.011)
    assert last / 16000 == pytest.approx(2.7, abs=0.011)
    assert sound.find_spoken_span(silence(1), 16000) == (0, 0)
    assert sound.find_spoken_span(silence(0), 16000) == (0, 0)


def test_joints_do_not_click(tmp_path: Path) -> None:
    """Parts that begin and end in the middle of a loud wave."""
    segments = [Segment(part(tmp_path / f"part-{index}.wav", tone(0.5, hertz=237.0)[13:-29])) for index in range(3)]
    target = tmp_path / "out.wav"
    join_sound.join([*segments, Segment(segments[0].path, 0.25)], target, Finish(loudness_lufs=None, tail_s=0), {})
    samples, rate = sound.read(target)
    steepest = np.abs(np.diff(tone(0.5, hertz=237.0))).max()
    assert np.abs(np.diff(samples)).max() <= 1.15 * steepest
    assert abs(samples[0]) < 1e-3 and abs(samples[-1]) < 1e-3
    assert len(samples) / rate == pytest.approx(4 * 0.5 + 0.25 - 2 * join_sound.FADE_S, abs=0.02)
    hops = samples[: len(samples) // 160 * 160].reshape(-1, 160)
    assert (np.abs(hops).max(1) == 0).sum() >= 24  # the pause is silent


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 2.0])
def test_speed_keeps_the_pitch(tmp_path: Path, speed: float) -> None:
    source = part(tmp_path / "part.wav", tone(3, hertz=440.0))
    seconds = join_sound.join([Segment(source)], tmp_path / "out.wav", Finish(speed=speed, tail_s=0), {}).seconds
    assert seconds == pytest.approx(3 / speed, rel=0.01)
    samples, rate = sound.read(tmp_path / "out.wav")
    assert pitch(samples, rate) == pytest.approx(440, abs=3)


def test_speed_without_its_library_is_told_before_anything_is_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_stretch.Signalsmith", None)
    with pytest.raises(Trouble, match="pip install python-stretch"):
        join_sound.stretch(tone(1), 16000, 1.5)
    assert len(join_sound.stretch(tone(1), 16000, 1.0)) == 16000
    slow = SpeechRequest("[Anna] Hello.", "starter-voice", cast=(Actor("Anna", model="starter-voice", pace=0.9),))
    for asked in (slow, SpeechRequest("Hello.", "starter-voice", speed=1.2)):
        with pytest.raises(Trouble, match="pip install python-stretch"):
            KINDS["speech"].check(paths.home(tmp_path), asked, BY_ID["starter-voice"])


def test_loudness_is_one_for_all_parts_of_a_voice_and_never_clips(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = [(rng.standard_normal(32000) * level).astype(np.float32) for level in (0.02, 0.04)]
    segments = [Segment(part(tmp_path / f"part-{index}.wav", each)) for index, each in enumerate(noise)]
    join_sound.join(segments, tmp_path / "out.wav", Finish(loudness_lufs=-23.0, tail_s=0), {})
    samples, rate = sound.read(tmp_path / "out.wav")
    assert measure_lufs(samples, rate) == pytest.approx(-23.0, abs=0.5)
    before, after = (float(np.std(each[1000:-1000])) for each in (samples[:32000], samples[32000:]))
    assert after / before == pytest.approx(2, rel=0.05)  # what was softer stays softer
    join_sound.join(segments, tmp_path / "loud.wav", Finish(loudness_lufs=0.0, tail_s=0), {})
    assert 0.85 < np.abs(sound.read(tmp_path / "loud.wav")[0]).max() <= 0.892, "1 dB below the largest number"


def test_voices_come_out_equally_loud_and_what_is_missing_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = [(rng.standard_normal(32000) * level).astype(np.float32) for level in (0.02, 0.04, 0.01)]
    segments = [Segment(part(tmp_path / f"part-{place}.wav", each), voice=place % 2) for place, each in enumerate(noise)]
    joined = join_sound.join(segments, tmp_path / "out.wav", Finish(loudness_lufs=-23.0, tail_s=0), {})
    samples, _ = sound.read(tmp_path / "out.wav")
    first, second, third = (float(np.std(samples[begin + 1000 : begin + 30_000])) for begin in (0, 32_000, 64_000))
    assert joined.lufs == pytest.approx(-23.0, abs=0.1)
    assert first / third == pytest.approx(2, rel=0.05) and second**2 == pytest.approx((first**2 + third**2) / 2, rel=0.1)
    hiss = Segment(part(tmp_path / "hiss.wav", np.tile(noise[0] / 20, 4)), voice=7)
    assert join_sound.join([*segments, hiss], tmp_path / "out.wav", Finish(loudness_lufs=-23.0, tail_s=0), {}).lufs == pytest.approx(
        -23.0, abs=0.1
    ), "noise, which is not raised, is no shortfall"
    loud = join_sound.join(segments[1:2], tmp_path / "loud.wav", Finish(loudness_lufs=-5.0, tail_s=0), {})
    assert loud.lufs == pytest.approx(measure_lufs(*sound.read(tmp_path / "loud.wav")), abs=0.1) and loud.lufs < -6
    quieter = [Segment(segments[1].path, volume_db=-9.0)]
    assert join_sound.join(quieter, tmp_path / "soft.wav", Finish(loudness_lufs=-23.0, tail_s=0), {}).lufs == pytest.approx(-23.0, abs=0.1)
    assert measure_lufs(*sound.read(tmp_path / "soft.wav")) == pytest.approx(-32.0, abs=0.2), "a volume of its own comes on top"


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.39, 0.41, 2.0])
def test_the_loudness_asked_for_is_measured_in_the_result(tmp_path: Path, seconds: float) -> None:
    """Repeated until it is long enough for the gates."""
    source = part(tmp_path / "part.wav", tone(seconds, hertz=440.0, loud=0.05))
    for wanted in (-30.0, -20.0):
        join_sound.join([Segment(source)], tmp_path / "out.wav", Finish(loudness_lufs=wanted, tail_s=0), {})
        samples, rate = sound.read(tmp_path / "out.wav")
        heard = samples[128:-128]  # without the fades
        assert measure_lufs(np.resize(heard, 2 * rate), rate) == pytest.approx(wanted, abs=0.6)


@pytest.mark.filterwarnings("error")
def test_silent_and_tiny_parts_are_joined_too(tmp_path: Path) -> None:
    segments = [
        Segment(part(tmp_path / "part-0.wav", silence(1))),
        Segment(part(tmp_path / "part-1.wav", tone(0.1))),
        Segment(part(tmp_path / "part-2.wav", tone(0.001))),
    ]
    seconds = join_sound.join(segments, tmp_path / "out.wav", Finish(tail_s=0.3, speed=1.3), {}).seconds
    assert seconds == pytest.approx(1 / 1.3 + 0.1 / 1.3 + 0.3, abs=0.05)
    assert join_sound.join(segments[:1], tmp_path / "silent.wav", Finish(), {}).seconds > 1


@pytest.mark.skipif(sys.platform == "win32", reason="it limits no file's size")
def test_a_full_disk_leaves_no_half_file_and_says_what_is_free(tmp_path: Path) -> None:
    """The file size is limited in a process of its own, which to a program is a disk that fills up while it writes."""
    code = (
        "import resource, signal, sys, numpy; from pathlib import Path; from app.engine.speech.sound import sound; from app.base.trouble import Trouble\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try: sound.write(Path(sys.argv[1]) / 'part-000.wav', numpy.zeros(100_000, numpy.float32), 16000)\n"
        "except Trouble as trouble: print(trouble.sentence.key, dict(trouble.sentence.values)['free'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=TOP, capture_output=True, text=True)
    key, free_mb = done.stdout.split()
    assert key == "sound.unwritten" and abs(int(free_mb) - shutil.disk_usage(tmp_path).free / (1 << 20)) < 2000, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_importing_needs_no_torch() -> None:
    code = (
        "import sys, app.engine.speech.text.script, app.engine.models.voice_limits, app.engine.speech.sound.sound, "
        "app.engine.speech.sound.join_sound, app.engine.speech.text.voices, app.engine.speech.sound.spoken_parts\n"
        "assert not {'torch', 'transformers', 'scipy'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
