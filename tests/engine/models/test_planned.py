"""One way to a plan: whoever shows one shows what the engine would run; what broken runs taught can be forgotten, everywhere at once."""

from __future__ import annotations

import dataclasses
import io
import json
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.__main__ import main
from app.base.paths import Home, home
from app.base.start_command import name_command
from app.base.trouble import Trouble
from app.cli import doctor
from app.cli import job as cli_job
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, forget, learn, load, store
from app.compat.planning.fallbacks import choices, learned
from app.compat.planning.types import AUTO, Choice, Chunk, Plan
from app.engine.jobs.control import Control, Dial
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.tasks import SelfTest
from app.engine.keeper.engine_life import EngineLife
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.work_queue import WorkQueue
from app.engine.models.catalog import BY_ID, CATALOG, find
from app.engine.models.chosen import read_choice, read_chunk
from app.engine.models.forecast import judge_plan
from app.engine.models.model import Model
from app.engine.models.planned import find_need, make_plan
from app.engine.session.session import Session
from app.ui.state.person import OWNER, Person
from app.ui.tabs import paint_view
from tests.support.guests import desk_at, machine_tab
from tests.support.places import TOP
from tests.support.tiny_pictures import save

pytestmark = pytest.mark.long

ADA = Person("visitor-ada", owner=False)
FORCED, CHUNK = Choice(dtype="float32"), 4096


def test_only_one_place_outside_of_compat_decides() -> None:
    found = set()
    for path in (TOP / "app").rglob("*.py"):
        source = path.read_text("utf-8")
        if "decide" in source and not path.is_relative_to(TOP / "app" / "compat"):
            names = [each.string for each in tokenize.generate_tokens(io.StringIO(source).readline)]
            # "from ....decide import" names the module, for what else is in it.
            if any(name == "decide" and after != "import" for name, after in pairwise(names)):
                found.add(path.relative_to(TOP).as_posix())
    checks = {"app/engine/speech/families/dia/row_graph_check.py"}  # which runs no request of a person
    assert found == {"app/engine/models/planned.py", *checks}


def asked_for(model: Model) -> Any:
    return SpeechRequest("[S1] Hello.", model.id) if model.kind == "speech" else PictureRequest("a tree", model.id)


def run(session: Session, request: Any, job: Path, choice: Choice, yields: bool = False) -> tuple[list[Plan], Any]:
    """The plan with which the engine goes to work, and what it says next: a model that is not here is planned for all the same."""
    plans: list[Plan] = []
    events = session.run(request, choice, Control(), job, lambda _, plan: plans.append(plan), died=None, yields=yields)
    event = next(each for each in events if plans or isinstance(each, Failed))
    events.close()  # type: ignore[attr-defined]
    return plans, event


@pytest.fixture
def taught(tmp_path: Path) -> Iterator[Home]:
    """A home with a choice by hand, and runs that broke."""
    place = home(tmp_path).create()
    place.settings.write_text(json.dumps({"choice": {"chunk": CHUNK, **dataclasses.asdict(FORCED)}}))
    for machine in MACHINES.values():
        known = {}
        for model in CATALOG:
            fallback = Verdict(Subject.fallback(model.id, "smaller-chunk"), False, seen=RunFailure("memory", 3, "", 64))
            known[fallback.subject] = fallback
        store(place.verdicts, machine, known)
    yield place


