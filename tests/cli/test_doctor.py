"""hearth doctor: a page that says what was decided and why, the same as JSON, for this machine and pretended ones."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.__main__ import EXIT_TROUBLE, main
from app.base.paths import home
from app.base.sentence import say
from app.base.start_command import name_command
from app.cli import doctor
from app.cli.doctor import SHOWN
from app.compat.machine import pretended, verdicts
from app.compat.machine.chunk_curve import Curve, Point, keep_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import DECIDED_FIELDS, decide
from app.compat.planning.plan_words import word_source
from app.compat.planning.quirk_table import QUIRKS
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from tests.support.places import TOP


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["doctor", *argv]) == 0
    return " ".join(capsys.readouterr().out.split())  # however it is wrapped


@pytest.mark.parametrize("name", MACHINES)
def test_the_page_says_every_sentence_of_every_plan(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = told(capsys, "--pretend", name, "--home", str(tmp_path))
    assert f"on {MACHINES[name].name} (pretended)" in page and "Not run on this machine yet" in page
    for field, reason in zip(DECIDED_FIELDS, decide(MACHINES[name]).because, strict=True):
        if field not in ("precision", "offload", "vae", "quantised"):
            assert f"{reason.sentence} [{word_source(reason.source)}]" in page, field
    for each in SHOWN:
        plan = decide(MACHINES[name], describe_need(BY_ID[each]))
        assert BY_ID[each].title in page
        for reason in (*plan.because, *plan.warnings):
            if reason.field in ("precision", "offload", "quantised") or reason in plan.warnings:
                assert str(reason.sentence) in page
    assert list(tmp_path.iterdir()) == []  # looking leaves nothing behind


def test_with_why_it_says_what_was_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = told(capsys, "--pretend", "t4", "--home", str(tmp_path))
    long = told(capsys, "--pretend", "t4", "--home", str(tmp_path), "--why")
    for rejected in decide(MACHINES["t4"]).rejected:
        for reason in rejected.objections:
            assert str(reason.sentence) in long
    assert len(long) > 2 * len(short)


def test_json_holds_it_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = MACHINES["m2-16gb"]
    seen = {
        Subject("path", "gqa/native/float16"): Verdict(Subject("path", "gqa/native/float16"), False, float("inf"), words="garbage"),
        Subject("row", "mps-allocator"): Verdict(Subject("row", "mps-allocator"), True),
    }
    verdicts.store(tmp_path / "verdicts", machine, seen)
    assert main(["doctor", "--json", "--pretend", "m2-16gb", "--home", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["name"] == "Apple M2" and list(found["plans"]) == list(doctor.list_models(home(str(tmp_path))))
    plan = found["plans"]["Attention of any model"]
    assert [each["field"] for each in plan["because"]] == list(DECIDED_FIELDS)
    assert all(each["sentence"]["words"] and each["sentence"]["key"] for each in plan["because"])
    assert [each["field"] for each in plan["retired"]] == ["mps-allocator"]
    assert {each["subject"]: each["error"] for each in found["verdicts"]}["path:gqa/native/float16"] is None


def test_what_the_self_test_found_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = {
        Subject("path", "gqa/native/float16"): Verdict(Subject("path", "gqa/native/float16"), False, 0.7),
        Subject("row", "mps-causal-leak"): Verdict(Subject("row", "mps-causal-leak"), True),
    }
    verdicts.store(tmp_path / "verdicts", MACHINES["m1-8gb"], seen)
    page = told(capsys, "--pretend", "m1-8gb", "--home", str(tmp_path))
    assert (
        "0 of 1 check is right here" in page and "0 of 1 known defect occur here" in page and "path:gqa/native/float16: error 0.7" in page
    )
    assert "mps-causal-leak is known to fail" in page and "explicit_mask no" in page


def test_the_self_test_runs_and_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from app.compat.selftest import run as selftest_run

    asked: list[Hardware] = []

    def run(hardware: Hardware, tell: object, questions: object) -> dict[Subject, Verdict]:
        asked.append(hardware)
        return {Subject("row", "mps-leak"): Verdict(Subject("row", "mps-leak"), True)}

    monkeypatch.setattr(selftest_run, "run", run)  # its own tests run it for real
    page = told(capsys, "--pretend", "m2-16gb", "--home", str(tmp_path), "--selftest")
    assert asked == [MACHINES["m2-16gb"]] and "chunk_q automatic" in page
    assert set(verdicts.load(tmp_path / "verdicts", MACHINES["m2-16gb"])) == {Subject("row", "mps-leak")}
    assert "chunk_q automatic" in told(capsys, "--pretend", "m2-16gb", "--home", str(tmp_path))


def test_the_report_of_a_machine_stands_in_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent by somebody with that card, kept under a name of one's own, looked at from another folder."""
    from app.compat.selftest import run as selftest_run

    real = replace(MACHINES["t4"], pretended="")
    found = (
        Verdict(Subject.path("kernels/efficient", "float16"), False, 0.7, 0.00123456),
        Verdict(Subject.fallback("sdxl", "offload"), False, seen=RunFailure("memory", 3)),
    )
    monkeypatch.setattr(pretended, "probe", lambda: real)
    monkeypatch.setattr(selftest_run, "run", lambda *_: {each.subject: each for each in found})
    keep_curve(home(str(tmp_path)), Curve("sd15", (Point(64, 0.25),), 64))
    assert main(["doctor", "--selftest", "--json", "--home", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    report = json.loads(printed)
    assert list(report) == ["format", "hearth", "python", "machine", "verdicts", "curves"] and report["curves"][0]["model"] == "sd15"
    file = tmp_path / "their t4.json"
    file.write_text(printed, "utf-8")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    page = told(capsys, "--pretend", "their t4.json", "--home", str(tmp_path), "--model", "sdxl", "--why")
    assert "on Tesla T4 (pretended, from their t4.json)" in page and "efficient failed the self-test on this machine: 0.7" in page
    assert "Idle model parts are moved off the device. Memory ran out at step 3." in page
    assert "--forget" not in page, "their file stays as it is"
    assert f"The self-test's results are in {file}." in page
    assert main(["doctor", "--json", "--pretend", str(file), "--home", str(tmp_path)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {"choice", "plans", "stands_in"} <= set(again) and again["machine"] == report["machine"] | {"pretended": "their t4.json"}
    assert [each["subject"] for each in again["verdicts"]] == [each["subject"] for each in report["verdicts"]] and again["curves"] == []
    assert sorted(tmp_path.rglob("*")) == before, "looking leaves nothing behind"
    own = Verdict(Subject.fallback("sd15", "offload"), False, seen=RunFailure("memory", 3))
    verdicts.learn(tmp_path / "verdicts", pretended.find_machine(str(file)), own)
    page = told(capsys, "--pretend", "their t4.json", "--home", str(tmp_path), "--model", "sd15")
    command = page.partition(f"To forget this and try again: {name_command()} ")[2].partition(" Self-test")[0]
    assert "Forgotten: sd15/offload." in told(capsys, *shlex.split(command)[1:], "--home", str(tmp_path))


def test_progress_is_drawn_on_a_terminal_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file would keep each of its eighty lines."""
    from app.compat.selftest import run as selftest_run

    monkeypatch.setattr(selftest_run, "run", lambda hardware, tell, questions: tell(1, 80, say("test", "Testing linear")))
    doctor.test(MACHINES["m2-16gb"])
    assert not capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    doctor.test(MACHINES["m2-16gb"])
    assert "1/80 Testing linear" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["doctor"], ["models"], ["speak", "[S1] Hello."], ["paint", "a tree"], ["open", "--no-browser"]])
def test_what_is_no_report_starts_nothing(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.json").write_text('{"machine": {"kind": "abacus"}}', "utf-8")
    (tmp_path / "home").mkdir()
    for name, said in (("gone.json", "There is no file"), ("home", "is not a file"), ("broken.json", "machine.kind")):
        assert main([*command, "--home", str(tmp_path / "home"), "--pretend", str(tmp_path / name)]) == EXIT_TROUBLE
        assert said in capsys.readouterr().err
    assert not (tmp_path / "home" / "hearth.sqlite3").exists()


def test_an_unknown_machine_gets_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--pretend", "voodoo2", "--json"]) == EXIT_TROUBLE
    out, said = capsys.readouterr()
    assert "voodoo2" in json.loads(out)["sentence"], "a refusal is told in JSON where that was asked for"
    assert all(name in said for name in ("voodoo2", *MACHINES, "doctor --selftest --json"))


def test_a_machine_that_cannot_be_driven_is_described_and_then_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = Hardware("cuda", "NVIDIA GeForce GTX 1080", (6, 1), 8 << 30, 7 << 30, False, torch="2.13.0+cu130", arch_list=("sm_75", "sm_80"))
    monkeypatch.setattr(pretended, "probe", lambda: old)
    monkeypatch.setattr(doctor, "test", lambda *_: pytest.fail("nothing may run here"))
    # Before anything runs on the card: its own words would be "no kernel image".
    assert main(["doctor", "--home", str(tmp_path), "--selftest"]) == EXIT_TROUBLE
    out, err = capsys.readouterr()
    assert "GTX 1080" in out and "compute capability 6.1" in out and "sm_75 sm_80" in out
    assert "cu126" in err and "start.py repair" in err
    assert main(["doctor", "--home", str(tmp_path), "--selftest", "--json"]) == EXIT_TROUBLE
    out, err = capsys.readouterr()
    assert json.loads(out)["machine"]["arch_list"] == ["sm_75", "sm_80"] and "cu126" in err, "its facts are worth a report"


@pytest.mark.slow
@pytest.mark.long
def test_this_machine_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "doctor", "--json"],
        cwd=TOP,
        capture_output=True,
        text=True,
        env={**os.environ, "HEARTH_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["machine"]["torch"]


@pytest.mark.slow
def test_a_pretended_machine_needs_no_torch(tmp_path: Path) -> None:
    code = f"import sys; from app.__main__ import main; main(['doctor', '--pretend', 't4', '--home', {str(tmp_path)!r}]); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_sentence_of_a_row_is_lost_in_wrapping() -> None:
    for row in QUIRKS:
        lines = list(doctor.wrapped(iter([(20, str(row.sentence))])))
        assert " ".join(" ".join(lines).split()) == str(row.sentence) and all(line.startswith(" " * 20) for line in lines)
