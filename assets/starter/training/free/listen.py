"""A page of 20 clips for your own ears, written beside the weights: sentences that the voice never met, by all its voices."""

from __future__ import annotations

import html
import json
from pathlib import Path

import soundfile

from ..voice import codec, speak
from . import evaluate, texts

CLIPS = 20


def write(folder: Path) -> Path:
    """The page; each clip stands under its words, so that read aloud first they can be compared."""
    voice, about = speak.load(folder), json.loads((folder / "starter.json").read_text())
    sentences = [*texts.held_out(texts.TESTED, "quote", CLIPS // 2, 7), *texts.held_out(texts.TESTED, "number", CLIPS // 2, 7)]
    voices = {row[0]: name for name, row in about["voices"].items()}
    spoken = evaluate.said(voice, folder, sentences, 21, tuple(voices))
    names = tuple(voices.values())
    rows = []
    (folder / "listen").mkdir(exist_ok=True)
    for number, (text, one) in enumerate(zip(sentences, spoken, strict=True)):
        clip = f"listen/{number + 1:02d}.ogg"
        soundfile.write(folder / clip, one.sound, codec.RATE_HZ, format="OGG", subtype="VORBIS")
        rows.append(f'<li>{html.escape(names[number % len(names)])}: {html.escape(text)}<br><audio controls src="{clip}"></audio></li>')
    page = folder / "listen.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><title>{html.escape(about["name"])}</title><ol>{"".join(rows)}</ol>\n', "utf-8")
    return page
