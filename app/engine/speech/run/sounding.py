"""Make a part's sound in pieces, each a file that continues the one before, beside the loop that makes its frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

from app.engine.jobs.events import Sound
from app.engine.jobs.parts import SPOKEN
from app.engine.speech.family import Codec
from app.engine.speech.sound import sound
from app.engine.speech.sound.sound import Samples


@contextmanager
def open_beside(voice: str, codec: str) -> Iterator[ThreadPoolExecutor | None]:
    """Yield a thread to decode in, where voice and codec are on different devices, or on a processor with a core to spare. None where it would
    gain nothing or harm: a device takes one command after another (Metal only from one thread), and threads of torch's on every core already
    would wait for each other."""
    apart = codec == "cpu" != voice
    if not apart and (voice != "cpu" or torch.get_num_threads() > 1 or (os.cpu_count() or 1) == 1):
        yield None
        return
    with ThreadPoolExecutor(1, thread_name_prefix="sounding") as beside:
        yield beside


class Sounding:
    """The sound of one attempt at a part. At most one piece is being made."""

    def __init__(self, codec: Codec, job: Path, index: int, attempt: int, beside: ThreadPoolExecutor | None) -> None:
        self._codec, self._job, self._index, self._attempt, self._beside = codec, job, index, attempt, beside
        self.pieces: list[Samples] = []
        self.frames_begun = 0
        """So many frames have their sound, or are getting it."""
        self.frames_made = 0
        self._making: Future[Samples] | Callable[[], Samples] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether finish() need not wait."""
        return isinstance(self._making, Future) and self._making.done()

    @property
    def beside_loop(self) -> bool:
        """Whether what was begun is made meanwhile; else finish() makes it."""
        return isinstance(self._making, Future)

    def restore(self, codes: torch.Tensor, last: int) -> None:
        """Make anew what an earlier run told, up to before frame `last`."""
        self.pieces.append(self._codec.decode(codes, 0, last))
        self.frames_begun = self.frames_made = last

    def begin(self, codes: torch.Tensor, last: int) -> None:
        """Begin the piece up to before frame `last`, after finish() of the one before. `codes`: all so far, a copy."""
        first, self.frames_begun = self.frames_begun, last
        path = self._path(len(self.pieces))

        def make() -> Samples:
            samples = self._codec.decode(codes, first, last)
            sound.write(path, samples, self._codec.rate)
            return samples

        # The first piece is waited for, so nothing is to be done beside it.
        self._making = self._beside.submit(make) if self._beside is not None and self.pieces else make

    def finish(self) -> Sound | None:
        """Return the piece that was begun; raise what its making raised."""
        making, self._making = self._making, None
        if making is None:
            return None
        samples = making.result() if isinstance(making, Future) else making()
        first, self.frames_made = self.frames_made, self.frames_begun
        path, rate = self._path(len(self.pieces)), self._codec.rate
        self.pieces.append(samples)
        return Sound(self._index, str(path), first / self._codec.frame_rate, len(samples) / rate, self._attempt)

    def _path(self, number: int) -> Path:
        """Pieces of another attempt have other names: a page may be fetching those before, and browsers keep what they fetched."""
        attempt = f"{self._attempt}-" if self._attempt else ""
        return self._job / SPOKEN.name_passing(f"{self._index:03d}-{attempt}{number:03d}")
