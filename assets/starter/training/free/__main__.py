"""python -m assets.starter.training.free: trains the free voice from nothing; --evaluate judges what ships; --smoke takes two steps of everything."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch

from . import card, corpus, evaluate, export, letters, listen, smoke, train, vocoder

SHIPPED = Path(__file__).resolve().parents[2] / "free-voice"
"""Not the starter's own folder: no voice of Hearth's reads sounds yet, so its engine does not turn letters into them."""
MINUTES = {"cpu": {"decoder": 150.0, "encoder": 30.0, "dia": 1200.0}, "cuda": {"decoder": 6.0, "encoder": 3.0, "dia": 7.5}}
"""Of a processor core, or of a card that all three share."""


def parts(work: Path, minutes: dict[str, float], device: str) -> dict[str, tuple[Path, Callable[[], None]]]:
    """Everything that is made before the release, in order, with the file or folder that is there once it is done."""
    table, sounds, phrases, decoder, encoder, dia, ready = (
        work / name for name in ("letters.gz", "sounds.npz", "phrases", "decoder", "encoder", "dia.pt", "voice")
    )
    return {
        "letters": (table, lambda: letters.build(table)),
        "sounds": (sounds, lambda: corpus.write_sounds(sounds)),
        "phrases": (phrases, lambda: corpus.write_phrases(sounds, phrases)),
        "decoder": (decoder, lambda: vocoder.fit_decoder(sounds, decoder, 60 * minutes["decoder"], device=device)),
        "encoder": (encoder, lambda: vocoder.fit_encoder(sounds, encoder, 60 * minutes["encoder"], device=device)),
        "dia": (dia, lambda: train.fit(sounds, phrases, dia, 60 * minutes["dia"], device=device)),
        "voice": (ready, lambda: export.write(dia, decoder, encoder, table, ready)),
    }


def build(work: Path, minutes: dict[str, float], device: str, only: str | None = None) -> int:
    """Every part, or `only` one of them; then the weights are released, through the gate alone. What `work` holds is not made again, and Dia goes on
    from where it was, so that the same command goes on where it was stopped."""
    work.mkdir(parents=True, exist_ok=True)
    for name, (made, make) in parts(work, minutes, device).items():
        if only in (None, name) and not made.exists():
            begun = time.monotonic()
            make()
            print(f"{name}: made in {time.monotonic() - begun:.0f} s", flush=True)
    return release(work / "voice", SHIPPED) if only is None else 0


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
    measured = evaluate.evaluate(folder)
    print(json.dumps(measured, indent=1))
    export.describe(folder, measured)
    (folder / "MODEL.md").write_text(card.write(measured))
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("starter-voice-work"), help="where data and checkpoints go")
    parser.add_argument("--device", choices=tuple(MINUTES), default="cuda" if torch.cuda.is_available() else "cpu")
    for part in MINUTES["cpu"]:
        parser.add_argument(f"--{part}-minutes", type=float, help=f"for the training of this part; by default {MINUTES['cpu'][part]:g}, {MINUTES['cuda'][part]:g} on a card")
    parser.add_argument("--part", choices=tuple(parts(Path(), {}, "")), help="make this part alone, so that several can be made side by side")
    parser.add_argument("--evaluate", action="store_true", help="judge the weights that ship")
    parser.add_argument("--listen", action="store_true", help="make the page of clips for your own ears")
    parser.add_argument("--smoke", action="store_true", help="two steps of every part on made-up sound, then stop")
    asked = parser.parse_args()
    if asked.smoke:
        print(smoke.run(asked.work))
        return 0
    if asked.listen:
        print(listen.write(SHIPPED))
        return 0
    if asked.evaluate:
        return 1 if evaluate.misses(judge_folder(SHIPPED)) else 0
    minutes = {part: vars(asked)[f"{part}_minutes"] or default for part, default in MINUTES[asked.device].items()}
    return build(asked.work, minutes, asked.device, asked.part)


if __name__ == "__main__":
    raise SystemExit(main())