USUAL = {("m1-8gb", False)}
"""A Mac as it is found is asked always; the others are `slow`."""


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        pytest.param(name, by_hand, marks=[] if (name, by_hand) in USUAL else pytest.mark.slow)
        for name in MACHINES
        for by_hand in (True, False)
    ],
)
def test_what_is_shown_anywhere_under_pretend_is_what_the_engine_runs(
    name: str, by_hand: bool, taught: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not by_hand:
        taught.settings.unlink()
    choice, machine = FORCED if by_hand else Choice(), MACHINES[name]
    session = Session(taught, name, Dial(CHUNK if by_hand else AUTO))
    runs: dict[str, Plan] = {}
    for model in CATALOG:
        (runs[model.id],), _ = run(session, asked_for(model), tmp_path / "job", choice)
    assert {plan.chunk_most for plan in runs.values()} == {64}
    assert not by_hand or {plan.dtype for plan in runs.values()} == {"float32"}

    for model in CATALOG:
        assert main(["doctor", "--json", "--model", model.id, "--pretend", name, "--home", str(tmp_path)]) == 0
        page = json.loads(capsys.readouterr().out)
        (own,), here = page["plans"].values(), page["stands_in"].get(model.title)
        assert plain(runs[model.id]) == without_reasons(here["plan"] if here else own), model.id
        assert (own["quantised"] != runs[model.id].quantised) == bool(here)
    assert main(["models", "list", "--json", "--pretend", name, "--home", str(tmp_path)]) == 0
    listed = {row["id"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=machine)
        for model in CATALOG:
            plan = runs[model.id]
            computing = as_processor(machine) if plan.device == "cpu" else machine
            fits = judge_plan(find_need(taught, machine, model), plan, computing)
            row = listed[model.id]
            assert (row["fit"], row["quantised"]) == (fits[0], plan.quantised)
            assert row["because"].startswith(str(fits[1])), "what is sent to the card may follow"
            for looked_at in ("", name):  # the machine that the whole of Hearth pretends to be
                assert desk.machine.plan(model.id, desk.machine.read_choice(OWNER), looked_at) == plan
                assert machine_tab(desk, model.id, looked_at, "en")["note"] == ""
            assert desk.machine.offer(model).forecast.plan == plan  # type: ignore[union-attr]
            if model.kind == "picture":
                assert str(fits[1]) in paint_view.forecast_html(desk, PictureRequest("a tree", model.id), OWNER, "en").replace(
                    "&#x27;", "'"
                )


def plain(plan: Plan) -> Any:
    return without_reasons(json.loads(json.dumps(doctor.plan_to_plain(plan))))


def without_reasons(told: dict[str, Any]) -> dict[str, Any]:
    """What speaks against an option that neither takes may be this computer's alone."""
    kept = {name: value for name, value in told.items() if name not in ("because", "rejected", "warnings", "retired")}
    return kept | {"others": [without_reasons(each) for each in told.get("others", ())]}


def test_another_machines_plan_says_where_this_computer_would_run_it_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """bitsandbytes' 4 bits are a card's."""
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=dataclasses.replace(MACHINES["cpu"], pretended=""))
        place, card = desk.keeper.home, MACHINES["rtx-3060"]
        other = next(
            each
            for each in CATALOG
            if each.kind == "picture"
            and make_plan(place, card, each, itself=True).quantised not in ("none", make_plan(place, card, each).quantised)
        )
        same = BY_ID["sd15"]
        for model in (other, same):
            own, here = make_plan(place, card, model, itself=True), make_plan(place, card, model)
            view = machine_tab(desk, model.id, "rtx-3060", "en")
            assert desk.machine.plan(model.id, Choice(), "rtx-3060") == own
            assert bool(view["note"]) == (choices(own) != choices(here))
            assert main(["doctor", "--model", model.id, "--pretend", "rtx-3060", "--home", str(tmp_path)]) == 0
            page = " ".join(capsys.readouterr().out.split())
            assert ("This is the plan for" in page) == bool(view["note"]) and view["note"] in page
            if model is other:
                assert f"cannot make {own.quantised} weights" in view["note"] and "--pretend rtx-3060" in view["note"]


def test_a_choice_that_cannot_work_is_told_beside_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of all others stays."""
    place = home(tmp_path).create()
    place.settings.write_text(json.dumps({"choice": {"quantised": "gguf"}}))
    assert main(["doctor", "--pretend", "t4", "--home", str(tmp_path)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "GGUF works for picture models only" in page and "Stable Diffusion XL" in page
    assert main(["doctor", "--json", "--model", "dia-1.6b", "--pretend", "t4", "--home", str(tmp_path)]) == 0
    assert "GGUF works for picture models only" in json.loads(capsys.readouterr().out)["plans"]["Dia 1.6B"]["trouble"]


# What was chosen by hand, on the command line.


@pytest.mark.parametrize(
    ("words", "choice", "chunk"),
    [
        ((), Choice(dtype="bfloat16", kernels=("math",), offload="model"), 512),
        (("--dtype", "float32"), Choice(dtype="float32", kernels=("math",), offload="model"), 512),
        (("--chunk", "64", "--kernels", "flash, math"), Choice(dtype="bfloat16", kernels=("flash", "math"), offload="model"), 64),
        (("--chunk", "auto", "--dtype", "auto", "--kernels", "auto", "--offload", "auto"), Choice(), AUTO),
        (("--gqa", "expanded", "--quantised", "none"), Choice("expanded", ("math",), "bfloat16", "model", "none"), 512),
    ],
)
def test_a_commands_flags_win_over_what_is_stored_and_the_rest_of_it_applies(
    words: tuple[str, ...], choice: Choice, chunk: Chunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home(tmp_path).create()
    stored = Choice(dtype="bfloat16", kernels=("math",), offload="model")
    place.settings.write_text(json.dumps({"choice": {"chunk": 512, **dataclasses.asdict(stored)}}))
    jobs: list[tuple[Choice, Any]] = []

    def begun(keeper: Keeper, request: Any, asked: Choice, anew: bool) -> Any:
        jobs.append((asked, keeper.chunk))
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_job, "start_or_resume", begun)
    monkeypatch.setattr(EngineLife, "start_if_due", lambda self: None)
    main(["paint", "a tree", "--home", str(tmp_path), *words])
    assert jobs == [(choice, chunk)]


@pytest.mark.parametrize("command", ["speak", "paint"])
def test_the_help_says_what_applies(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert str(cli_job.CHOICES_HELP) in told and all(
        f"--{each}" in told for each in ("chunk", "dtype", "gqa", "kernels", "offload", "quantised")
    )


@pytest.mark.parametrize("kept", ["{broken", "[]", '{"choice": []}', '{"choice": {"chunk": "a lot", "nonsense": 3}}', ""])
def test_settings_that_mean_nothing_are_automatic(kept: str, tmp_path: Path) -> None:
    place = home(tmp_path).create()
    assert (read_choice(place), read_chunk(place)) == (Choice(), AUTO)
    place.settings.write_text(kept)
    assert read_choice(place) == Choice() and place.settings.read_text() == kept, "who only reads puts nothing aside"


# A guest and the owner's slider.


def test_a_guests_job_does_not_fail_for_a_size_that_the_owner_cannot_run_either(tmp_path: Path) -> None:
    """More pairs than Metal bears: the owner is told, the guest's picture is made with what runs."""
    request = PictureRequest("a tree", "sd15", width=1024, height=1024)
    session = Session(home(tmp_path).create(), "m1-8gb", Dial(1 << 16))
    plans, end = run(session, request, tmp_path / "owner", Choice())
    assert not plans and isinstance(end, Failed) and "chunk of queries" in str(end.sentence)
    plans, end = run(session, request, tmp_path / "guest", Choice(), yields=True)
    assert [plan.chunk_q for plan in plans] == [AUTO] and isinstance(end, Failed) and end.cure == "get:sd15"
    session.dial.chunk = 64
    assert run(session, request, tmp_path / "small", Choice(), yields=True)[0][0].chunk_q == 64, "one that runs counts"
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=MACHINES["m1-8gb"])
        desk.machine.set_chunk(1 << 16)
        assert "chunk of queries" in paint_view.forecast_html(desk, request, OWNER, "en")
        assert "chunk of queries" not in paint_view.forecast_html(desk, request, ADA, "en")


