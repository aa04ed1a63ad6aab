"""The judge's ears: Debian's pocketsphinx with its own English model of 130,000 words, or with a few words that may follow in any order."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from ..voice import codec

MODEL = Path("/usr/share/pocketsphinx/model/en-us")  # Debian's pocketsphinx-en-us
Sound = NDArray[np.float32]


def heard(sounds: Sequence[Sound], only: Sequence[str] = ()) -> list[list[str]]:
    """The words of each sound; `only` these, all as likely, where they are given. FileNotFoundError where pocketsphinx is not installed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = [f"{number:05d}" for number in range(len(sounds))]
        for each, sound in zip(names, sounds, strict=True):
            soundfile.write(folder / f"{each}.wav", np.pad(sound, 3200), codec.RATE_HZ, subtype="PCM_16")
        (folder / "list").write_text("".join(f"{each}\n" for each in names))
        words = MODEL / "en-us.lm.bin"
        if only:
            words = folder / "words.arpa"
            rows = "".join(f"{-np.log10(len(only) + 1):.4f} {word}\n" for word in ("<s>", "</s>", *only))
            words.write_text(f"\\data\\\nngram 1={len(only) + 2}\n\n\\1-grams:\n{rows}\n\\end\\\n")
        subprocess.run(
            ["pocketsphinx_batch", "-hmm", MODEL / "en-us", "-lm", words, "-dict", MODEL / "cmudict-en-us.dict", "-adcin", "yes", "-adchdr", "44",
             "-cepdir", folder, "-cepext", ".wav", "-ctl", folder / "list", "-hyp", folder / "heard", "-logfn", "/dev/null"],
            check=True, capture_output=True,
        )  # fmt: skip
        found = {}
        for line in (folder / "heard").read_text().splitlines():
            text, _, rest = line.rpartition("(")
            found[rest.split()[0].rstrip(")")] = text.split()
    return [found.get(each, []) for each in names]
