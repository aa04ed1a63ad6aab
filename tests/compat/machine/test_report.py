"""A machine's report: one form, printed and read back whole; nothing private in it; what is damaged, foreign or huge gets a sentence; what
was learned under --pretend lies apart."""

from __future__ import annotations

import getpass
import json
import math
import os
import platform
import random
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from app.base.private_words import hide_private
from app.base.trouble import Trouble
from app.compat.machine.chunk_curve import Curve, Point
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES, find_machine, machine
from app.compat.machine.report import StoredMachine, describe_report, read_machine
from app.compat.machine.report_file import MOST_BYTES, lay_out, read_report
from app.compat.machine.verdicts import RunFailure, StoredVerdict, Subject, Verdict, forget, learn, load, read_given, verdict_file
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import learned
from app.compat.planning.types import Need
from app.engine.models.catalog import CATALOG
from app.engine.models.model import describe_need

REAL = replace(MACHINES["t4"], pretended="", packages=("gguf",))
FLASH = Verdict(Subject.path("kernels/efficient", "float16"), False, 0.7123456, 0.00123456, "wrong by 0.7")
SEEN = (
    FLASH,
    Verdict(Subject.row("fused-qkv-stride"), True, 1e-4, 0.5),
    Verdict(Subject.row("cuda-flash"), False, math.inf, words="No available kernel."),
    Verdict(Subject.fallback("sdxl", "offload"), False, seen=RunFailure("memory", 3, "float16")),
    Verdict(Subject("part", "starter-voice/codec/float16"), True, 0.001, 0.2),
)


def described(hardware: Hardware = REAL, verdicts: tuple[Verdict, ...] = SEEN, *curves: Curve) -> dict[str, Any]:
    return describe_report(hardware, {each.subject: each for each in verdicts}, curves)


def put(folder: Path, report: object, name: str = "their mac.json") -> str:
    file = folder / name
    file.write_text(report if isinstance(report, str) else json.dumps(report), "utf-8")
    read_report.cache_clear()
    return str(file)


def trouble_of(file: str) -> str:
    with pytest.raises(Trouble) as caught:
        find_machine(file)
    return str(caught.value)


def test_a_real_machine_comes_back_as_another_one(tmp_path: Path) -> None:
    file = put(tmp_path, lay_out(described()))
    found = find_machine(file)
    assert found == replace(REAL, pretended="their mac.json", report=file)
    given = load(tmp_path / "verdicts", found)
    assert list(given) == sorted(each.subject for each in SEEN) and given[FLASH.subject] == replace(FLASH, error=0.712, elapsed_s=0.00123)
    assert given[Subject("part", "starter-voice/codec/float16")].passed, "kinds of another Hearth stay"
    assert verdict_file(tmp_path, found) not in {verdict_file(tmp_path, each) for each in (REAL, *MACHINES.values())}
    assert described(found, tuple(given.values()))["machine"] == described()["machine"] | {"pretended": "their mac.json"}


def test_every_fact_is_in_the_form() -> None:
    assert set(StoredMachine.__annotations__) | {"pretended", "report"} == {each.name for each in fields(Hardware)}
    assert set(described()["machine"]) == {each.name for each in fields(Hardware)} - {"report"}


def test_what_the_file_saw_is_believed(tmp_path: Path) -> None:
    found = find_machine(put(tmp_path, described()))
    before, after = decide(replace(REAL, pretended="other")), decide(found, verdicts=load(tmp_path, found))
    assert "efficient" in before.kernels and "efficient" not in after.kernels
    assert [each.field for each in after.retired] == ["fused-qkv-stride"]
    assert [each.fallback.id for each in learned(load(tmp_path, found), "sdxl")] == ["offload"]


