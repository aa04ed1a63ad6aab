"""Write tables of translations in the order of their keys, so that two people's rows rarely meet: order_tables.py FILE..."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def order(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main(names: list[str]) -> int:
    changed = False
    for path in map(Path, names):
        before = path.read_text("utf-8")
        if (after := order(before)) != before:
            path.write_text(after, "utf-8")
            changed = True
    return int(changed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
