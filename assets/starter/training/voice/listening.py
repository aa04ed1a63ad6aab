"""Make a page of clips for one's own ears: sentences nobody chose for their ease, by both speakers and the ready voices, beside their text."""

from __future__ import annotations

import html
from pathlib import Path

import soundfile

from . import codec, evaluate, speak

CLIPS = 20
SEED = 2026
PAGE = "listen.html"
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>The starter voice: twenty clips</title>
<style>body {{font: 16px/1.5 sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem}} figure {{margin: 1.2rem 0}}
audio {{width: 100%}}</style>
<h1>Twenty clips</h1><p>Sentences that the training never met, drawn by a fixed seed, each spoken once: no clip was chosen or made again.
{words:.1%} of the words in sentences like these were heard wrong by pocketsphinx; of flite's own, {flite:.1%}.</p>
"""


def write_page(folder: Path, texts: Path) -> None:
    """Write the page and its clips into the voice's folder."""
    voice = speak.load(folder)
    asked = evaluate.trials(texts, evaluate.TEST, CLIPS - 3, 3)
    rows = []
    for number, (trial, spoken) in enumerate(zip(asked, evaluate.speaking(voice, SEED)(asked), strict=True), start=1):
        name = f"clip-{number:02}.ogg"
        soundfile.write(folder / name, spoken.sound, codec.RATE_HZ, format="OGG", subtype="VORBIS")
        said = html.escape(f"[{trial.speaker}] {trial.text}")
        rows.append(f'<figure><figcaption>{number}. {said}</figcaption><audio controls preload="none" src="{name}"></audio></figure>')
    scores = speak.about(folder)["scores"]["words"]
    (folder / PAGE).write_text(HEAD.format(words=scores["wer"], flite=scores["flite_wer"]) + "\n".join(rows) + "\n</html>\n")
