"""Errors are classes and sentences have an audience: nothing is decided by a translation's key, and nobody hears more than is marked for them."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.languages import ENGLISH, languages, templates
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import BadRequest, DiskFull, QuotaMet, Trouble
from app.engine.jobs.events import Failed, Note
from app.machines.tasks.event_json import from_json, to_json
from app.ui.state.guest_limits import NOT_MADE, redact_for, redact_sentences
from app.ui.state.person import OWNER, Person
from tests.support.places import TOP
from tests.support.sentences import called
from tests.support.source_trees import parse_source, tree_of

GUEST = Person("visitor-ada", owner=False)
TRANSLATES = {"app/base/sentence.py", "app/ui/page/translate.py"}
"""These files look a sentence's key up."""


def rename_keys(file: Path) -> None:
    """Put something before each key that a file's calls of say() and its like name."""
    lines = file.read_bytes().splitlines(keepends=True)
    keys = [call.args[0] for call in called(parse_source(b"".join(lines)), labels=True)]
    for key in sorted(keys, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            line, start = lines[key.lineno - 1], key.col_offset + 1
            lines[key.lineno - 1] = line[:start] + b"zz." + line[start:]
    file.write_bytes(b"".join(lines))


@pytest.mark.slow
def test_no_renamed_key_changes_what_is_decided(tmp_path: Path) -> None:
    """In a copy of Hearth in which every key has another name: the same statuses and codes, the same words for owner and guest, the same
    jobs wait."""
    shutil.copytree(TOP / "app", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("assets", "tests"):
        (tmp_path / name).symlink_to(TOP / name)
    for file in (tmp_path / "app").rglob("*.py"):
        rename_keys(file)
    for code in set(languages()) - {ENGLISH}:
        table = tmp_path / "app" / "base" / "locale" / f"{code}.json"
        words = templates(code)  # the comma is asked for by its key
        table.write_text(json.dumps({"word.comma": words["word.comma"], **{f"zz.{key}": each for key, each in words.items()}}), "utf-8")
    begun = [begin_to_decide(place) for place in (TOP, tmp_path)]
    as_it_is, renamed = (read_decisions(each) for each in begun)
    assert len(as_it_is) > 50
    assert renamed == as_it_is


def begin_to_decide(place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.decisions"]
    return subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_decisions(begun: subprocess.Popen[str]) -> dict[str, object]:
    told, faults = begun.communicate()
    assert begun.returncode == 0, faults
    found: dict[str, object] = json.loads(told)
    return found


def test_nobody_but_the_translator_reads_a_key() -> None:
    """Wherever a sentence may be at hand: `.key` of anything whose name does not say that it is something else."""
    others = {
        "args",
        "self._task",
        "task",
        "saved",
        "identity",
        "found",
        "model",
        "arriving",
        "arrived",
        "wanted",
        "options",
        "made",
        "kept",
    }
    read = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name in sorted(path.relative_to(TOP).as_posix() for path in (TOP / "app").rglob("*.py"))
        if name not in TRANSLATES and "app.base.sentence" in (TOP / name).read_text("utf-8")
        for node in ast.walk(tree_of(TOP / name))
        if isinstance(node, ast.Attribute) and node.attr == "key" and ast.unparse(node.value).partition("[")[0] not in others
    ]
    assert not read


ADVICE = say("owner.more-room", "Choose another model or close other programs.")
SHORT = say_to_all("smaller.shortest", "The parts of this script cannot get any shorter. {advice}", advice=ADVICE)
LISTED = say_to_all(
    "script.speakers", "{name} knows {tags}.", name=say_to_all("model.starter-voice", "Starter voice"), tags=(ADVICE, "[S1]")
)


def test_a_guest_hears_what_is_marked_and_within_it_nothing_else() -> None:
    assert [str(each) for each in redact_sentences(GUEST, ADVICE, SHORT, LISTED)] == [
        "The parts of this script cannot get any shorter.",
        "Starter voice knows [S1].",
    ]
    assert redact_sentences(OWNER, ADVICE, SHORT) == (ADVICE, SHORT)
    heard = redact_for(GUEST, BadRequest(ADVICE, SHORT, cure="models"))
    assert (type(heard), heard.sentence, heard.cure) == (BadRequest, NOT_MADE, "") and str(ADVICE) not in str(heard)


def test_class_and_audience_cross_processes_and_machines() -> None:
    full = QuotaMet(SHORT, ADVICE, cure="open-folder", field="script")
    for again in (pickle.loads(pickle.dumps(full)), copy.copy(full), Failed.of(full).trouble):
        assert (type(again), again.sentence, again.objections, again.cure) == (QuotaMet, SHORT, (ADVICE,), "open-folder")
    for event in (Failed.of(full), Note(SHORT), Note(ADVICE)):
        assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_what_another_machine_leaves_out_is_for_the_owner() -> None:
    """One of an older Hearth, or of a newer one with classes that are unknown here. A mark beside advice gives nobody the advice within."""
    told = json.loads(json.dumps(to_json(Failed.of(DiskFull(SHORT)))))
    del told["sentence"]["for_all"], told["code"]
    older, newer = from_json(told), from_json({**told, "code": "no_such_class"})
    for end in (older, newer):
        assert isinstance(end, Failed) and type(end.trouble) is Trouble
        assert redact_for(GUEST, end.trouble).sentence == NOT_MADE
    assert from_json({**told, "sentence": {**told["sentence"], "for_all": "of course"}}) is None


def test_a_sentence_is_for_the_owner_unless_marked() -> None:
    assert not Sentence("any", "Any.").for_all and not say("any", "Any.").for_all
