"""hearth doctor: report this machine, its plans and the reasons, as a page or JSON; forget failed runs."""

from __future__ import annotations

import argparse
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app import __version__
from app.base.clean_words import clean_words
from app.base.languages import in_terminal, word_for, word_help
from app.base.paths import Home
from app.base.sentence import Sentence, Value, join_sentences, say
from app.base.start_command import name_command
from app.base.terminal_lines import fit_line, pad, wrap
from app.base.trouble import Trouble
from app.cli.job import TROUBLE, print_answer, print_sentence
from app.cli.machine_options import add_common_options, read_machine
from app.compat.machine.chunk_curve import Curve, read_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.report import describe_report
from app.compat.machine.report_file import lay_out
from app.compat.machine.verdicts import Subject, Verdict, Verdicts, forget, learn, read_given, verdict_file
from app.compat.planning.decide import DECIDED_FIELDS, check_machine
from app.compat.planning.fallbacks import learned
from app.compat.planning.plan_words import word_option, word_source, word_value
from app.compat.planning.types import Plan, Reason
from app.engine.models import catalog
from app.engine.models.chosen import read_choice, read_chunk
from app.engine.models.model import Model
from app.engine.models.on_disk import locate
from app.engine.models.planned import explain_stand_in, make_plan

SHOWN = ("dia-1.6b", "sd15", "sdxl")
"""The page shows these models even if they are not installed."""
ANY = say("doctor.any", "Attention of any model")
_WEIGHTS = ("precision", "offload", "vae", "quantised")
_GIB = 1 << 30
_LABEL, _FIELD = 14, 18
"""Labels and fields take so many places."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        help=word_help(say("usage.doctor-json", "print everything as JSON; with --selftest the machine alone, for --pretend")),
    )
    parser.add_argument(
        "--why", action="store_true", help=word_help(say("usage.doctor-why", "also show rejected options and every objection"))
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=word_help(
            say("usage.doctor-model", "show the plan for this model only: a name from '{hearth} models', or a local folder or file")
        ),
    )
    parser.add_argument(
        "--selftest", action="store_true", help=word_help(say("usage.doctor-selftest", "run the self-test again and store its results"))
    )
    parser.add_argument(
        "--forget",
        nargs="?",
        const="",
        metavar="NAME",
        help=word_help(
            say(
                "usage.doctor-forget",
                "forget what Hearth learned from failed runs of this model, or of all models; the next run starts afresh",
            )
        ),
    )
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    home, hardware, verdicts = read_machine(args)
    folder = home.verdicts
    if args.forget is not None:
        print_answer(forgotten(forget(folder, hardware, args.forget and catalog.find(args.forget).id)))
        return 0
    if not args.json:
        print("\n".join(wrapped(about(hardware))))
    try:
        check_machine(hardware)
    except Trouble as trouble:
        if not args.json:
            raise
        print(lay_out(describe_report(hardware, verdicts)))  # in place of the refusal: its facts are worth sending
        for sentence in (trouble.sentence, *trouble.objections):
            print_sentence(sentence)
        return TROUBLE
    if args.selftest:
        verdicts = learn(folder, hardware, *test(hardware).values())
    report = describe_report(hardware, verdicts, list_curves(home, hardware)) if args.json else {}
    if args.json and args.selftest:
        print(lay_out(report))
        return 0
    models = list_models(home, args.model or "")
    shown = {name: Shown.of(home, hardware, model, verdicts) for name, model in models.items()}
    if args.json:
        print(lay_out(report | to_plain(home, shown)))
        return 0
    print("\n".join(wrapped(page(shown, args.why))))
    print("\n".join(wrapped(tested(verdicts, Path(hardware.report) if hardware.report else verdict_file(folder, hardware)))))
    return 0


def list_models(home: Home, named: str = "") -> dict[str, Model | None]:
    """Return the named model, or attention without a model, the three best-known models and all installed ones."""
    if named:
        found = catalog.find(named)
        return {found.title: found}
    shown = [each for each in catalog.CATALOG if each.id in SHOWN or (each.source and locate(home, each))]
    return {str(ANY): None} | {each.title: each for each in shown}


def list_curves(home: Home, hardware: Hardware) -> list[Curve]:
    """List the chunk curves that Tune measured on this computer; they are none of a pretended machine."""
    found = () if hardware.pretended else (read_curve(home, each.id) for each in catalog.CATALOG)
    return [each for each in found if each is not None]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page shows for one model."""

    title: Value
    plan: Plan | Trouble
    """A Trouble says that a choice made by hand cannot work."""
    taught: tuple[Sentence, ...]
    """It tells what Hearth learned from failed runs of this model, and how to forget it."""
    note: Sentence | None = None
    here: Plan | None = None
    """In a pretended machine's place, it shows the plan of this computer if that differs from the machine's own."""

    @classmethod
    def of(cls, home: Home, hardware: Hardware, model: Model | None, verdicts: Verdicts) -> Shown:
        choice, chunk = read_choice(home), read_chunk(home)
        title, taught = model.words if model is not None else ANY, taught_by(hardware, model, verdicts)
        try:
            plan = make_plan(home, hardware, model, choice, verdicts, chunk=chunk, itself=bool(hardware.pretended))
            here = make_plan(home, hardware, model, choice, verdicts, chunk=chunk)
        except Trouble as trouble:
            return cls(title, trouble, taught)
        note = explain_stand_in(hardware, plan, here)
        return cls(title, plan, taught, note, here if note is not None else None)