def test_a_voice_asked_to_paint_gets_no_forecast(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=MACHINES["m1-8gb"])
        with pytest.raises(Trouble, match="is a voice and cannot paint"):
            paint_view.forecast_html(desk, PictureRequest("a tree", "starter-voice", guidance=4.0), OWNER, "en")


def test_the_keeper_says_whose_job_it_is(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        for person in (ADA, OWNER):
            desk.jobs.begin(SpeechRequest("[S1] Hello."), person)
        queue = WorkQueue(desk.keeper.journal, desk.keeper.folder, lambda job: False)
        handed = [run.yields for _ in range(2) if (run := queue.take(lambda job: None))]
    assert handed == [False, True], "the owner's come first"


@pytest.mark.parametrize(("name", "why"), [("gtx-1060", "compute capability 8.0"), ("rtx-3060", "cannot monitor")])
def test_what_a_models_config_asks_for_is_answered_in_its_plan(name: str, why: str, tmp_path: Path) -> None:
    place, folder = home(tmp_path).create(), tmp_path / "voice"
    folder.mkdir()
    save_file({"weight": np.zeros((2, 2), np.float32)}, folder / "model.safetensors")
    asks = {"attn_implementation": "flash_attention_2", "quantization_config": {"quant_method": "awq"}}
    for config in ({}, asks):
        (folder / "config.json").write_text(json.dumps({"model_type": "dia", **config}))
        plan = make_plan(place, MACHINES[name], find(str(folder)))
        named = {each.option for each in plan.rejected if each.objections} | {plan.quantised}
        assert bool(config) == ("flash_attention_2" in named), "the model's wish is named, and only its own"
        because = next(str(each.sentence) for each in plan.because if each.field == "attention")
        assert bool(config) == (why in because), because
        not_awq = [each.sentence.key for row in plan.rejected if row.option == "awq" for each in row.objections]
        assert bool(config) != ("quantised.not-awq" in not_awq)
    assert plan.attention == "sdpa"


# What broken runs taught, forgotten.


def broke(model: str) -> Verdict:
    return Verdict(Subject.fallback(model, "contiguous"), passed=False, seen=RunFailure("numbers", 4, "float16"))


def test_only_what_runs_of_this_model_taught_is_forgotten(tmp_path: Path) -> None:
    machine = MACHINES["t4"]
    kept = [Verdict(Subject("row", "mps-leak"), True), Verdict(Subject("way", "x"), True), broke("sdxl"), broke("/models/a/b")]
    for each in (*kept, broke("sd15"), broke("/models/a")):
        learn(tmp_path, machine, each)
    assert forget(tmp_path, machine, "sd15") == (broke("sd15").subject,)
    assert forget(tmp_path, machine, "/models/a") == (broke("/models/a").subject,), "not of a folder inside it"
    assert forget(tmp_path, machine, "sd15") == ()
    assert load(tmp_path, machine) == {each.subject: each for each in kept}
    assert len(forget(tmp_path, machine)) == 2 and set(load(tmp_path, machine)) == {Subject("row", "mps-leak"), Subject("way", "x")}


def test_what_is_forgotten_is_gone_for_window_and_engine_at_once(tmp_path: Path) -> None:
    """A running engine's next run begins as before, and its self-test writes nothing back."""
    place = home(tmp_path).create()
    painter = str(save("sd15", tmp_path / "painter"))
    session = Session(place)
    session.hardware = dataclasses.replace(session.hardware, name="a tested one")
    request = PictureRequest("a boat", model=painter, width=64, height=64, steps=1, seed=3)
    learn(place.verdicts, session.hardware, broke(painter))
    plans: list[Plan] = []

    def runs() -> Plan:
        events = list(session.run(request, Choice(), Control(), tmp_path / f"job{len(plans)}", lambda _, plan: plans.append(plan)))
        assert isinstance(events[-1], Finished), events[-1]
        return plans[-1]

    spare = session.verdicts
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=session.hardware)
        assert runs().contiguous and desk.machine.plan(painter, Choice()).contiguous
        assert machine_tab(desk, painter, "", "en")["learned"] == [
            "Tensors are made contiguous before attention. float16 produced NaN or infinity at step 4."
        ]
        desk.machine.forget(painter)
        assert not desk.machine.plan(painter, Choice()).contiguous and machine_tab(desk, painter, "", "en")["learned"] == []
    assert not runs().contiguous
    learn(place.verdicts, session.hardware, broke(painter))
    assert runs().contiguous

    def meanwhile(hardware: Hardware, found: dict[Subject, Verdict], asked: object) -> Iterator[Any]:
        assert forget(place.verdicts, hardware, painter)
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.engine.session.maintenance.run.steps", meanwhile)
        list(session.run(SelfTest(), Choice(), Control(), tmp_path / "test", lambda *_: None))
    assert load(place.verdicts, session.hardware) == {}
    assert not runs().contiguous
    assert session.verdicts is spare, "idle measuring writes to this one"
    session.free()


