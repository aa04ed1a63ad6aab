"""hearth bench speech|voices|paint|start|queue|machines|attention: choose the bench, print its tables as they are measured, compare with an earlier run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from app.base.clean_words import clean_words
from app.cli.machine_options import add_home_option, read_machine
from bench.against import compare, format_comparison, read_earlier
from bench.report import Report, describe_machine, format_machine, word_command
from bench.silence import silence_libraries

BENCHES: Final = {
    "speech": ("bench.speech", "time a row of Dia 1.6B's shape, beside plain transformers"),
    "voices": ("bench.voices", "time a part of Pocket TTS's, Phonon's or VibeVoice's shapes, beside plain transformers"),
    "paint": ("bench.paint", "time a step of SD 1.5's or SDXL's shape, beside plain diffusers"),
    "start": ("bench.start", "time how soon there is a page, an engine, a first step and a first sound"),
    "queue": ("bench.queue", "time a hundred queued jobs beside one, and the keeper's own share"),
    "machines": ("bench.machines", "time pictures over 1, 2 and 4 helpers, a task's way there and back, and 200 pretended helpers"),
    "attention": ("bench.attention", "time every shape of attention that the catalog's models use, beside torch's own"),
}
"""Each module has `add_arguments(parser)` and `measure(args)`, which yields what report.py takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(dest="what", required=True, metavar="what")
    for name, (module, help_) in BENCHES.items():
        bench = benches.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        import_module(module).add_arguments(bench)
        add_home_option(bench)
        bench.add_argument("--json", action="store_true", help="print the figures as JSON, and the tables to standard error")
        bench.add_argument("--against", type=Path, metavar="FILE", help="divide the figures by those of an earlier run, stored with --json")


def main(args: argparse.Namespace) -> int:
    import torch

    from app.engine.session.machine_check import SKIPPED

    silence_libraries()
    os.environ.setdefault(SKIPPED, "1")  # a machine in use is checked already; in a home as new as a bench's the check takes a core
    earlier = read_earlier(args.against, args.what) if args.against else None
    _, hardware, _ = read_machine(args)
    report = Report(args.what, word_command(args.given), describe_machine(hardware, torch.get_num_threads()))
    where = sys.stderr if args.json else sys.stdout
    print(format_machine(report.about), report.command, "", sep="\n", file=where, flush=True)
    for found in import_module(BENCHES[args.what][0]).measure(args):
        for line in report.add(found):
            print(line, file=where, flush=True)
    values = report.to_json()
    if earlier is not None:
        values["against"] = {"command": earlier.command, "about": dict(earlier.about), "rows": compare(report, earlier)}
        for line in format_comparison(report, earlier, values["against"]["rows"]):
            print(clean_words(line), file=where)
    if args.json:
        print(json.dumps(values, indent=1))
    return 0
