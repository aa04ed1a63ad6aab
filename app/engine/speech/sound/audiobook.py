"""Join the sounds of a book's chapters into one file as players of audiobooks know it: M4B, with marks, titles and a cover."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from app.base.foreign_formats import decode, open_picture, open_sound
from app.engine.speech.sound.sound import Samples, measure_seconds, replacing_or_explaining
from app.engine.speech.sound.stream_encoding import require_available

RATE, BITS_PER_S = 44_100, 64_000
PAUSE_S: Final = 1.5
"""So much silence follows each chapter."""
BLOCK: Final = 1 << 16
COVER_SIDE: Final = 1400
MS: Final = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Spoken:
    title: str
    path: Path


@dataclass(frozen=True, slots=True)
class Labels:
    title: str
    author: str = ""
    credit: str = ""
    """The voices' licences ask to name these."""
    cover: bytes = b""
    """The picture is as it came; one that cannot be read is left out."""


def write_audiobook(chapters: Sequence[Spoken], labels: Labels, target: Path) -> None:
    """Write the book; a chapter at a time is read, a block at a time is in memory."""
    require_available("aac")
    import av
    from av.stream import Disposition

    lasts_s = [measure_seconds(each.path) + PAUSE_S for each in chapters]
    cover, (width, height) = draw_cover(labels.cover)
    with replacing_or_explaining(target) as unfinished, av.open(str(unfinished), "w", format="mp4", options={"brand": "M4B "}) as file:
        told = {"title": labels.title, "album": labels.title, "artist": labels.author, "composer": labels.credit, "genre": "Audiobook"}
        file.metadata.update({name: words for name, words in told.items() if words})
        stream = file.add_stream("aac", rate=RATE, layout="mono")
        stream.bit_rate = BITS_PER_S
        ends = np.cumsum([round(1000 * each) for each in lasts_s]).tolist()
        file.set_chapters(
            [
                {"id": place, "start": begin, "end": end, "time_base": MS, "metadata": {"title": each.title}}
                for place, (each, begin, end) in enumerate(zip(chapters, [0, *ends], ends, strict=False))
            ]
        )
        if cover:
            shown = file.add_mux_stream("mjpeg", rate=1, width=width, height=height)
            shown.disposition = Disposition.attached_pic
            packet = av.Packet(cover)
            packet.stream, packet.pts, packet.dts, packet.time_base = shown, 0, 0, Fraction(1)
            file.mux(packet)
        written = 0
        for chapter, end in zip(chapters, ends, strict=True):
            resampler = av.AudioResampler(format="fltp", layout="mono", rate=RATE)
            for samples, rate in _read_blocks(chapter.path):
                frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
                frame.sample_rate = rate
                for each in resampler.resample(frame):
                    each.pts, written = written, written + each.samples
                    file.mux(stream.encode(each))
            silence = av.AudioFrame.from_ndarray(
                np.zeros((1, max(1, end * RATE // 1000 - written)), np.float32), format="fltp", layout="mono"
            )
            silence.sample_rate, silence.pts, written = RATE, written, written + silence.samples
            file.mux(stream.encode(silence))
        file.mux(stream.encode(None))


def _read_blocks(path: Path) -> Iterator[tuple[Samples, int]]:
    with open_sound(path) as opened:
        while len(block := opened.read(BLOCK, dtype="float32", always_2d=True)):
            yield np.ascontiguousarray(block.mean(axis=1)), opened.samplerate


def draw_cover(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """Return a cover as a JPEG and its size; nothing where it is no picture."""
    if not data:
        return b"", (0, 0)
    try:
        with open_picture(data) as opened:
            opened.draft("RGB", (COVER_SIDE, COVER_SIDE))
            picture = decode(opened, "RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return b"", (0, 0)
    picture.thumbnail((COVER_SIDE, COVER_SIDE))
    made = io.BytesIO()
    picture.save(made, "JPEG", quality=90)
    return made.getvalue(), picture.size
