"""Write the model card of the starter voice from its measured scores."""

from __future__ import annotations

from typing import Any

from . import corpus, evaluate, words

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
| after a prompt of the other voice: takes that voice's pitch ({prompts} prompts) | {taken:.1%} | |
| word errors after a prompt of the other voice / of the tag's own | {other_wer:.1%} / {own_wer:.1%} | |

Judge: pocketsphinx with its own acoustic model; any word of the list may follow any other, all alike, so no grammar helps the voice. Phrases and seeds:
`corpus.held_out(TEST_SEED, ...)`; the training never meets them. Settings were chosen on others (`TUNING_SEED`). The first {looked_at} test phrases of
each kind, which an earlier recipe was mended by, are not counted. A prompt is a sentence said by flite; its voice counts as taken where the median pitch
of what follows is nearer to the prompt's than to that of the voice left to itself.
Gate of the release: {gate}. {verdict}

## Made from
Speech of CMU Flite 2.2 with its voices cmu_us_slt and cmu_us_rms. Flite's copyright file (Copyright (c) 1999-2001 Language Technologies Institute,
Carnegie Mellon University) permits use, copying, modification, distribution and sale, free of charge, with its notice kept, changes marked and no
endorsement claimed; it names no other terms for these two voices. No recording of theirs is in this project. Flite says {phrases} phrases whole with each
voice, drawn from the small grammar in `training/voice/words.py`; scripts are one to six of them. In some scripts the first turns are a prompt, in which a
speaker may have the other's voice, and keeps it.

`python -m assets.starter.training.voice` makes the data (flite needed), trains the codec and Dia, and judges; nothing is released that misses the gate.
{history} `--evaluate` judges these weights again; `--smoke` shows that the parts fit.

## Limits
Numbers are read figure by figure. No laughter or other sounds. Scripts of more than about {longest_s} s should be cut into
turns. {weak}
"""
HISTORY = """These weights were made by it from nothing in one folder, in some 215 minutes of one processor core: sounds and codebooks 1, phrases 8, the
codec's decoder 7 (600 steps) and its polish 84 (7500), its encoder 15 (2500), Dia 92 (some 8300 steps of 1600 frames), the rest judging. It was no unbroken
run: the parts were started one by one (`--part`), some side by side, while the recipe of the later ones was still being finished; Dia was stopped
after 34 minutes and the polish after 3000 steps, each at the end of a course as long as that, and went on from there at the full rate, which falls over
the second half of a course."""
WEAK = """The first speaker is heard worse than the second ({first:.1%} of the words wrong against {second:.1%}), and so is the voice that taught
her: of 792 tuning words of each the judge hears 9% of flite's own slt wrong (rms 3%), and 11% (2%) once they went through the codec. A voice prompt (at
most 4 s are heard) makes a speaker go on in one of the two voices, the one that is more like it: it lends no new voice. \
After a recording of a person it stammers (about half of the words wrong): Hearth lets it
follow only what it spoke itself (`own_voices` in starter.json) and refuses any other recording at once."""


def write(measured: dict[str, Any]) -> str:
    """Return MODEL.md for these scores."""
    missed, prompts = evaluate.misses(measured), measured["prompts"]
    return TEMPLATE.format(
        words=len(words.vocabulary()),
        digit_phrases=measured["digits"]["phrases"],
        digit_words=measured["digits"]["words"],
        word_phrases=measured["words"]["phrases"],
        word_words=measured["words"]["words"],
        digits=measured["digits"]["wer"],
        flite_digits=measured["digits"]["flite_wer"],
        wide=measured["words"]["wer"],
        flite_wide=measured["words"]["flite_wer"],
        length=measured["length_ratio_mean"],
        outside=measured["outside_15_percent_share"],
        clipped=measured["clipped_share"],
        unended=measured["unended_share"],
        prompts=prompts["other"]["prompts"],
        taken=prompts["other"]["taken_share"],
        other_wer=prompts["other"]["wer"],
        own_wer=prompts["own"]["wer"],
        phrases=corpus.PHRASES,
        history=HISTORY,
        weak=WEAK.format(first=measured["words"]["wer_S1"], second=measured["words"]["wer_S2"]),
        gate=", ".join(f"{name} at most {limit}" for name, limit in evaluate.GATE.items()),
        longest_s=8,
        looked_at=evaluate.LOOKED_AT,
        verdict="These weights pass it." if not missed else "These weights miss it: " + "; ".join(missed) + ".",
    )
