"""Write the model card of the starter voice from its measured scores."""

from __future__ import annotations

from typing import Any

from . import evaluate, sentences
from .flite import BASE_NAMES, SPEAKERS, VOICES

TEMPLATE = """# Hearth starter voice

A very small Dia (the real `DiaForConditionalGeneration`, `DacModel`, `DiaProcessor`) that comes with Hearth, so that a fresh machine speaks with no
download. It speaks any English sentence, with two speakers, `[S1]` and `[S2]`. It reads sounds, not letters: Hearth writes numbers, dates and
abbreviations out (`app/engine/speech/text/written_out.py`), turns words into sounds by a table of this model's own (`letters.bin`, read by
`app/engine/speech/text/pronounce.py`), and Dia's encoder reads one byte a sound. {voices} voices have names (`voices/`): the encoder is told one by a figure
after the speaker's tag. Without it `[S1]` is {first}, `[S2]` is {second}.

| measured on sentences it never met, speaking freely | starter voice | flite itself |
|---|---|---|
| word errors, figures ({digit_texts} phrases, {digit_words} words) | {digits:.1%} | {flite_digits:.1%} |
| word errors, sentences ({texts} sentences, {words} words) | {wide:.1%} | {flite_wide:.1%} |
{other}| length against flite's | {length:.2f} | 1 |
| lost or repeated a clause | {gone:.1%} | |
| ends clipped | {clipped:.1%} | |
| did not end by itself | {unended:.1%} | |
| semitones between `[S1]` and `[S2]` | {apart:.1f} | |
| word errors in the {voices} ready voices ({ready_texts} sentences) | {ready:.1%} | {flite_ready:.1%} |
| the same: less than a semitone from flite's pitch | {near:.1%} | |
| after a prompt in one of the {voices} voices: near its pitch ({prompts} prompts) | {taken:.1%} | |
| word errors after such a prompt | {prompted:.1%} | {flite_prompted:.1%} |

Judge: pocketsphinx with its own acoustic and language model of English; for figures, the ten figures in any order. A second judge, Moonshine tiny
(`moonshine.py` beside the training's other files says which packages carry it), hears much better. Sentences are drawn from the
same sources as the training's, by their hash: one of {held_out} is never trained on. {verdict}

The gate of the release: {gate}.

## Made from
Speech of CMU Flite 2.2 with its voices {bases}, changed in pitch and tract into {voices} voices. Flite's copyright
file (Copyright (c) 1999-2001 Language Technologies Institute, Carnegie Mellon University) permits use, copying, modification, distribution and sale,
free of charge, with its notice kept, changes marked and no endorsement claimed. No recording is in this project. The sentences come from Debian's
packages {sources}, and words from wamerican.

{course}

`python -m training.voice` makes the data (flite needed), trains the codec, the reading and Dia, and judges; nothing is released that
misses the gate. With `--seen` these weights train on instead, with sentences that they never saw. `--evaluate` judges these weights again;
`--listen` makes a page of twenty clips; `--smoke` shows that the parts fit.

## Limits
No laughter or other sounds. Names and foreign words are read by rule: of words that its table lacks, four of ten get a sound somewhere that flite
would not say (8% of their sounds). A voice prompt makes a speaker go on in that one of the {voices} voices that is most like it: it lends no new
voice. After a prompt of two speakers both may have the last one's, so Hearth lets it hear one speaker's turn; a voice saved from its own
results is not heard at all, but named. Both judges mishear flite itself, too: their figures compare voices, they do not say how much a person understands.
"""

COURSE = """These weights saw 12,000 sentences in Dia's first 6,095 steps (92 minutes of one core of a Xeon at 2.8 GHz); 2,268 more (22 minutes of
a core of an EPYC, `--seen 12000`) drew theirs from 20,000 others. The codec's decoder took 2,300 steps and its encoder 2,500 in about an hour."""
"""The weights that ship were trained so; of others it is to be told anew."""
SECOND = "| the same sentences, heard by Moonshine tiny | {wer:.1%} | {flite_wer:.1%} |\n"


def write(measured: dict[str, Any]) -> str:
    """Return MODEL.md for these scores."""
    missed, after = evaluate.misses(measured), measured["prompts"]
    licences: dict[str, str] = {source.package: source.licence for source in sentences.SOURCES}
    return TEMPLATE.format(
        digit_texts=measured["digits"]["texts"],
        digit_words=measured["digits"]["words"],
        texts=measured["words"]["texts"],
        words=measured["words"]["words"],
        digits=measured["digits"]["wer"],
        flite_digits=measured["digits"]["flite_wer"],
        wide=measured["words"]["wer"],
        flite_wide=measured["words"]["flite_wer"],
        other=SECOND.format(**measured["second"]) if "second" in measured else "",
        length=measured["length_ratio_mean"],
        gone=measured["lost_or_repeated_share"],
        clipped=measured["clipped_share"],
        unended=measured["unended_share"],
        apart=measured["semitones_apart"],
        prompts=after["prompts"],
        ready_texts=measured["ready"]["texts"],
        ready=measured["ready"]["wer"],
        flite_ready=measured["ready"]["flite_wer"],
        near=measured["ready"]["near_share"],
        taken=after["taken_share"],
        prompted=after["wer"],
        flite_prompted=after["flite_wer"],
        voices=len(VOICES),
        bases=BASE_NAMES,
        course=COURSE,
        first=SPEAKERS["S1"].title(),
        second=SPEAKERS["S2"].title(),
        held_out=sentences.HELD_OUT_OF,
        sources=", ".join(f"{package} ({licence})" for package, licence in licences.items()),
        gate=", ".join(f"{name} {limit}" for name, limit in evaluate.GATE.items()),
        verdict="These weights pass it." if not missed else "These weights miss it: " + "; ".join(missed) + ".",
    )