def taught_by(hardware: Hardware, model: Model | None, verdicts: Verdicts) -> tuple[Sentence, ...]:
    fallbacks = learned(verdicts, model.id) if model is not None else ()
    if model is None or not fallbacks:
        return ()
    if fallbacks == learned(read_given(hardware), model.id):  # all are of a report's file, which stays as it is
        return tuple(each.sentence for each in fallbacks)
    pretending = f" --pretend {shlex.quote(hardware.report or hardware.pretended)}" if hardware.pretended else ""
    command = f"{name_command()} doctor --forget {shlex.quote(model.id)}{pretending}"
    forget_it = say("doctor.forget", "To forget this and try again: {command}", command=command)
    return (*(each.sentence for each in fallbacks), forget_it)


def forgotten(subjects: tuple[Subject, ...]) -> Sentence:
    if not subjects:
        return say("forget.none", "Nothing to forget: Hearth has learned nothing from failed runs here.")
    names = tuple(each.name for each in subjects)
    return say("forget.done", "Forgotten: {names}. The next run starts afresh.", names=names)


def test(hardware: Hardware) -> dict[Subject, Verdict]:
    """Run the self-test, with progress on stderr so that stdout holds only the page or JSON."""
    from app.compat.selftest import run
    from app.engine.session.machine_check import questions

    def tell(done: int, total: int, words: Sentence) -> None:
        if not sys.stderr.isatty():
            return
        print(
            f"\r{done}/{total} {fit_line(word_for(sys.stderr, words), 60)}", end="\n" if done == total else "", file=sys.stderr, flush=True
        )

    return run.run(hardware, tell, questions)


# The page: headings have no indent, their text has one; an empty line separates sections.

Line = tuple[int, str]


def about(hardware: Hardware) -> Iterator[Line]:
    yield 0, in_terminal(say("doctor.on", "Hearth {version} on {machine}", version=__version__, machine=_word_machine(hardware)))
    memory = say("doctor.memory", "{total} GiB; {free} GiB free", total=_gib(hardware.memory_bytes), free=_gib(hardware.free_bytes))
    if hardware.unified:
        memory = say(
            "doctor.memory-shared",
            "{total} GiB, shared with the processor; {free} GiB free",
            total=_gib(hardware.memory_bytes),
            free=_gib(hardware.free_bytes),
        )
    yield from row(say("doctor.memory-row", "memory"), in_terminal(memory))
    if hardware.capability:
        facts = [say("doctor.capability", "compute capability {major}.{minor}", major=hardware.capability[0], minor=hardware.capability[1])]
        if hardware.driver:
            facts.append(say("doctor.driver", "driver {version}", version=hardware.driver))
        if hardware.arch_list:
            facts.append(say("doctor.code", "this torch has code for {names}", names=" ".join(hardware.arch_list)))
        yield from row(say("doctor.card-row", "card"), "; ".join(map(in_terminal, facts)))
    system = say(
        "doctor.system",
        "{system}, {processor}, {cores} {cores:core|cores}, {memory} GiB",
        system=f"{hardware.system} {hardware.system_version}",
        processor=hardware.processor,
        cores=hardware.cores,
        memory=_gib(hardware.ram_bytes),
    )
    yield from row(say("doctor.system-row", "system"), in_terminal(system))
    torch = hardware.torch or in_terminal(say("doctor.no-torch", "not installed"))
    yield 2, f"{pad('torch', _LABEL)}{torch}; Python {platform.python_version()}"
    yield 0, ""


def _word_machine(hardware: Hardware) -> Sentence | str:
    if not hardware.pretended:
        return hardware.name
    if not hardware.report:
        return say("doctor.pretended", "{name} (pretended)", name=hardware.name)
    return say("doctor.pretended-from", "{name} (pretended, from {file})", name=hardware.name, file=hardware.pretended)


def _gib(size_bytes: int) -> float:
    return round(size_bytes / _GIB, 1)


def row(label: Sentence, text: str) -> Iterator[Line]:
    yield 2, f"{pad(in_terminal(label), _LABEL)}{text}"


