"""Make the ready voices, each a clip in which it says its name, and judge them: sentences in each voice by its sign, beside flite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from app.engine.speech.text import pronounce, written_out

from . import codec, corpus, evaluate, judge, sentences, speak
from .flite import SPEAKERS, VOICES, Flite

TEXT = "Hello, I am {name}, one of the voices that come with Hearth. I read whatever you write."
FOLDER, MODEL = "voices", "starter-voice"
SEED = 7
NEAR_SEMITONES = 1.0


def about() -> dict[str, Any]:
    """Return what starter.json says of them: each clip's sign, and the signs of the speakers' usual voices."""
    return {
        "ready": {f"{FOLDER}/{name}.ogg": corpus.voice_sign(name) for name in VOICES},
        "usual": [corpus.voice_sign(name) for name in SPEAKERS.values()],
    }


def script(name: str, text: str, letters: pronounce.Letters) -> str:
    """Return what the encoder reads for a text in one of the voices."""
    return f"[S1]{corpus.voice_sign(name)} {pronounce.to_sounds(written_out.write_out(text), letters)}"


def write(folder: Path, **changed: Any) -> None:
    """Let the voice in `folder` speak each clip, and write it with its note as the app reads kept voices."""
    voice = speak.load(folder)
    texts = {name: TEXT.format(name=name.title()) for name in VOICES}
    spoken = speak.speak(voice, [script(name, text, voice.letters) for name, text in texts.items()], SEED, **changed)
    (folder / FOLDER).mkdir(exist_ok=True)
    for (name, text), said in zip(texts.items(), spoken, strict=True):
        path = folder / FOLDER / f"{name}.ogg"
        soundfile.write(path, said.sound, codec.RATE_HZ, format="OGG", subtype="VORBIS")
        note = {"name": name.title(), "transcript": f"[S1] {text}", "spoken_by": MODEL}
        path.with_suffix(".json").write_text(json.dumps(note, indent=1) + "\n")


def scores(voice: speak.Voice, texts: list[str]) -> dict[str, Any]:
    """Return the word errors in all voices, flite's for the same, and the share of sentences that are as high as flite's."""
    flite, ear, near = Flite(), judge.Judge(), []
    names = [name for name in VOICES for _ in texts]
    said = texts * len(VOICES)
    spoken = evaluate.in_batches(voice, [script(name, text, voice.letters) for name, text in zip(names, said, strict=True)], SEED)
    words = errors = flite_errors = 0
    for name, text, own in zip(names, said, spoken, strict=True):
        wanted, theirs = sentences.key(text).split(), np.asarray(flite.say(name, text).samples / 32768, np.float32)
        words += len(wanted)
        errors += judge.word_errors(wanted, ear.listen(own.sound))
        flite_errors += judge.word_errors(wanted, ear.listen(theirs))
        apart = 12 * np.log2(evaluate.median_hz(own.sound) / evaluate.median_hz(theirs))
        near.append(bool(abs(apart) < NEAR_SEMITONES))
    return {
        "texts": len(said),
        "wer": round(errors / words, 4),
        "flite_wer": round(flite_errors / words, 4),
        "near_share": round(float(np.mean(near)), 4),
    }