def test_what_is_learned_here_is_added_and_lies_apart(tmp_path: Path) -> None:
    file = put(tmp_path, described())
    found, folder = find_machine(file), tmp_path / "verdicts"
    text = Path(file).read_bytes()
    simulated = replace(FLASH, passed=True), Verdict(Subject.path("gqa/native", "float32"), False, 0.5)
    after = learn(folder, found, *simulated, Verdict(Subject.fallback("sd15", "offload"), False, seen=RunFailure("memory")))
    assert after == load(folder, found) and not after[FLASH.subject].passed, "what the real one did goes before a simulation of it"
    assert Subject.path("gqa/native", "float32") in after and len(after) == len(SEEN) + 2
    assert forget(folder, found) == (Subject.fallback("sd15", "offload"),)
    assert Subject.fallback("sdxl", "offload") in load(folder, found) and Path(file).read_bytes() == text
    assert load(folder, REAL) == load(folder, machine("t4")) == {}
    verdict_file(folder, found).unlink()
    assert set(load(folder, found)) == {each.subject for each in SEEN}


@pytest.mark.parametrize("named", ["m1-8gb.json", "m1-8gb", "t4.report.json", "我的 电脑.json", "a\u202eb.json", "x" * 90 + ".json"])
def test_a_file_is_never_a_machine_of_the_list(tmp_path: Path, named: str) -> None:
    found = find_machine(put(tmp_path, described(), named))
    assert found.pretended.endswith(".json") and found.pretended not in MACHINES and found.pretended.isprintable()
    learn(tmp_path / "verdicts", found, FLASH)
    assert len(verdict_file(tmp_path, found).name) < 100


def test_a_file_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path, described(), "t4")
    monkeypatch.chdir(tmp_path)
    assert find_machine("./t4").report == file and find_machine("t4") == machine("t4"), "a name goes before a file of that name"
    put(tmp_path, described(), "mine")
    assert find_machine("mine").report == str(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert find_machine("~/mine").report == str(tmp_path / "mine")


# Forms of other versions and other programs.


def test_an_older_report_and_a_newer_one_are_read_as_far_as_they_are_known(tmp_path: Path) -> None:
    older: dict[str, Any] = {"hearth": "0.1", "python": "3.11", "machine": asdict(REAL), "verdicts": [], "plans": {"Dia": {}}}
    for gone in ("packages", "limit_bytes", "unseen_card", "report"):
        del older["machine"][gone]
    assert find_machine(put(tmp_path, older, "old.json")) == replace(
        REAL, packages=None, pretended="old.json", report=str(tmp_path / "old.json")
    )
    newer = described() | {"weather": {"sun": [1]}}
    newer["machine"] |= {"neural_engine": {"cores": 16}}
    newer["verdicts"][0] |= {"certainty": 0.9}
    with pytest.raises(Trouble, match="written by a newer Hearth"):  # whose fields may mean something else
        find_machine(put(tmp_path, newer | {"format": 2}, "changed.json"))
    assert replace(find_machine(put(tmp_path, newer, "new.json")), pretended="", report="") == REAL


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])  # as Windows' shells write what a command prints
def test_what_a_shell_of_windows_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "shell.json"
    file.write_text(lay_out(described()), encoding)
    assert find_machine(str(file)).name == REAL.name


def without(*keys: str) -> Callable[[dict[str, Any]], Any]:
    return lambda report: {**report, "machine": {name: each for name, each in report["machine"].items() if name not in keys}}


def machine_with(**facts: object) -> Callable[[dict[str, Any]], Any]:
    return lambda report: {**report, "machine": report["machine"] | facts}