def test_idle_measuring_knows_what_another_process_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was handed a dict that a later run left behind: what was measured after that counted for nothing until a restart."""
    session = Session(home(tmp_path).create())
    handed: list[dict[Subject, Verdict]] = []
    monkeypatch.setattr(
        "app.engine.session.session.measure_while_idle", lambda home, hardware, verdicts: handed.append(verdicts) or iter(())
    )
    list(session.use_idle_time())
    learn(session.home.verdicts, session.hardware, broke("sd15"))
    run(session, PictureRequest("a tree", "sd15"), tmp_path / "job", Choice())
    assert broke("sd15").subject in handed[0]
    handed[0][Subject("way", "x")] = Verdict(Subject("way", "x"), True)
    list(session.use_idle_time())
    assert handed[0] is handed[1] is session.verdicts


def test_doctor_says_what_was_learned_and_forgets_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*words: str) -> str:
        assert main(["doctor", *words, "--pretend", "t4", "--home", str(tmp_path)]) == 0
        return " ".join(capsys.readouterr().out.split())

    place = home(tmp_path).create()
    for model in ("sd15", "sdxl"):
        learn(place.verdicts, MACHINES["t4"], broke(model))
    assert f"To forget this and try again: {name_command()} doctor --forget sd15 --pretend t4" in told()
    assert told("--forget", "sd15") == "Forgotten: sd15/contiguous. The next run starts afresh."
    assert "--forget sd15" not in told() and "--forget sdxl" in told()
    assert learned(load(place.verdicts, MACHINES["t4"]), "sdxl")
    assert "sdxl/contiguous" in told("--forget") and "Nothing to forget" in told("--forget")
