"""Sound as each format's bytes, part by part: a decoder of its own hears all of it, though nobody went back to the beginning."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.base.trouble import Trouble
from app.engine.speech.sound import stream_encoding

RATE, PARTS = 22_050, 3
HUM = (0.5 * np.sin(np.arange(RATE) * 0.05)).astype(np.float32)


def heard(stream: bytes, wanted: str) -> tuple[float, float]:
    """Its seconds and its loudness."""
    if wanted == "pcm":
        samples, rate = np.frombuffer(stream, "<i2") / 32768, stream_encoding.PCM_RATE
    elif wanted in ("aac", "flac"):  # FFmpeg's decoder; libsndfile's wants to know a FLAC's length
        av = pytest.importorskip("av")
        with av.open(io.BytesIO(stream)) as read:
            frames = [*read.decode(audio=0)]
        samples, rate = np.concatenate([each.to_ndarray()[0] for each in frames]), frames[0].sample_rate
        samples = samples / 32768 if samples.dtype == np.int16 else samples
    else:
        with soundfile.SoundFile(io.BytesIO(stream)) as file:
            samples, rate = np.concatenate([*file.blocks(4096)]), file.samplerate
    return len(samples) / rate, float(np.sqrt(np.mean(np.square(samples))))


@pytest.mark.parametrize("rate", [RATE, 44_100])
@pytest.mark.parametrize("wanted", [*stream_encoding.MEDIA])
def test_a_stream_is_whole_without_going_back(wanted: str, rate: int, tmp_path: Path) -> None:
    if wanted == "aac":
        pytest.importorskip("av")
    part = tmp_path / "part.wav"
    soundfile.write(part, np.resize(HUM, rate), rate)
    packing = stream_encoding.open_encoder(wanted, rate)
    pieces = [stream_encoding.encode_part(packing, part, 0.0) for _ in range(PARTS)] + [packing.end()]
    assert all(pieces[:PARTS]) or wanted == "ogg", "each part is out before the next is there; Vorbis waits for more"
    assert wanted != "mp3" or not any(mark in b"".join(pieces) for mark in (b"Xing", b"Info")), "a length that was not known yet"
    seconds, loudness = heard(b"".join(pieces), wanted)
    assert abs(seconds - PARTS) < 0.15 and abs(loudness - 0.354) < 0.05, (seconds, loudness)
    seconds, loudness = heard(stream_encoding.encode_file(wanted, part), wanted)
    assert abs(seconds - 1) < 0.15 and abs(loudness - 0.354) < 0.05


def test_a_pause_is_silence_before_the_part(tmp_path: Path) -> None:
    part = tmp_path / "part.wav"
    soundfile.write(part, np.resize(HUM, RATE), RATE)
    packing = stream_encoding.open_encoder("pcm", RATE)
    plain, paused = (np.frombuffer(stream_encoding.encode_part(packing, part, pause_s), "<i2") for pause_s in (0.0, 0.25))
    silent = int(0.25 * packing.rate)
    assert not paused[:silent].any() and np.array_equal(paused[silent:], plain) and plain.any()


def test_a_peak_is_limited_and_not_cut_off(tmp_path: Path) -> None:
    part = tmp_path / "part.wav"
    soundfile.write(part, np.resize(HUM, RATE), RATE)
    packing = stream_encoding.open_encoder("pcm", stream_encoding.PCM_RATE)
    heard = np.frombuffer(stream_encoding.encode_part(packing, part, 0.0, 4.0, 1.0, 0.5), "<i2") / 32768
    assert np.abs(heard).max() == pytest.approx(0.5, rel=0.02)


def test_what_is_not_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Trouble, match=r"The format wma is not available\. Choose one of mp3, opus, aac, flac, wav, pcm"):
        stream_encoding.require_available("wma")
    monkeypatch.setattr(stream_encoding, "find_spec", lambda name: None)
    with pytest.raises(Trouble, match="AAC needs the library PyAV"):
        stream_encoding.open_encoder("aac", RATE)
