"""The model card of the free voice, written from its measured scores so that the card cannot say anything else."""

from __future__ import annotations

from typing import Any

from . import corpus, evaluate
from .export import LONGEST_S, VOICES

TEMPLATE = """# Hearth starter voice, second edition

A very small Dia (the real `DiaForConditionalGeneration`, `DacModel`, `DiaProcessor`) that comes with Hearth, so that a fresh machine speaks with no
download. It speaks any English: Hearth writes numbers out and turns words into sounds (`phones.py`, `sounds.gz`), and these sounds, one
byte each, are what Dia's encoder reads. Its voices: {voices}.

| measured on sentences it never met | starter voice | flite itself |
|---|---|---|
| word errors, free sentences ({sentences} of {words} words) | {wer:.1%} | {flite_wer:.1%} |
| word errors, digits ({digit_words}) | {digits:.1%} | {flite_digits:.1%} |
| did not end by itself | {unended:.1%} | |
| a clause lost or said twice | {lost:.1%} | |
| length against flite's | {length:.2f} | 1 |
| [S1] above [S2] | {apart:.1f} semitones | |

Judge: Debian's pocketsphinx with its own English model of 130,000 words, and for digits with the ten digits in any order.
Gate of the release: {gate}. {verdict}

## Made from
Speech of CMU Flite 2.2 with its voices cmu_us_slt, cmu_us_rms and cmu_us_awb, some shifted in pitch and tract. Flite's copyright file (Copyright (c)
1999-2001 Language Technologies Institute, Carnegie Mellon University) permits use, copying, modification, distribution and sale, free of charge, with its
notice kept, changes marked and no endorsement claimed. No recording of theirs is in this project. Flite says {count} sentences: examples and meanings from
WordNet (Debian's wordnet-base), fortunes (fortunes, fortunes-min), words of wamerican in no order, and numbers as people write them. One sentence of
forty is kept for the test, one for tuning.

`python -m assets.starter.training.free` makes the data, trains the codec and Dia on whatever is there, a card or a processor, and judges; nothing is
released that misses the gate.

## Limits
No laughter or other sounds; parts of more than {longest_s:g} s are cut. It follows no recording: Hearth says so before anything is loaded.
"""


def write(measured: dict[str, Any]) -> str:
    """MODEL.md for these scores."""
    missed = evaluate.misses(measured)
    return TEMPLATE.format(
        voices=", ".join(VOICES), sentences=measured["words"]["sentences"], words=measured["words"]["words"], wer=measured["words"]["wer"],
        flite_wer=measured["words"]["flite_wer"], digit_words=measured["digits"]["words"], digits=measured["digits"]["wer"],
        flite_digits=measured["digits"]["flite_wer"], unended=measured["unended_share"], lost=measured["lost_or_repeated_share"],
        length=measured["length_ratio_mean"], apart=measured["semitones_apart"], count=corpus.SENTENCES, longest_s=LONGEST_S,
        gate=", ".join(f"{name} at most {limit:g}" for name, limit in evaluate.GATE.items()),
        verdict="These weights pass it." if not missed else "These weights miss it: " + "; ".join(missed) + ".",
    )
