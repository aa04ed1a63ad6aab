"""Train, pack and evaluate the starter painter: python -m assets.starter.training.painter. --evaluate only evaluates."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from assets.starter.training.painter.card import write_scores
from assets.starter.training.painter.evaluate import FIRST_TEST_SEED, FIRST_TUNING_SEED, evaluate, missed
from assets.starter.training.painter.pack import pack
from assets.starter.training.painter.train import PARTS, SMOKE, Recipe, train

SHIPPED = Path(__file__).parents[2] / "painter"


def _judge(folder: Path, count: int, tuning: bool, sheet: Path | None) -> int:
    card_at = folder / "starter.json"
    card = json.loads(card_at.read_text(encoding="utf-8"))
    scores = evaluate(folder, count, FIRST_TUNING_SEED if tuning else FIRST_TEST_SEED, sheet)
    print(json.dumps(scores, indent=1))
    if not tuning:
        card["scores"] = scores
        card_at.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        write_scores(folder / "README.md", scores)
    failed = missed(scores, card["gate"])
    for line in failed:
        print(f"not fit for release: {line}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assets.starter.training.painter", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("painter-work"), help="where data and checkpoints go")
    parser.add_argument("--folder", type=Path, default=SHIPPED, help="where the packed pipeline lies")
    parser.add_argument("--evaluate", action="store_true", help="judge the packed weights; fails if they miss the gate")
    parser.add_argument("--tuning", action="store_true", help="judge on the scenes kept for choosing settings; writes no scores")
    parser.add_argument("--count", type=int, default=200, help="captions to judge")
    parser.add_argument("--sheet", type=Path, help="also write a contact sheet of the first 64")
    parser.add_argument("--smoke", action="store_true", help="two steps of everything, in a folder that is thrown away")
    parser.add_argument("--part", choices=PARTS, help="train this part only, on a core of its own, and pack nothing")
    given = parser.parse_args()
    if given.evaluate:
        return _judge(given.folder, given.count, given.tuning, given.sheet)
    if given.smoke:
        with tempfile.TemporaryDirectory() as work:
            for line in train(Path(work), SMOKE):
                print(line, flush=True)
            print(pack(Path(work), Path(work) / "packed", SMOKE.as_facts), "bytes")
        return 0
    for line in train(given.work, Recipe(), (given.part,) if given.part else PARTS):
        print(line, flush=True)
    if given.part:
        return 0
    pack(given.work, given.folder, Recipe().as_facts)
    return _judge(given.folder, given.count, False, given.sheet)


sys.exit(main())
