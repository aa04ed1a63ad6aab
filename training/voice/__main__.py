"""Train the starter voice: python -m training.voice. --evaluate judges the shipped weights; --smoke runs two steps of every part."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from . import (
    card,
    corpus,
    earlier,
    evaluate,
    export,
    letters,
    listening,
    moonshine,
    prompts,
    ready,
    sentences,
    smoke,
    speak,
    train,
    vocoder,
)

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "starter" / "voice"
PROMPTS, READY_TEXTS = 16, 5


def parts(work: Path, minutes: float) -> dict[str, tuple[Path, Callable[[], object]]]:
    """Return all parts in order, each with the file or folder that exists once it is done."""
    texts, sounds, phrases, read, rough, decoder, encoder, voice = (
        work / name for name in ("texts", "sounds.npz", "phrases", "letters.bin", "decoder", "polished", "encoder", "voice")
    )
    drawn = partial(sentences.drawn, texts, corpus.TRAINING_SEED)
    return {
        "texts": (texts, lambda: sentences.unpack(texts)),
        "letters": (read, lambda: print(letters.main(drawn(), sentences.known_words(texts), read))),
        "sounds": (sounds, lambda: corpus.write_sounds(drawn()[: corpus.CODEC_TEXTS], sounds)),
        "phrases": (phrases / corpus.DONE, lambda: corpus.write_phrases(sounds, drawn(), phrases)),
        "decoder": (rough, lambda: vocoder.fit_decoder(sounds, rough)),
        "polish": (decoder, lambda: vocoder.fit_decoder(sounds, decoder, vocoder.POLISH_STEPS, rate=4e-4, seed=3, trained=rough)),
        "encoder": (encoder, lambda: vocoder.fit_encoder(sounds, encoder)),
        "dia": (work / "dia.pt", lambda: train.fit(sounds, phrases, work / "dia.pt", seconds=minutes * 60)),
        "voice": (voice, lambda: export.write(work / "dia.pt", decoder, encoder, read, voice)),
        "ready": (voice / ready.FOLDER, lambda: ready.write(voice)),
    }


def parts_after(released: Path, seen: int, work: Path, minutes: float) -> dict[str, tuple[Path, Callable[[], object]]]:
    """Return the parts where a released voice trains on, with sentences after the first `seen`: its codec and its reading are kept."""
    texts, fresh, sounds, phrases, voice = (work / name for name in ("texts", "fresh.npz", "sounds.npz", "phrases", "voice"))
    drawn = partial(sentences.drawn, texts, corpus.TRAINING_SEED)
    return {
        "texts": (texts, lambda: sentences.unpack(texts)),
        "fresh": (fresh, lambda: corpus.write_sounds(drawn()[: corpus.CODEC_TEXTS], fresh)),
        "sounds": (sounds, lambda: earlier.write_sounds(released, fresh, sounds)),
        "phrases": (phrases / corpus.DONE, lambda: corpus.write_phrases(sounds, drawn(), phrases, seen)),
        "dia": (work / "dia.pt", lambda: train.fit(sounds, phrases, work / "dia.pt", minutes * 60, released)),
        "voice": (voice, lambda: export.write(work / "dia.pt", released / "codec", released / "codec", released / export.LETTERS, voice)),
        "ready": (voice / ready.FOLDER, lambda: ready.write(voice)),
    }


def build(work: Path, making: dict[str, tuple[Path, Callable[[], object]]], only: str | None = None) -> int:
    """Make every part, or `only` one, then release the weights if they pass. Parts in `work` are not made again, and Dia resumes, so that
    the same command continues after an interruption."""
    for name, (made, make) in making.items():
        if only in (None, name) and not made.exists():
            begun = time.process_time()
            make()
            print(f"{name}: made in {time.process_time() - begun:.0f} s of processor time", flush=True)
    return release(work / "voice", work / "texts", SHIPPED) if only is None else 0


def release(folder: Path, texts: Path, shipped: Path) -> int:
    """Judge the voice in `folder`; put it in the place of `shipped` if it passes, else name every miss."""
    missed = evaluate.misses(judge_folder(folder, texts))
    if missed:
        print("Not released: " + "; ".join(missed))
        return 1
    shutil.rmtree(shipped, ignore_errors=True)
    shutil.copytree(folder, shipped)
    return 0


def judge_folder(folder: Path, texts: Path, second: Path | None = None) -> dict[str, object]:
    """Measure the voice in a folder and write the scores into its starter.json and MODEL.md. `second`: where moonshine.Moonshine's files are."""
    voice = speak.load(folder)
    asked = evaluate.trials(texts, evaluate.TEST)
    said = evaluate.spoken_by(voice, asked, seed=11)
    verdicts = evaluate.judged(asked, said)
    measured = evaluate.scores(verdicts)
    if second:
        measured["second"] = evaluate.second_opinion(moonshine.Moonshine(second), asked, said)
    plain = [trial.text for trial in asked if not trial.digits]
    measured["prompts"] = prompts.scores(prompts.followed(voice, plain, PROMPTS))
    measured["ready"] = ready.scores(voice, plain[:READY_TEXTS])
    for verdict in verdicts:
        if verdict.errors > verdict.flite_errors:
            print(f"{verdict.trial.speaker} {verdict.trial.text} -> {verdict.heard}")
    print(json.dumps(measured, indent=1))
    export.describe(folder, measured)
    (folder / "MODEL.md").write_text(card.write(measured))
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("starter-voice-work"), help="where data and checkpoints go")
    parser.add_argument("--minutes", type=float, default=240.0, help="processor time for the training of Dia")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--part",
        choices=tuple(parts(Path(), 0) | parts_after(Path(), 0, Path(), 0)),
        help="make this part alone, so that two can be made side by side",
    )
    parser.add_argument("--seen", type=int, help="train on from the weights that ship, with sentences after so many of those drawn")
    parser.add_argument("--evaluate", action="store_true", help="judge the weights that ship")
    parser.add_argument(
        "--second", type=Path, help="with --evaluate: hear the sentences by Moonshine, too; its files' folder (moonshine.py)"
    )
    parser.add_argument("--listen", action="store_true", help="make the page of clips for one's own ears from the weights that ship")
    parser.add_argument("--smoke", action="store_true", help="two steps of every part on made-up sound, then stop")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.smoke:
        print(smoke.run(asked.work))
        return 0
    if asked.listen:
        listening.write_page(SHIPPED, asked.work / "texts")
        return 0
    if asked.evaluate:
        return 1 if evaluate.misses(dict(judge_folder(SHIPPED, asked.work / "texts", asked.second))) else 0
    making = parts(asked.work, asked.minutes) if asked.seen is None else parts_after(SHIPPED, asked.seen, asked.work, asked.minutes)
    return build(asked.work, making, asked.part)


if __name__ == "__main__":
    raise SystemExit(main())
