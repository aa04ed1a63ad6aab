"""Call flite's C library: speech with the exact times of its phones. Knows nothing about models."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLING_RATE_HZ = 16000
VOICES = {"S1": "slt", "S2": "rms"}


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone: its name, the number of the word it belongs to (-1 for a pause) and when it ends."""

    name: str
    word: int
    end_s: float


@dataclass(frozen=True, slots=True)
class Utterance:
    """The speech that flite made."""

    samples: NDArray[np.int16]
    phones: tuple[Phone, ...]


class _Wave(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
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
            ("flite_synth_text", (ctypes.c_char_p, pointer), pointer),
            ("utt_wave", (pointer,), ctypes.POINTER(_Wave)),
            ("utt_relation", (pointer, ctypes.c_char_p), pointer),
            ("relation_head", (pointer,), pointer),
            ("item_next", (pointer,), pointer),
            ("item_as", (pointer, ctypes.c_char_p), pointer),
            ("item_parent", (pointer,), pointer),
            ("item_feat_string", (pointer, ctypes.c_char_p), ctypes.c_char_p),
            ("item_feat_float", (pointer, ctypes.c_char_p), ctypes.c_float),
            ("delete_utterance", (pointer,), None),
            ("feat_set_float", (pointer, ctypes.c_char_p, ctypes.c_float), None),
            ("ffeature_string", (pointer, ctypes.c_char_p), ctypes.c_char_p),
        ):
            function = getattr(lib, name)
            function.argtypes, function.restype = list(kinds), result
        lib.flite_init()
        self._voices: dict[str, int] = {}
        for speaker, voice in VOICES.items():
            register = getattr(ctypes.CDLL(f"libflite_cmu_us_{voice}.so.1"), f"register_cmu_us_{voice}")
            register.argtypes, register.restype = [ctypes.c_char_p], pointer
            self._voices[speaker] = register(None)

    def say(self, speaker: str, text: str, stretch: float = 1.0) -> Utterance:
        """Synthesise one phrase, `stretch` times as slow as usual."""
        lib = self._lib
        features = ctypes.cast(self._voices[speaker], ctypes.POINTER(_Voice)).contents.features
        lib.feat_set_float(features, b"duration_stretch", stretch)
        spoken = lib.flite_synth_text(text.encode("ascii"), self._voices[speaker])
        wave = lib.utt_wave(spoken).contents
        samples = np.ctypeslib.as_array(wave.samples, shape=(wave.num_samples,)).astype(np.int16, copy=True)
        phones: list[Phone] = []
        word, last_word = -1, None
        segment = lib.relation_head(lib.utt_relation(spoken, b"Segment"))
        while segment:
            inside = lib.item_as(segment, b"SylStructure")
            syllable = lib.item_parent(inside) if inside else None
            # A word's item is made anew by item_as, its name alone may repeat: the first phone of a word has no neighbour before it.
            holder = lib.item_parent(syllable) if syllable else None
            if holder and holder != last_word:
                word, last_word = word + 1, holder
            name = lib.item_feat_string(segment, b"name").decode()
            phones.append(Phone(name, word if holder else -1, float(lib.item_feat_float(segment, b"end"))))
            segment = lib.item_next(segment)
        lib.delete_utterance(spoken)
        return Utterance(samples, tuple(phones))