def page(shown: Mapping[str, Shown], why: bool) -> Iterator[Line]:
    """Yield the page's lines: the plan without a model in full, then for each model what differs, and its weights."""
    plans = [each.plan for each in shown.values() if isinstance(each.plan, Plan)]
    first = plans[0] if plans and not plans[0].precision else None
    for each in shown.values():
        yield 0, in_terminal(each.title)
        plan = each.plan
        if isinstance(plan, Trouble):
            yield 2, word_trouble(plan)
            yield 0, ""
            continue
        if each.note is not None:
            yield 2, in_terminal(each.note)
        for field, reason in zip(DECIDED_FIELDS, plan.because, strict=True):
            weights = field in _WEIGHTS
            if field == "vae" and plan.of("vae") is None:
                continue
            differs = not weights if plan is first else weights or first is None or word_value(plan, field) != word_value(first, field)
            if differs:
                yield 2, f"{field:<{_FIELD}}{in_terminal(word_value(plan, field))}"
                yield 20, reason_line(reason)
        yield from (told(say("doctor.warning", "warning"), reason.sentence) for reason in plan.warnings)
        yield from (told(say("doctor.learned", "learned"), sentence) for sentence in each.taught)
        if why:
            yield from list_rejected(plan)
        yield 0, ""
    yield from ((0, in_terminal(reason.sentence)) for reason in (plans[0].retired if plans else ()))


def told(label: Sentence, sentence: Sentence) -> Line:
    return 2, f"{pad(in_terminal(label), _FIELD)}{in_terminal(sentence)}"


def word_trouble(trouble: Trouble) -> str:
    return join_sentences(map(in_terminal, (trouble.sentence, *trouble.objections)))


def list_rejected(plan: Plan) -> Iterator[Line]:
    yield 2, in_terminal(say("doctor.rejected", "rejected"))
    for rejected in plan.rejected:
        yield 4, f"{rejected.field} {in_terminal(word_option(rejected.field, rejected.option))}"
        yield from ((20, reason_line(each)) for each in rejected.objections)


def reason_line(reason: Reason) -> str:
    return f"{in_terminal(reason.sentence)} [{in_terminal(word_source(reason.source))}]"


def tested(verdicts: Verdicts, file: Path) -> Iterator[Line]:
    yield 0, in_terminal(say("doctor.selftest", "Self-test"))
    if not verdicts:
        unseen = say(
            "doctor.unseen", "Not run on this machine yet, so the plan is based on other machines. Run {hearth} doctor --selftest."
        )
        yield 2, in_terminal(unseen)
    for sentence, found in counted(verdicts):
        yield 2, in_terminal(sentence)
        yield from ((4, f"{each.subject}: {each.words or f'error {each.error:.2g}'}") for each in found)
    yield 0, ""
    yield 0, in_terminal(say("doctor.to-report", "To report a problem"))
    report = say(
        "doctor.report",
        "Send the output of {hearth} doctor --json, what you did, and what happened. The output describes your machine; "
        "it contains none of your texts, pictures or recordings.",
    )
    yield 2, in_terminal(report)
    if verdicts:
        yield 2, in_terminal(say("doctor.file", "The self-test's results are in {file}.", file=str(file)))


def counted(verdicts: Verdicts) -> Iterator[tuple[Sentence, list[Verdict]]]:
    """Yield a sentence for parts and paths and one for known defects, each with its failed verdicts."""
    rows = [each for each in verdicts.values() if each.subject.kind == "row"]
    paths = [each for each in verdicts.values() if each.subject.matters]
    wrong, shown = ([each for each in some if not each.passed] for some in (paths, rows))
    if paths:
        yield (
            say(
                "doctor.paths",
                "{right} of {total} {total:check is|checks are} right here; what failed is avoided.",
                right=len(paths) - len(wrong),
                total=len(paths),
            ),
            wrong,
        )
    if rows:
        words = say(
            "doctor.rows",
            "{shown} of {total} known {total:defect|defects} {shown:occurs|occur} here and {shown:is|are} worked around.",
            shown=len(shown),
            total=len(rows),
        )
        yield words, shown


def wrapped(lines: Iterator[Line]) -> Iterator[str]:
    width = min(120, shutil.get_terminal_size((100, 24)).columns)
    for indent, text in lines:
        margin = " " * indent
        yield from wrap(clean_words(text), width, margin, margin + "  ") or [""]


def to_plain(home: Home, shown: Mapping[str, Shown]) -> dict[str, Any]:
    """Return the plans and more as JSON, with each sentence's key. `stands_in`: what this computer runs in a pretended
    machine's place, if its plan differs."""
    return {
        "choice": {"chunk": read_chunk(home)} | asdict(read_choice(home)),
        "plans": {name: plan_to_plain(each.plan) for name, each in shown.items()},
        "stands_in": {
            name: {"words": str(each.note), "plan": plan_to_plain(each.here)} for name, each in shown.items() if each.here is not None
        },
    }


def plan_to_plain(plan: Plan | Trouble) -> dict[str, Any]:
    values: dict[str, Any] = _plain(asdict(plan)) if isinstance(plan, Plan) else {"trouble": str(plan)}
    return values


def _plain(found: Any) -> Any:
    if isinstance(found, Mapping):
        if {"key", "english", "values"} <= set(found):
            return {"key": found["key"], "words": str(Sentence(found["key"], found["english"], tuple(found["values"])))}
        return {name: _plain(each) for name, each in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(each) for each in found]
    # JSON has no infinity: null means that NaN came out.
    return None if found == float("inf") else found
