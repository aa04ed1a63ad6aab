"""Encode sound part by part into a client's format, with one encoder for a whole stream. Knows no routes."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import soundfile

from app.base.extras import install_command
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.speech.sound.join_sound import limit, stretch
from app.engine.speech.sound.sound import CODINGS, Samples, choose_rate, read, resample, write_samples

MEDIA: Final = {
    "mp3": "audio/mpeg", "opus": "audio/ogg", "aac": "audio/aac", "flac": "audio/flac", "wav": "audio/wav", "pcm": "audio/pcm", "ogg": "audio/ogg",
}  # fmt: skip
PCM_RATE: Final = 24_000
"""OpenAI's clients expect pcm to have 24 kHz, 16 bits and one channel."""
ENDLESS: Final = 0xFFFFFFFF


class Encoder(Protocol):
    """Encode each piece of sound; `end` returns the remaining bytes."""

    rate: int

    def add(self, samples: Samples) -> bytes: ...

    def end(self) -> bytes: ...


def open_encoder(wanted: str, rate: int) -> Encoder:
    """Return an encoder for the format; raise a Trouble if its library is missing."""
    if wanted in ("wav", "pcm"):
        return PcmEncoder(rate if wanted == "wav" else PCM_RATE, header=wanted == "wav")
    return AacEncoder(rate) if wanted == "aac" else FileEncoder(wanted, rate)


def require_available(wanted: str) -> None:
    if wanted not in MEDIA:
        raise Trouble(
            say("api.format", "The format {wanted} is not available. Choose one of {formats}.", wanted=wanted, formats=tuple(MEDIA))
        )
    if wanted == "aac" and find_spec("av") is None:
        raise Trouble(
            say(
                "api.aac",
                "AAC needs the library PyAV (36 MB), which is not installed. Choose mp3 or opus, or add it on the Machine tab, or by: {command}",
                command=install_command("aac"),
            ),
            cure="extras",
        )


def encode_file(wanted: str, file: Path) -> bytes:
    samples, rate = read(file)
    packing = open_encoder(wanted, rate)
    return packing.add(resample(samples, rate, packing.rate)) + packing.end()


def encode_part(packing: Encoder, file: Path, pause_before_s: float, gain: float = 1.0, pace: float = 1.0, ceiling: float = 1.0) -> bytes:
    samples, rate = read(file)
    samples = limit(stretch(samples, rate, pace) * np.float32(gain), rate, ceiling)
    silence = np.zeros(int(pause_before_s * packing.rate), np.float32)
    return packing.add(np.concatenate([silence, resample(samples, rate, packing.rate)]))


class PcmEncoder:
    """Raw samples; as WAV, with a header of unknown length, so that players read until the connection ends."""

    def __init__(self, rate: int, header: bool) -> None:
        self.rate, self._header = rate, header

    def add(self, samples: Samples) -> bytes:
        head = b""
        if self._header:
            self._header = False
            head = struct.pack(
                "<4sI4s4sIHHIIHH4sI", b"RIFF", ENDLESS, b"WAVE", b"fmt ", 16, 1, 1, self.rate, 2 * self.rate, 2, 16, b"data", ENDLESS - 36
            )
        return head + to_int16(samples).tobytes()

    def end(self) -> bytes:
        return b""


class FileEncoder:
    """Encodes with libsndfile. Fields that it would rewrite at the end, such as the length, stay unset: a stream cannot
    seek back."""

    def __init__(self, wanted: str, rate: int) -> None:
        container, subtype = CODINGS[wanted]
        self.rate, self._sent, self._target = choose_rate(wanted, rate), 0, io.BytesIO()
        # Players estimate a stream's length from its size, which is right only for frames of constant size.
        even = {"bitrate_mode": "CONSTANT", "compression_level": 0.5} if wanted == "mp3" else {}
        self._file = soundfile.SoundFile(self._target, "w", self.rate, 1, subtype, format=container, **even)

    def add(self, samples: Samples) -> bytes:
        write_samples(self._file, samples)
        self._file.flush()
        return self._new()

    def end(self) -> bytes:
        self._file.close()
        return self._new()

    def _new(self) -> bytes:
        fresh = self._target.getvalue()[self._sent :]
        self._sent += len(fresh)
        return fresh


class AacEncoder:
    """Encodes AAC; every frame is self-contained, so the stream can begin and end anywhere."""

    rate = 44_100

    def __init__(self, rate: int) -> None:
        require_available("aac")
        import av

        self._sent, self._target = 0, io.BytesIO()
        self._container: Any = av.open(self._target, "w", format="adts")
        self._stream = self._container.add_stream("aac", rate=self.rate)
        self._stream.layout = "mono"
        self._frame: Callable[..., Any] = av.AudioFrame.from_ndarray

    def add(self, samples: Samples) -> bytes:
        frame = self._frame(to_int16(samples)[None], format="s16", layout="mono")
        frame.sample_rate = self.rate
        return self._muxed(self._stream.encode(frame))

    def end(self) -> bytes:
        last = self._muxed(self._stream.encode(None))
        self._container.close()
        return last

    def _muxed(self, packets: Any) -> bytes:
        for packet in packets:
            self._container.mux(packet)
        fresh = self._target.getvalue()[self._sent :]
        self._sent += len(fresh)
        return fresh


def to_int16(samples: Samples) -> np.ndarray[Any, np.dtype[np.int16]]:
    return np.clip(np.round(samples * 32767), -32768, 32767).astype("<i2")