def verdict_with(**values: object) -> Callable[[dict[str, Any]], Any]:
    return lambda report: {**report, "verdicts": [{"subject": "row:a", "passed": True} | values]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: "", "is not a machine's report, or it is damaged"),
        (lambda report: json.dumps(report)[:-9], "is not a machine's report, or it is damaged"),
        (lambda _: "[" * 100_000, "is not a machine's report, or it is damaged"),
        (lambda _: [], "no machine in it"),
        (lambda _: {"format": 1, "machine": "Tesla T4", "torch": "2.13.0", "verdicts": []}, "no machine in it"),  # a file of verdicts
        (lambda _: " " * (MOST_BYTES + 1), "larger than 4 MB"),
        (machine_with(free_bytes=math.nan), "NaN is no number"),
        (lambda report: json.dumps(machine_with(cores=7e99)(report)).replace("7e+99", "7e999"), "too large a number"),
        (without("kind", "torch"), "machine.kind, machine.torch"),
        (machine_with(kind="voodoo"), "machine.kind"),
        (machine_with(memory_bytes=-1), "machine.memory_bytes"),
        (machine_with(memory_bytes=None), "machine.memory_bytes"),
        (machine_with(memory_bytes=10**400), "machine.memory_bytes"),
        (machine_with(name=["Tesla"]), "machine.name"),
        (machine_with(arch_list="sm_75"), "machine.arch_list"),
        (machine_with(capability=[7]), "machine.capability"),
        (machine_with(cores=True), "machine.cores"),
        (lambda report: {**report, "verdicts": {}}, "verdicts"),
        (verdict_with(passed=None), "verdicts.0.passed"),
        (verdict_with(subject="nothing"), "verdicts.0.subject"),
        (verdict_with(error="0.1"), "verdicts.0.error"),
        (verdict_with(seen={"fault": "weather"}), "verdicts.0.seen.fault"),
    ],
)
def test_what_is_no_report_is_said(tmp_path: Path, change: Callable[[dict[str, Any]], Any], said: str) -> None:
    file = put(tmp_path, change(described()))
    words = trouble_of(file)
    assert said in words and words.startswith(file) and len(words) < len(file) + 250


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    assert trouble_of(str(tmp_path / "gone.json")) == f"There is no file {tmp_path / 'gone.json'}. Check its name and its folder."
    assert "is not a file" in trouble_of(str(tmp_path))
    assert "x" * 5000 in trouble_of("x" * 5000 + ".json"), "in the system's own words"
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.json")
        assert "is not a file" in trouble_of(str(tmp_path / "pipe.json")), "which would never answer"


ODD: list[Any] = [
    None, -1, 0, 1, 1 << 31, 10**30, math.nan, math.inf, "", "x" * 5000, "\x1b[2J", "\ud800", [], {}, [1], ["a", None], True, 1.5, "9" * 30,
    "2.13", "mps", "cuda", "rocm", "cpu", "directml", "windows",
]  # fmt: skip


@pytest.mark.slow
def test_no_value_breaks_the_planner(tmp_path: Path) -> None:
    """Whatever a file holds, it is refused with a sentence, or each model gets a plan or a sentence, all of which can be shown."""
    chance, needs = random.Random(0), [Need(), *map(describe_need, CATALOG[2:4])]
    planned = refused = 0
    for name in [*StoredMachine.__annotations__, *StoredVerdict.__annotations__] * 8:
        report = described(MACHINES[chance.choice([*MACHINES])])
        (report["machine"] if name in report["machine"] else chance.choice(report["verdicts"]))[name] = chance.choice(ODD)
        shape, way = chance.choice(["2x16x4x1x256x128", "0x0x0x0x0x0", "9x"]), chance.choice(["own 0", "torch " + "9" * 900, "own \u0663"])
        report["verdicts"].append({"subject": f"way:{shape} float32", "passed": True, "words": way})
        seen = {"fault": "memory", "step": chance.choice([None, 10**30]), "chunk_most": chance.choice([None, 0, 10**30])}
        report["verdicts"].append({"subject": f"rung:{CATALOG[2].id}/smaller-chunk", "passed": False, "seen": seen})
        try:
            hardware = find_machine(put(tmp_path, report))
        except Trouble as trouble:
            refused += str(trouble).isprintable()
            continue
        for need in needs:
            try:
                plan = decide(hardware, need, verdicts=load(tmp_path, hardware))
                words = [hardware.name, *(str(each.sentence) for each in (*plan.because, *plan.warnings))]
            except Trouble as trouble:
                words = [str(trouble)]
            planned += "".join(words).isprintable()
    assert planned > 100 and refused > 50 and planned // len(needs) + refused == 8 * (len(StoredMachine.__annotations__) + 6)


