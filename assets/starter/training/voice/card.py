"""The model card of the starter voice, written from its measured scores so that the card cannot say anything else."""

from __future__ import annotations

from typing import Any

from . import evaluate, words

TEMPLATE = """# Hearth starter voice

A very small Dia (the real `DiaForConditionalGeneration`, `DacModel`, `DiaProcessor`) that comes with Hearth, so that a fresh machine speaks with no
download. It knows {words} English words in short sentences and two speakers, `[S1]` and `[S2]`, and says so: any other word needs Dia itself.

| measured on held-out phrases, speaking freely | starter voice | flite itself |
|---|---|---|
| word errors, digits ({digit_phrases} phrases, {digit_words} words) | {digits:.1%} | {flite_digits:.1%} |
| word errors, words ({word_phrases} phrases, {word_words} words) | {wide:.1%} | {flite_wide:.1%} |
| length against flite's | {length:.2f} | 1 |
| more than 15% longer or shorter | {outside:.1%} | |
| ends clipped | {clipped:.1%} | |
| did not end by itself | {unended:.1%} | |

Judge: pocketsphinx with its own acoustic model; any word of the list may follow any other, all alike, so no grammar helps the voice. Phrases and seeds:
`corpus.held_out(TEST_SEED, ...)`; the training never meets them. Settings were chosen on others (`TUNING_SEED`), but for "you", "we" and "I", whose
recordings were mended after a look at the first {looked_at} test phrases of each kind: those are not counted here.
Gate of the release: {gate}. {verdict}

## Made from
Speech of CMU Flite 2.2 with its voices cmu_us_slt and cmu_us_rms. Flite's copyright file (Copyright (c) 1999-2001 Language Technologies Institute,
Carnegie Mellon University) permits use, copying, modification, distribution and sale, free of charge, with its notice kept, changes marked and no
endorsement claimed; it names no other terms for these two voices. No recording of theirs is in this project. Flite says every word in the midst and at the end of a phrase; phrases drawn
from the small grammar in `training/voice/words.py` join these words, so the voice speaks word by word, with little melody. These weights were made in stages while the
recipe still changed: Dia took some 3000 steps of 1600 frames (27 minutes of one processor core), the codec's decoder 1200 steps (15 minutes), its encoder
450. The one command below does the same in one go; that run from nothing has not been made whole.

`python -m assets.starter.training.voice` makes the data (flite needed), trains the codec and then Dia, and judges; nothing is released that misses the
gate. `--evaluate` judges these weights again; `--smoke` shows that the parts fit.

## Limits
Numbers are read figure by figure. No laughter or other sounds. Scripts of more than about {longest_s} s should be cut into
turns. Short words ("a", "the", "am") are heard worst; single phrases are up to 30% longer than flite's. Voice prompts are accepted, but the codec's
encoder is hardly trained (it finds about a fifth of the codes), so what follows a prompt is worse and does not take its voice. More training of it would
help, as would whole phrases in place of joined words for the melody; both need hours of a core or minutes of a GPU.
"""


def write(measured: dict[str, Any]) -> str:
    """MODEL.md for these scores."""
    missed = evaluate.misses(measured)
    return TEMPLATE.format(
        words=len(words.vocabulary()), digit_phrases=measured["digits"]["phrases"], digit_words=measured["digits"]["words"],
        word_phrases=measured["words"]["phrases"], word_words=measured["words"]["words"], digits=measured["digits"]["wer"],
        flite_digits=measured["digits"]["flite_wer"], wide=measured["words"]["wer"], flite_wide=measured["words"]["flite_wer"],
        length=measured["length_ratio_mean"], outside=measured["outside_15_percent_share"], clipped=measured["clipped_share"],
        unended=measured["unended_share"], gate=", ".join(f"{name} at most {limit}" for name, limit in evaluate.GATE.items()), longest_s=8, looked_at=evaluate.LOOKED_AT,
        verdict="These weights pass it." if not missed else "These weights miss it: " + "; ".join(missed) + ".",
    )
