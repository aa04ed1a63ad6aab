"""python -m assets.starter.training.voice: trains the starter voice from nothing; --evaluate judges what ships; --smoke takes two steps of everything."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch

from . import card, corpus, evaluate, export, smoke, train, vocoder

SHIPPED = Path(__file__).resolve().parents[2] / "voice"


def build(work: Path, minutes: float) -> int:
    """Data, codec, Dia, evaluation; the weights are released only through the gate."""
    data, trained = work / "data", work / "dia.pt"
    if not (data / "codec.npz").exists():
        corpus.write(data)
    vocoder.fit_decoder(data / "codec.npz", work / "codec", steps=900)
    vocoder.fit_encoder(data / "codec.npz", work / "codec", steps=500)
    train.fit(data, trained, seconds=minutes * 60, rate=3.5e-3)
    ready = work / "voice"
    export.write(trained, work / "codec", ready)
    return release(ready, SHIPPED)


def release(ready: Path, shipped: Path) -> int:
    """Judges `ready`; copies it over `shipped` where it passes, says every miss where it does not."""
    measured = judge_folder(ready)
    missed = evaluate.misses(measured)
    if missed:
        print("Not released: " + "; ".join(missed))
        return 1
    shutil.copytree(ready, shipped, dirs_exist_ok=True)
    return 0


def judge_folder(folder: Path) -> dict[str, object]:
    """Measures the voice of a folder and writes the scores into its starter.json and MODEL.md."""
    measured, verdicts = evaluate.evaluate(folder)
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
    parser.add_argument("--minutes", type=float, default=60.0, help="processor time for the training of Dia")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--evaluate", action="store_true", help="judge the weights that ship")
    parser.add_argument("--smoke", action="store_true", help="two steps of every part on made-up sound, then stop")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.smoke:
        print(smoke.run(asked.work))
        return 0
    if asked.evaluate:
        return 1 if evaluate.misses(dict(judge_folder(SHIPPED))) else 0
    return build(asked.work, asked.minutes)


if __name__ == "__main__":
    raise SystemExit(main())
