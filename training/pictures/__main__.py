"""Train, pack and evaluate the starter painter: python -m training.pictures. Parts may run side by side, a core each."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from training.pictures.card import write_scores
from training.pictures.evaluate import FIRST_TEST_SEED, FIRST_TUNING_SEED, evaluate, missed, unseen, write_json
from training.pictures.pack import pack
from training.pictures.told import read_file
from training.pictures.train import AMOUNTS, train

SHIPPED = Path(__file__).parents[2] / "assets" / "starter" / "painter"


def _judge(folder: Path, given: argparse.Namespace) -> int:
    """Look at what the packed weights make of captions kept out of training, or of those in a file."""
    card = json.loads((folder / "starter.json").read_text(encoding="utf-8"))
    changed = {name: value for name, value in (("steps", given.steps), ("guidance", given.guidance)) if value is not None}
    settings = card["settings"] | changed
    if given.captions:
        for name, told in read_file(given.captions).items():
            sheet = given.sheet and given.sheet.with_stem(f"{given.sheet.stem}-{name}")
            some = told[: given.count]
            scores, lines = evaluate(folder, [each["caption"] for each in some], some, settings, sheet)
            print(*lines, f"{name}: {json.dumps(scores, indent=1)}", sep="\n", flush=True)
        return 0
    first_seed = FIRST_TUNING_SEED if given.tuning else FIRST_TEST_SEED
    scores, lines = evaluate(folder, [caption for _, caption in unseen(first_seed, given.count)], (), settings, given.sheet)
    print(*lines, json.dumps(scores, indent=1), sep="\n")
    if not given.tuning:
        write_json(folder / "starter.json", card | {"scores": scores})
        write_scores(folder / "README.md", scores)
    failed = missed(scores, card["gate"])
    for line in failed:
        print(f"not fit for release: {line}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.pictures", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("pictures-work"), help="where data and checkpoints go")
    parser.add_argument("--earlier", type=Path, help="an edition whose parts are trained further; without it all begins from nothing")
    parser.add_argument("--part", choices=(*AMOUNTS, "pack"), help="do this part only")
    parser.add_argument("--amount", type=int, help="how many pictures or steps of it")
    parser.add_argument("--evaluate", action="store_true", help="judge the packed weights; fails if they miss the gate")
    parser.add_argument("--tuning", action="store_true", help="judge on the scenes kept for choosing settings; writes no scores")
    parser.add_argument(
        "--captions", type=Path, help="judge on the captions of this file, beside which stands what they mean; writes no scores"
    )
    parser.add_argument("--folder", type=Path, default=SHIPPED, help="where the packed pipeline lies")
    parser.add_argument("--count", type=int, default=300, help="captions to judge")
    parser.add_argument("--sheet", type=Path, help="also write a contact sheet of the first 60")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--guidance", type=float)
    given = parser.parse_args()
    if given.evaluate:
        return _judge(given.folder, given)
    amounts = AMOUNTS | ({given.part: given.amount} if given.amount else {})
    parts = [given.part] if given.part else list(AMOUNTS)
    for line in train(given.work, amounts, [part for part in parts if part != "pack"], given.earlier):
        print(line, flush=True)
    if given.part in (None, "pack"):
        print(pack(given.work, given.folder, AMOUNTS), "bytes")
    return 0 if given.part else _judge(given.folder, given)


if __name__ == "__main__":
    sys.exit(main())