# Nothing private.


def test_nothing_private_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = "/Users/Anna O'Smith"
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: cls(house)))
    monkeypatch.setattr(getpass, "getuser", lambda: "asmith")
    monkeypatch.setattr(platform, "node", lambda: "annas-mac.fritz.box")
    planted = (
        f'File "{house}/diary/torch/run.py", line 3, in asmith: 2**32',
        f"{house}/secret plans/x.py:7: failed assertion `{house}/y z/a.metal' on annas-mac",
        "C:\\Users\\Anna Smith\\list.txt and D:/private/diary/x.bin: No kernel image (1/2, 3 // 4)",
        "/Volumes/My diary/model of anna smith/a.safetensors broke",
    )
    verdicts = (
        *(Verdict(Subject.row(str(number)), False, words=words) for number, words in enumerate(planted)),
        Verdict(Subject.fallback(f"{house}/models/diary", "offload"), False, seen=RunFailure("memory", 3)),
        Verdict(Subject.fallback("C:\\models\\diary", "offload"), False, seen=RunFailure("memory", 3)),
        Verdict(Subject.fallback("sdxl", "offload"), False, seen=RunFailure("memory", 3)),
    )
    curves = (Curve("sd15", (Point(64, 0.0123456),), 64), Curve(f"{house}/models/diary", (Point(64, 0.5),), 64))
    hardware = replace(REAL, report=f"{house}/diary.json")
    told = lay_out(described(hardware, verdicts, *curves))
    for private in ("anna", "smith", "diary", "secret", "volumes", "users", "private", "fritz"):
        assert private not in told.lower(), told
    assert json.loads(told)["curves"] == [{"model": "sd15", "knee": 64, "points": [[64, 0.0123]]}]
    assert len(json.loads(told)["verdicts"]) == len(planted) + 1 and "rung:sdxl/offload" in told
    for kept in ("run.py", "line 3", "2**32", "x.py:7: failed assertion", "No kernel image (1/2, 3 // 4)", ".../a.safetensors broke"):
        assert kept in told, "the machine's own words stay"


def test_words_without_a_place_stay_as_they_are() -> None:
    for words in (
        "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::Half",
        "'mps.matmul' op: mps_matmul has incompatible dimensions\nLLVM ERROR: Failed to infer result type(s).",
        "Tried to allocate 2.00 GiB. 3/4 of it, kernels/own -> gqa/native, 3 // 4",
    ):
        assert hide_private(words) == words


def test_the_form_is_small_and_has_no_times_of_a_simulation() -> None:
    real, simulated = lay_out(described()), lay_out(described(MACHINES["t4"]))
    assert json.loads(real)["format"] == 1 and json.loads(real)["machine"]["pretended"] == ""
    assert (
        '  {"subject": "path:kernels/efficient/float16", "passed": false, "error": 0.712, "elapsed_s": 0.00123, "words": "wrong by 0.7"},'
        in (real.splitlines())
    )
    assert "elapsed_s" not in simulated and json.loads(simulated)["machine"]["pretended"] == "t4"
    assert json.loads(lay_out(described(verdicts=()))) == json.loads(json.dumps(described(verdicts=())))


def test_a_machine_stays_as_it_was_while_hearth_runs(tmp_path: Path) -> None:
    file = put(tmp_path, described())
    found = read_machine(file)
    Path(file).unlink()
    assert read_machine(file) == found and set(read_given(found)) == {each.subject for each in SEEN}
