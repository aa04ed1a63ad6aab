"""Call flite's C library: speech with the exact times of its phones. Knows nothing about models."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLING_RATE_HZ = 16000


@dataclass(frozen=True, slots=True)
class Voice:
    """One of flite's voices as this project changes it: its mean pitch, how much shorter the tract is (1.1: formants 10% higher), its pace."""

    base: str
    pitch_hz: float
    tract: float = 1.0
    stretch: float = 1.0


VOICES = {
    "anna": Voice("slt", 180),
    "brian": Voice("rms", 96),
    "callum": Voice("awb", 128, 1.0, 1.06),
    "daisy": Voice("slt", 212, 1.06, 1.04),
    "edith": Voice("slt", 150, 0.94, 1.06),
    "frank": Voice("rms", 84, 0.94, 1.0),
    "george": Voice("rms", 120, 1.07, 1.0),
    "heather": Voice("awb", 185, 1.10, 1.06),
}
SPEAKERS = {"S1": "anna", "S2": "brian"}
BASES = ("slt", "rms", "awb")
BASE_NAMES = ", ".join(f"cmu_us_{base}" for base in BASES)


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone: its name, the number of the word it belongs to (-1 for a pause), when it ends, and whether its syllable is stressed."""

    name: str
    word: int
    end_s: float
    stressed: bool = False


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


def resampled(samples: NDArray[np.int16], faster: float) -> NDArray[np.int16]:
    """Play `faster`, band-limited, through the spectrum of the whole."""
    spectrum, count = np.fft.rfft(samples.astype(np.float64)), round(len(samples) / faster)
    kept = np.zeros(count // 2 + 1, complex)
    most = min(len(kept), len(spectrum))
    kept[:most] = spectrum[:most]
    return np.clip(np.fft.irfft(kept, count) / faster, -32768, 32767).astype(np.int16)


class Flite:
    """The speakers of flite, loaded once. OSError where libflite is not installed."""

    def __init__(self) -> None:
        lexicon = ctypes.CDLL("libflite_cmulex.so.1", mode=ctypes.RTLD_GLOBAL)
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
        lexicon.cmu_lex_init.restype = pointer
        lib.lex_lookup.argtypes, lib.lex_lookup.restype = [pointer, ctypes.c_char_p, ctypes.c_char_p, pointer], pointer
        lib.val_car.argtypes, lib.val_car.restype = [pointer], pointer
        lib.val_cdr.argtypes, lib.val_cdr.restype = [pointer], pointer
        lib.val_string.argtypes, lib.val_string.restype = [pointer], ctypes.c_char_p
        lib.delete_val.argtypes = [pointer]
        lib.flite_init()
        self._lexicon = lexicon.cmu_lex_init()
        self._bases: dict[str, int] = {}
        for base in BASES:
            register = getattr(ctypes.CDLL(f"libflite_cmu_us_{base}.so.1"), f"register_cmu_us_{base}")
            register.argtypes, register.restype = [ctypes.c_char_p], pointer
            self._bases[base] = register(None)

    def say(self, name: str, text: str, faster: float = 1.0) -> Utterance:
        """Synthesise one phrase by one of VOICES. The tract is shortened by playing it faster, after pitch and pace are lowered as much."""
        voice, lib = VOICES[name], self._lib
        base = self._bases[voice.base]
        features = ctypes.cast(base, ctypes.POINTER(_Voice)).contents.features
        lib.feat_set_float(features, b"duration_stretch", voice.stretch * voice.tract / faster)
        lib.feat_set_float(features, b"int_f0_target_mean", voice.pitch_hz / voice.tract)
        spoken = lib.flite_synth_text(text.encode("ascii"), base)
        wave = lib.utt_wave(spoken).contents
        samples = np.ctypeslib.as_array(wave.samples, shape=(wave.num_samples,)).astype(np.int16, copy=True)
        if voice.tract != 1.0:
            samples = resampled(samples, voice.tract)
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
            end_s = float(lib.item_feat_float(segment, b"end")) / voice.tract
            stressed = bool(syllable) and lib.ffeature_string(segment, b"R:SylStructure.parent.stress") == b"1"
            phones.append(Phone(name, word if holder else -1, end_s, stressed))
            segment = lib.item_next(segment)
        lib.delete_utterance(spoken)
        return Utterance(samples, tuple(phones))

    def spell(self, word: str) -> list[tuple[str, bool]]:
        """Return the phones that flite's lexicon, or else its rules, give for a lower-case word, each with whether it is stressed."""
        lib = self._lib
        whole = rest = lib.lex_lookup(self._lexicon, word.encode("ascii"), None, None)
        phones = []
        while rest:
            name = lib.val_string(lib.val_car(rest)).decode()
            phones.append((name.rstrip("012"), name[-1] in "12"))
            rest = lib.val_cdr(rest)
        if whole:
            lib.delete_val(whole)
        return phones
