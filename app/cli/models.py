"""hearth models list | get | remove | where | size"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import IO, Any

from app.cli.job import FAILED, FINISHED, STOPPED, add_common_options
from app.compat.machine.hardware import Hardware, probe
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import load
from app.engine.models import catalog, on_disk
from app.engine.models.catalog import CATALOG
from app.engine.models.chosen import chosen
from app.engine.models.downloads import Downloads, Status
from app.engine.models.fit import FITS, Offer, offer
from app.paths import Home, home
from app.sentence import Sentence, say

POLL_S = 0.3
BAR_LETTERS = 24


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "act", nargs="?", default="list", choices=("list", "get", "remove", "where", "size"), help="by default list"
    )
    parser.add_argument("model", nargs="*", help="names from the list")
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    place = home(args.home).made()
    if args.act == "list":
        return list_models(place, args)
    if not args.model and args.act in ("get", "remove"):
        print(say("models.which", "Which one? hearth models {act} NAME, with a name from: hearth models list", act=args.act), file=sys.stderr)  # fmt: skip
        return FAILED
    if args.act == "get":
        return download(place, args)
    chosen = [catalog.find(each) for each in args.model]
    if args.act == "remove":
        for model in chosen:
            given = Downloads(place).remove(model, CATALOG)
            print(say("models.removed", "{model}: {size} given back.", model=model.title, size=format_size(given)))
        return FINISHED
    if args.act == "where":
        for model in chosen:
            found = on_disk.located(place, model)
            print(found.folder if found else say("models.absent", "{model} is not here yet.", model=model.title))
        if not chosen:
            print(place.models)
        return FINISHED
    for model in chosen or CATALOG:
        if size := on_disk.size_bytes(place, model):
            print(f"{format_size(size):>9}  {model.id}")
    return FINISHED


def list_models(place: Home, args: argparse.Namespace) -> int:
    hardware = get_hardware(args.pretend)
    verdicts = load(place.verdicts, hardware)
    for each in [catalog.find(name) for name in args.model] or CATALOG:
        found = offer(place, each, hardware, chosen(place), verdicts)
        print(json.dumps(to_plain(found)) if args.json else "\n".join(format_offer(found)))
    return FINISHED


def get_hardware(pretended: str) -> Hardware:
    return machine(pretended) if pretended else probe()


def to_plain(found: Offer) -> dict[str, Any]:
    model, fit = found.model, found.forecast
    assert fit is not None
    return {
        "id": model.id, "title": model.title, "kind": model.kind, "here": found.here, "here_bytes": found.here_bytes,
        "download_bytes": found.download_bytes, "fit": fit.fit, "because": str(fit.sentence), "cures": [str(each.sentence) for each in fit.cures],
        "quantised": found.quantised, "licence": model.licence, "gated": model.gated,
    }  # fmt: skip


def format_offer(found: Offer) -> list[str]:
    model, fit = found.model, found.forecast
    assert fit is not None
    if found.here:
        there = say("models.here", "here, {size}", size=format_size(found.here_bytes))
    else:
        there = say("models.to-get", "{size} to get", size=format_size(found.download_bytes))
    words: list[Sentence | str] = [model.title, FITS[fit.fit], there, model.licence]
    if model.gated:
        words.append(say("models.gated", "its terms are accepted on the hub first"))
    told = [f"{model.id:<16}" + ", ".join(map(str, words)), " " * 16 + str(fit.sentence)]
    told += [" " * 16 + str(cure.sentence) for cure in fit.cures]
    return told


def download(place: Home, args: argparse.Namespace) -> int:
    """Ctrl+C pauses; the same command goes on from there."""
    models = [catalog.find(each) for each in args.model]
    hardware = get_hardware(args.pretend)
    verdicts = load(place.verdicts, hardware)
    downloads = Downloads(place)
    try:
        for model in models:
            downloads.start(model, offer(place, model, hardware, chosen(place), verdicts).quantised)
        while any(each.state in ("queued", "running") for each in downloads.status()):
            print_progress(downloads.status(), sys.stderr)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        downloads.close()
        print("\n" + str(say("models.paused", "Paused. The same command goes on from here.")), file=sys.stderr)
        return STOPPED
    finally:
        downloads.close()
    failed = False
    for each in downloads.status():
        failed = failed or each.state != "done"
        if args.json:
            print(
                json.dumps(
                    {
                        "id": each.model,
                        "state": each.state,
                        "bytes": each.done_bytes,
                        "trouble": str(each.sentence or ""),
                    }
                )
            )
        elif each.state == "done":
            print(say("models.got", "{model} is here, {size}.", model=each.model, size=format_size(each.done_bytes)))
        if each.state == "failed":
            print(f"\nhearth: {each.sentence}", file=sys.stderr)
    return FAILED if failed else FINISHED


def print_progress(all_: list[Status], out: IO[str]) -> None:
    if out.isatty():
        print("\r\x1b[K" + "   ".join(map(format_bar, all_)), end="", file=out, flush=True)


def format_bar(status: Status) -> str:
    full = round(BAR_LETTERS * status.done_bytes / max(1, status.total_bytes))
    words = [
        status.model,
        f"[{'#' * full}{'.' * (BAR_LETTERS - full)}]",
        f"{format_size(status.done_bytes)} of {format_size(status.total_bytes)}",
    ]
    if status.rate:
        words.append(f"{status.rate / 1e6:.1f} MB/s")
    if status.eta_s is not None:
        words.append(f"{status.eta_s / 60:.0f} min left" if status.eta_s > 90 else f"{status.eta_s:.0f} s left")
    if status.sentence is not None:
        words.append(str(status.sentence))
    return "  ".join(words)


def format_size(size_bytes: int) -> str:
    """As disks and downloads are counted: in powers of ten."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e8 else f"{size_bytes / 1e6:.1f} MB"
