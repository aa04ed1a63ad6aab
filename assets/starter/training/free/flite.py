"""Flite through its C library: speech with the exact times of its phones. Knows nothing about models."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLING_RATE_HZ = 16000
BASES = ("slt", "rms", "awb")


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice of the corpus: one of flite's, its pitch and tract shifted by a factor; its tempo stays."""

    base: str
    shift: float = 1.0


VOICES = {
    "#": Voice("slt"), "$": Voice("rms"), "%": Voice("slt", 1.13), "&": Voice("slt", 0.87), "*": Voice("rms", 1.15), "/": Voice("rms", 0.88),
    "<": Voice("awb", 0.95), ">": Voice("awb", 1.14),
}
"""By the sign that names it in a script. The first two are the speakers' own."""
OWN = {"S1": "#", "S2": "$"}


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone: its name, the number of the word it belongs to (-1 for a pause), when it ends, and whether its syllable is stressed."""

    name: str
    word: int
    end_s: float
    stressed: bool = False


@dataclass(frozen=True, slots=True)
class Utterance:
    """What flite said."""

    samples: NDArray[np.int16]
    phones: tuple[Phone, ...]
    words: tuple[str, ...] = ()


class _Wave(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p), ("sample_rate", ctypes.c_int), ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int), ("samples", ctypes.POINTER(ctypes.c_short)),
    ]


class _Voice(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("features", ctypes.c_void_p)]


class Flite:
    """The speakers of flite, loaded once. OSError where libflite is not installed."""

    def __init__(self) -> None:
        ctypes.CDLL("libflite_cmulex.so.1", mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL("libflite_usenglish.so.1", mode=ctypes.RTLD_GLOBAL)
        self._lib = lib = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
        pointer = ctypes.c_void_p
        for name, kinds, result in (
            ("flite_synth_text", (ctypes.c_char_p, pointer), pointer), ("utt_wave", (pointer,), ctypes.POINTER(_Wave)),
            ("utt_relation", (pointer, ctypes.c_char_p), pointer), ("relation_head", (pointer,), pointer), ("item_next", (pointer,), pointer),
            ("item_as", (pointer, ctypes.c_char_p), pointer), ("item_parent", (pointer,), pointer),
            ("item_feat_string", (pointer, ctypes.c_char_p), ctypes.c_char_p), ("item_feat_float", (pointer, ctypes.c_char_p), ctypes.c_float),
            ("delete_utterance", (pointer,), None), ("feat_set_float", (pointer, ctypes.c_char_p, ctypes.c_float), None),
            ("ffeature_string", (pointer, ctypes.c_char_p), ctypes.c_char_p),
        ):
            function = getattr(lib, name)
            function.argtypes, function.restype = list(kinds), result
        lib.flite_init()
        self._voices: dict[str, int] = {}
        for voice in BASES:
            register = getattr(ctypes.CDLL(f"libflite_cmu_us_{voice}.so.1"), f"register_cmu_us_{voice}")
            register.argtypes, register.restype = [ctypes.c_char_p], pointer
            self._voices[voice] = register(None)

    def say(self, name: str, text: str, stretch: float = 1.0) -> Utterance:
        """Synthesise one phrase as one utterance by a voice of VOICES, `stretch` times as slow as usual."""
        voice, lib = VOICES[name], self._lib
        features = ctypes.cast(self._voices[voice.base], ctypes.POINTER(_Voice)).contents.features
        lib.feat_set_float(features, b"duration_stretch", stretch * voice.shift)
        spoken = lib.flite_synth_text(text.encode("ascii"), self._voices[voice.base])
        wave = lib.utt_wave(spoken).contents
        samples = np.ctypeslib.as_array(wave.samples, shape=(wave.num_samples,)).astype(np.int16, copy=True)
        phones, words = self._phones(spoken, voice.shift)
        lib.delete_utterance(spoken)
        return Utterance(shifted(samples, voice.shift), phones, words)

    def _phones(self, spoken: int, shift: float) -> tuple[tuple[Phone, ...], tuple[str, ...]]:
        lib = self._lib
        phones: list[Phone] = []
        words: list[str] = []
        last_word = None
        segment = lib.relation_head(lib.utt_relation(spoken, b"Segment"))
        while segment:
            inside = lib.item_as(segment, b"SylStructure")
            syllable = lib.item_parent(inside) if inside else None
            holder = lib.item_parent(syllable) if syllable else None
            if holder and holder != last_word:
                last_word = holder
                words.append(lib.item_feat_string(holder, b"name").decode())
            name = lib.item_feat_string(segment, b"name").decode()
            stressed = bool(syllable) and lib.item_feat_string(syllable, b"stress") == b"1"
            phones.append(Phone(name, len(words) - 1 if holder else -1, float(lib.item_feat_float(segment, b"end")) / shift, stressed))
            segment = lib.item_next(segment)
        return tuple(phones), tuple(words)


def shifted(samples: NDArray[np.int16], factor: float) -> NDArray[np.int16]:
    """Played `factor` times as fast: band-limited, by Fourier."""
    if factor == 1.0:
        return samples
    count = round(len(samples) / factor)
    spectrum = np.fft.rfft(samples.astype(np.float64))
    kept = np.zeros(count // 2 + 1, complex)
    kept[: min(len(kept), len(spectrum))] = spectrum[: len(kept)]
    return (np.fft.irfft(kept, count) * count / len(samples)).clip(-32768, 32767).astype(np.int16)
