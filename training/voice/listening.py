"""Make a page of clips for one's own ears: sentences nobody chose for their ease, by both speakers and the other ready voices, beside their text."""

from __future__ import annotations

import html
from pathlib import Path

import soundfile

from . import codec, evaluate, ready, speak
from .flite import SPEAKERS, VOICES

FIGURES, BY_SPEAKERS = 2, 12
SEED = 2026
PAGE = "listen.html"
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>The starter voice: clips</title>
<style>body {{font: 16px/1.5 sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem}} figure {{margin: 1.2rem 0}}
audio {{width: 100%}}</style>
<h1>{count} clips</h1><p>Sentences that the training never met, drawn by a fixed seed, each spoken once: no clip was chosen or made again.
{words:.1%} of the words in sentences like these were heard wrong by pocketsphinx; of flite's own, {flite:.1%}.</p>
"""


def drawn(texts: Path) -> list[tuple[str, str]]:
    """Return voices and texts: sentences by both speakers in turn, one by each other voice, figures."""
    others = [name for name in VOICES if name not in SPEAKERS.values()]
    asked = evaluate.trials(texts, evaluate.TEST, BY_SPEAKERS + len(others), FIGURES)
    names = [SPEAKERS[trial.speaker] for trial in asked]
    names[BY_SPEAKERS : BY_SPEAKERS + len(others)] = others
    return [(name, trial.text) for name, trial in zip(names, asked, strict=True)]


def write_page(folder: Path, texts: Path) -> None:
    """Write the page and its clips into the voice's folder."""
    voice, asked = speak.load(folder), drawn(texts)
    spoken = evaluate.in_batches(voice, [ready.script(name, text, voice.letters) for name, text in asked], SEED)
    rows = []
    for number, ((name, text), said) in enumerate(zip(asked, spoken, strict=True), start=1):
        clip = f"clip-{number:02}.ogg"
        soundfile.write(folder / clip, said.sound, codec.RATE_HZ, format="OGG", subtype="VORBIS")
        shown = html.escape(f"{name.title()}: {text}")
        rows.append(f'<figure><figcaption>{number}. {shown}</figcaption><audio controls preload="none" src="{clip}"></audio></figure>')
    scores = speak.about(folder)["scores"]["words"]
    (folder / PAGE).write_text(
        HEAD.format(count=len(rows), words=scores["wer"], flite=scores["flite_wer"]) + "\n".join(rows) + "\n</html>\n"
    )
