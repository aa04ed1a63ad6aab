"""The session with tiny real models: one owner of memory, fallbacks, what is learned, and every failure a sentence."""

from __future__ import annotations

import dataclasses
import errno
import platform
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from app.base.paths import home
from app.compat.machine.chunk_curve import read_curve
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import MACHINES
from app.compat.machine.processor import find_refusal
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, forget, learn, load
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import choices
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Plan, Quantised
from app.compat.selftest.failures import DeviceLimits
from app.compat.selftest.simulate import biting
from app.engine.jobs.control import Control, Dial
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, Note, PartDone, Step, Stopped, Unloaded
from app.engine.jobs.messages import Died
from app.engine.jobs.parts import FILES, LESSONS, mark_elsewhere
from app.engine.jobs.request import Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.jobs.tasks import SelfTest, Tune
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.model import describe_need
from app.engine.models.pretended_device import use_real_device
from app.engine.models.voice_limits import DIA
from app.engine.pictures.run.painter import Painter
from app.engine.session import run_errors
from app.engine.session.live_plan import LivePlan
from app.engine.session.run_errors import classify_fault, describe_failure
from app.engine.session.session import Session
from app.engine.speech.run.loader import Speaker
from app.engine.speech.text.voices import keep_voice
from tests.support import open_session, refused
from tests.support.picture_fixtures import make_lora
from tests.support.refused import take_away
from tests.support.tiny_pictures import save
from tests.support.tiny_voices import STARTER, save_voice

pytestmark = pytest.mark.long

asked_anew, session = refused.asked_anew, open_session.session
Run = Callable[..., list[Event]]
SPEECH = "[S1] A short line. [S2] And its answer."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {"voice": str(save_voice(folder / "voice", STARTER)), "sd15": str(save("sd15", folder / "sd15"))}


@pytest.fixture
def plans() -> list[Plan]:
    return []


@pytest.fixture
def run(session: Session, tmp_path: Path, plans: list[Plan]) -> Run:
    def run(request: Any, control: Control | None = None, job: str = "job", died: Died | None = None) -> list[Event]:
        return list(session.run(request, Choice(), control or Control(), tmp_path / job, lambda model, plan: plans.append(plan), died=died))

    return run


def speech(models: dict[str, str], **more: Any) -> SpeechRequest:
    return SpeechRequest(SPEECH, model=models["voice"], seed=3, max_frames=40, **more)


def picture(models: dict[str, str], **more: Any) -> PictureRequest:
    return PictureRequest(**{"prompt": "a boat", "model": models["sd15"], "width": 64, "height": 64, "steps": 3, "seed": 3, **more})


def broken(session: Session, monkeypatch: pytest.MonkeyPatch, faults: list[BaseException], model: type = Speaker) -> None:
    """What a machine without room or with a broken kernel would do: raise in the middle of a run, as often as there are faults."""
    real = model.run  # type: ignore[attr-defined]

    def breaking(self: Any, *args: Any) -> Iterator[Event]:
        for number, event in enumerate(real(self, *args)):
            if number == 1 and faults:
                raise faults.pop(0)
            yield event

    monkeypatch.setattr(model, "run", breaking)


def test_speech_and_picture_after_each_other(run: Run, models: dict[str, str], session: Session) -> None:
    spoken = run(speech(models))
    assert isinstance(spoken[0], Loading) and isinstance(spoken[-1], Finished)
    again = run(speech(models), job="again")
    assert not any(isinstance(event, Loading) for event in again), "it was loaded already"
    painted = run(picture(models), job="picture")
    assert isinstance(painted[-1], Finished) and session.loaded == models["sd15"]
    back = [*run(speech(models), job="back"), *run(picture(models), job="picture again")]
    assert not any(isinstance(event, Loading | Unloaded) for event in (*painted[1:], *back)), "both fit, so both stayed"


def test_speech_and_pictures_unload_one_another_where_both_do_not_fit(
    run: Run, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.session.loaded_models.BESIDE", 0.0)
    run(speech(models))
    events = run(picture(models), job="picture")
    (unloaded,) = [event for event in events if isinstance(event, Unloaded)]
    assert unloaded.model == models["voice"] and "unloaded" in str(unloaded.sentence)
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    ("fault", "cause", "fallback"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "failure.memory", "smaller-chunk"),
        pytest.param(
            RuntimeError("MPS backend out of memory (MPS allocated: 5.00 GB)"), "failure.memory", "smaller-chunk", marks=pytest.mark.slow
        ),
        pytest.param(RuntimeError("Invalid buffer size: 19.38 GiB"), "failure.memory", "smaller-chunk", marks=pytest.mark.slow),
        (NumbersBroke(7), "failure.numbers", "contiguous"),
    ],
)
def test_a_broken_run_takes_a_fallback_and_goes_on(
    run: Run,
    session: Session,
    models: dict[str, str],
    plans: list[Plan],
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
    cause: str,
    fallback: str,
) -> None:
    broken(session, monkeypatch, [fault])
    events = run(speech(models))
    assert isinstance(events[-1], Finished), events[-1]
    assert cause in [event.sentence.key for event in events if isinstance(event, Note)]
    (adjusted,) = [event for event in events if isinstance(event, Adjusted)]
    assert adjusted.fallback == fallback and adjusted.learned in str(fault) and len(plans) == 2 and plans[0] != plans[1]
    stored = load(session.home.verdicts, session.hardware)
    assert Subject("rung", f"{models['voice']}/{fallback}") in stored
    plans.clear()
    run(speech(models), job="next")
    assert len(plans) == 1 and plans[0].chunk_most == (64 if fallback == "smaller-chunk" else None), "what was learned was forgotten"
    assert plans[0].contiguous == (fallback == "contiguous")


@pytest.mark.parametrize(
    ("model", "quantised", "path", "told"),
    [
        pytest.param("voice", "none", "ops.mkldnn._linear_pointwise", "processor.plain-order", marks=pytest.mark.slow),
        ("voice", "int8", "ops.aten._weight_int8pack_mm", "processor.widened"),
        pytest.param("voice", "int4", "ops.aten._weight_int4pack_mm_for_cpu", "processor.widened", marks=pytest.mark.slow),
        ("sd15", "none", "ops.mkldnn._convolution_pointwise", "processor.plain-order"),
    ],
)
def test_an_operator_that_refuses_in_the_middle_of_a_run_is_told_once_and_the_run_goes_on(
    session: Session,
    models: dict[str, str],
    tmp_path: Path,
    asked_anew: None,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    quantised: Quantised,
    path: str,
    told: str,
) -> None:
    if told == "processor.plain-order" and (why := find_refusal("linear" if model == "voice" else "convolution", torch.float32)):
        pytest.skip(f"on this processor: {why}")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr("app.engine.speech.families.dia.voice.is_quicker_here", lambda compute: True)
    choice = Choice(quantised=quantised, dtype="float32")
    asked = speech(models) if model == "voice" else picture(models)
    events = list[Event]()
    for event in session.run(asked, choice, Control(), tmp_path / "job", lambda *_: None):
        if isinstance(event, Step) and not any(isinstance(each, Step) for each in events):
            take_away(monkeypatch, path)
        events.append(event)
    assert isinstance(events[-1], Finished), events[-1]
    assert [event.sentence.key for event in events if isinstance(event, Note)].count(told) == 1
    assert not any(isinstance(event, Adjusted) for event in events), "what is planned and learned stays"
    again = list(session.run(asked, choice, Control(), tmp_path / "again", lambda *_: None))
    assert isinstance(again[-1], Finished) and told not in [event.sentence.key for event in again if isinstance(event, Note)]


@pytest.mark.parametrize(("dtype", "told"), [("float16", 1), ("float32", 0)])
def test_a_dtype_that_is_slow_on_a_processor_is_told(
    session: Session, models: dict[str, str], tmp_path: Path, dtype: Dtype, told: int
) -> None:
    session.hardware = dataclasses.replace(session.hardware, kind="cpu")
    control = Control()
    control.stop()
    events = list(session.run(speech(models), Choice(dtype=dtype), control, tmp_path / "job", lambda *_: None))
    assert [event.sentence.key for event in events if isinstance(event, Note)].count("dtype.cpu-float16") == told


def test_a_machine_that_breaks_every_way_is_told(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(session, monkeypatch, [NumbersBroke(1) for _ in range(40)])
    events = run(speech(models))
    end = events[-1]
    assert isinstance(end, Failed) and "precision" in str(end.sentence)
    fallbacks = [event.fallback for event in events if isinstance(event, Adjusted)]
    assert fallbacks[0] == "contiguous" and len(set(fallbacks)) == len(fallbacks) > 1


@pytest.mark.slow
def test_a_lora_that_breaks_numbers_teaches_nothing_about_the_machine(
    run: Run, session: Session, models: dict[str, str], tmp_path: Path, plans: list[Plan]
) -> None:
    style = make_lora(Path(models["sd15"]), tmp_path / "style.safetensors", 1)
    save_file({name: tensor * 1e20 for name, tensor in load_file(style).items()}, tmp_path / "huge.safetensors")
    events = run(picture(models, loras=(Lora(str(tmp_path / "huge.safetensors")),)))
    end = events[-1]
    assert isinstance(end, Failed) and end.sentence.key == "session.lora-numbers"
    assert not [each for each in load(session.home.verdicts, session.hardware) if each.kind == "rung"]
    first = plans[0]
    plans.clear()
    assert isinstance(run(picture(models), job="next")[-1], Finished) and choices(plans[0]) == choices(first)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["memory", "death"])
def test_what_breaks_with_a_lora_is_learned_for_it_alone(
    run: Run, session: Session, models: dict[str, str], tmp_path: Path, plans: list[Plan], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Whoever made the LoRA may have made it break: its user pays for it, the model does not."""
    style = make_lora(Path(models["sd15"]), tmp_path / "style.safetensors", 1)
    run(picture(models), job="before")
    usual = choices(plans.pop())
    broken(session, monkeypatch, [MemoryError()] if how == "memory" else [], Painter)
    died = Died("memory", 1, "killed", False) if how == "death" else None
    events = run(picture(models, loras=(Lora(str(style)),)), died=died)
    assert isinstance(events[-1], Finished) and any(isinstance(event, Adjusted) for event in events), events[-1]
    assert not [each for each in load(session.home.verdicts, session.hardware) if each.kind == "rung"]
    careful = choices(plans[-1])
    plans.clear()
    run(picture(models), job="without it")
    run(picture(models, loras=(Lora(str(style)),)), job="with it again")
    assert [choices(each) for each in plans] == [usual, careful] and usual != careful
    assert {each.kind for each in forget(session.home.verdicts, session.hardware, models["sd15"])} == {"rung"}
    plans.clear()
    run(picture(models, loras=(Lora(str(style)),)), job="forgotten")
    assert choices(plans[0]) == usual


def test_memory_that_never_suffices_ends_in_a_sentence(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(session, monkeypatch, [MemoryError() for _ in range(40)])
    end = run(speech(models))[-1]
    assert isinstance(end, Failed) and end.cure == "smaller"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param(kind, fault, marks=() if place == (0 if kind == "speech" else 2) else pytest.mark.slow)
        for kind in ("speech", "picture")
        for place, fault in enumerate([NumbersBroke(1), torch.OutOfMemoryError("out of memory"), RuntimeError("odd"), ZeroDivisionError()])
    ],
)
def test_what_another_machine_began_teaches_nothing_about_this_one(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, fault: Exception
) -> None:
    """It may hold anything, so that any fault may be its doing; the next one is this machine's own."""
    request, model = (speech(models), Speaker) if kind == "speech" else (picture(models), Painter)
    begun = FILES[request.kind].begun_path(tmp_path / "job", 0)
    begun.parent.mkdir()
    begun.write_text("{}")
    mark_elsewhere(begun)
    broken(session, monkeypatch, [fault], model)
    events = run(request)
    assert isinstance(events[-1], Finished), events[-1]
    assert "session.begun-elsewhere" in [event.sentence.key for event in events if isinstance(event, Note)]
    assert not [each for each in session.verdicts if each.kind == "rung"] and not [*begun.parent.glob(f"{begun.name}*")]
    broken(session, monkeypatch, [NumbersBroke(1)], model)
    assert [event.fallback for event in run(request, job="own") if isinstance(event, Adjusted)] == ["contiguous"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["numbers", "memory", "death"])
def test_what_breaks_with_another_machines_part_as_a_voice_is_learned_for_its_job_alone(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plans: list[Plan], how: str
) -> None:
    """Its codes may be such that they break the numbers of whoever speaks on with them."""
    (tmp_path / "job" / LESSONS).mkdir(parents=True)
    failing: dict[str, list[BaseException]] = {"numbers": [NumbersBroke(1)], "memory": [MemoryError()], "death": []}
    faults = failing[how]
    broken(session, monkeypatch, [*faults])
    events = run(speech(models), died=Died("memory", 1, "killed") if how == "death" else None)
    assert isinstance(events[-1], Finished) and any(isinstance(event, Adjusted) for event in events), events[-1]
    assert not [each for each in load(session.home.verdicts, session.hardware) if each.kind == "rung"]
    careful = choices(plans[-1])
    plans.clear()
    run(speech(models))
    run(speech(models), job="next")
    assert choices(plans[0]) == careful != choices(plans[1]), "the job alone goes on so"


def test_a_fault_that_is_not_the_machines_is_not_answered_by_a_fallback(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken(session, monkeypatch, [KeyError("who knows")])
    events = run(speech(models))
    end = events[-1]
    assert isinstance(end, Failed) and end.cure == "report" and "who knows" in str(end.objections[0])
    assert not any(isinstance(event, Adjusted) for event in events)
    assert "Traceback" in capfd.readouterr().err, "the log needs it"


def test_what_was_finished_before_a_failure_is_kept(
    run: Run, session: Session, models: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = Speaker.run

    def full(self: Speaker, *args: Any) -> Iterator[Event]:
        for event in real(self, *args):
            yield event
            if isinstance(event, PartDone):
                raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Speaker, "run", full)
    monkeypatch.setattr(run_errors, "PLENTY_BYTES", 1 << 60)  # this machine's disk is not full
    end = run(speech(models))[-1]
    assert isinstance(end, Failed) and "disk is full" in str(end.sentence) and len(end.files) == 1
    assert Path(end.files[0]).stat().st_size > 1000


def test_attention_that_nobody_saw_is_no_success(run: Run, models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from app.compat.attention.seam import Seam

    monkeypatch.setattr(Seam, "calls", property(lambda self: 0))
    end = run(speech(models))[-1]
    assert isinstance(end, Failed) and "bypassed Hearth" in str(end.sentence)


def test_what_the_engine_died_of_changes_the_plan_at_once(run: Run, models: dict[str, str], plans: list[Plan]) -> None:
    events = run(speech(models), died=Died("crash", 3, "aborted"))
    assert isinstance(events[-1], Finished)
    assert [event.fallback for event in events if isinstance(event, Adjusted)] == ["contiguous", "own-arithmetic"]
    assert plans[0].contiguous and plans[0].kernels == ()


def test_a_voice_that_died_of_memory_is_told_nothing_about_pictures(run: Run, models: dict[str, str]) -> None:
    events = run(speech(models), died=Died("memory", None, "killed"))
    said = " ".join(str(event.sentence) for event in events if isinstance(event, Adjusted))
    assert isinstance(events[-1], Finished) and "smaller chunks" in said and "icture" not in said


def test_a_pretended_machine_plans_as_itself_and_works_here(tmp_path: Path, models: dict[str, str]) -> None:
    session = Session(home(tmp_path / "home").create(), "m1-8gb")
    plans: list[Plan] = []
    events = list(session.run(speech(models), Choice(), Control(), tmp_path / "job", lambda _, plan: plans.append(plan)))
    assert isinstance(events[-1], Finished), events[-1]
    real = use_real_device(plans[0])
    assert plans[0].device == "mps" and real.device == "cpu" and plans[0].gqa == "folded"


def test_the_chunk_size_moves_in_the_middle_of_a_run(session: Session, models: dict[str, str], tmp_path: Path) -> None:
    control, seen = Control(), []
    for event in session.run(picture(models, steps=6), Choice(), control, tmp_path / "job", lambda *_: None):
        if isinstance(event, Step) and event.ran is not None:
            seen.append(event.ran)
            session.dial.chunk = 3
    assert seen[0].rows == seen[0].queries and seen[-1].rows == 3, seen


def test_stop_keeps_what_is_there(run: Run, session: Session, models: dict[str, str], tmp_path: Path) -> None:
    control = Control()
    control.stop()
    end = run(speech(models), control)[-1]
    assert isinstance(end, Stopped)


def test_what_torch_keeps_of_the_job_before_counts_as_free(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [3 << 30]
    session.hardware = dataclasses.replace(session.hardware, kind="cpu", memory_bytes=8 << 30)
    monkeypatch.setattr("app.engine.session.session.release", kept.clear)
    monkeypatch.setattr("app.engine.session.session.read", lambda: Reading(free_bytes=(8 << 30) - sum(kept)))
    assert session._read_hardware().free_bytes == 8 << 30


def test_errands(run: Run, session: Session, models: dict[str, str]) -> None:
    events = run(Tune(models["sd15"]))
    assert isinstance(events[-1], Finished), events[-1]
    curve = read_curve(session.home, models["sd15"])
    assert curve is not None and curve.knee in {point.chunk for point in curve.points} and all(point.seconds > 0 for point in curve.points)
    control = Control()
    control.stop()
    assert isinstance(run(Tune(models["sd15"]), control)[-1], Stopped)


@pytest.mark.parametrize(
    ("change", "words"), [({"model": "no-such-model"}, "no model, file or folder named"), ({"model": "dia-1.6b"}, "not installed yet")]
)
def test_models_that_are_not_there(run: Run, models: dict[str, str], change: dict[str, Any], words: str) -> None:
    end = run(dataclasses.replace(speech(models), **change))[-1]
    assert isinstance(end, Failed) and words in str(end.sentence) and end.cure


def test_faults_are_sorted() -> None:
    assert classify_fault(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")) == "memory"
    assert classify_fault(RuntimeError("Placeholder shape mismatches (expected 1 vs got tensorData with 77) at dimIdx = 2")) == "crash"
    for words in (
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "GET was unable to find an engine to execute this computation",
    ):
        assert classify_fault(RuntimeError(words)) == "memory"
    assert classify_fault(RuntimeError("could not create a primitive descriptor for a matmul primitive")) is None
    assert classify_fault(RuntimeError("something else")) is None and classify_fault(NumbersBroke(0)) == "numbers"


def test_an_unknown_failure_names_its_own_words(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failed = describe_failure(ValueError("strange"), tmp_path)
    assert "strange" in str(failed.objections[0]) and failed.cure == "report"


@pytest.mark.parametrize(
    ("request_", "cure"),
    [
        (SpeechRequest("[S1] 大象.", model="starter-voice"), ""),
        (SpeechRequest("[S1] Hello.", "starter-voice", VoicePrompt("mine.wav", "Hello.")), "use:dia-1.6b"),
    ],
)
def test_what_a_starter_cannot_speak_is_told_before_it_is_loaded(
    run: Run, session: Session, plans: list[Plan], request_: Any, cure: str
) -> None:
    (failed,) = run(request_)
    assert isinstance(failed, Failed) and failed.cure == cure
    assert any(words in str(failed.sentence) for words in ("can read none of this script", "cannot imitate this recording"))
    assert not plans and not session.loaded


@pytest.mark.slow
def test_the_starter_follows_a_voice_that_it_spoke(run: Run, session: Session, tmp_path: Path) -> None:
    """Whoever kept it, and from wherever: the file says which model spoke, also where none was named."""
    said = "[S1] Hello, my friend. One two three four."
    (*_, spoken) = run(SpeechRequest(said, seed=1), job="first")
    assert isinstance(spoken, Finished)
    kept = keep_voice(session.home, "Its own", Path(spoken.files[0]), said, DIA)
    assert kept.spoken_by == "starter-voice"
    for voice in (kept.prompt, VoicePrompt(spoken.files[0], said)):
        (*_, again) = run(SpeechRequest("[S1] The boat is near the bridge.", voice=voice, seed=1), job=Path(voice.path).stem)
        assert isinstance(again, Finished) and 1 < again.seconds < 4


def test_smaller_chunks_are_really_taken_when_memory_runs_out(models: dict[str, str], tmp_path: Path) -> None:
    """With 4096 on the slider, smaller chunks were announced seven times while 4096 ran each time."""
    session = Session(home(tmp_path / "home").create(), "m1-8gb")
    session.dial.chunk = 4096
    plans: list[Plan] = []
    asked = picture(models, width=256, height=256, preview_every=0)
    with biting("m1-8gb", limits=DeviceLimits(buffer_bytes=1_000_000)):
        events = list(session.run(asked, Choice(), Control(), tmp_path / "job", lambda _, plan: plans.append(plan)))
    assert isinstance(events[-1], Finished), events[-1]
    assert [event.fallback for event in events if isinstance(event, Adjusted)] == ["smaller-chunk"] * 2
    assert [plan.chunk_q for plan in plans] == [4096, 128, 64]
    (why,) = [str(reason.sentence) for reason in plans[-1].because if reason.field == "chunk_q"]
    assert why.startswith("You asked for 4096; 64 is used. Memory ran out")
    steps = [event for event in events if isinstance(event, Step)]
    assert steps and all(step.ran and (step.ran.rows, step.ran.queries) == (64, 256) for step in steps)
    session.free()


def test_back_to_automatic_acts_in_the_middle_of_a_run_and_the_plan_says_so(
    session: Session, models: dict[str, str], tmp_path: Path
) -> None:
    session.dial.chunk = 3
    plans: list[Plan] = []
    seen = []
    for event in session.run(picture(models, steps=6), Choice(), Control(), tmp_path / "job", lambda _, plan: plans.append(plan)):
        if isinstance(event, Step) and event.ran is not None:
            seen.append(event.ran)
            session.dial.chunk = AUTO
    assert seen[0].rows == 3 and seen[-1].rows == seen[-1].queries
    assert [plan.chunk_q for plan in plans] == [3, AUTO]


def test_a_size_that_is_chosen_while_a_model_is_loaded_is_in_the_plan_that_is_told(
    session: Session, models: dict[str, str], tmp_path: Path
) -> None:
    session.dial.chunk = 3
    plans: list[Plan] = []
    for event in session.run(picture(models, steps=2), Choice(), Control(), tmp_path / "job", lambda _, plan: plans.append(plan)):
        if isinstance(event, Loading):
            session.dial.chunk = 5
    assert [plan.chunk_q for plan in plans] == [3, 5]


def test_a_size_that_cannot_run_here_is_told_and_what_ran_goes_on(models: dict[str, str], tmp_path: Path) -> None:
    session = Session(home(tmp_path / "home").create(), "m1-8gb")
    model = catalog.find(models["sd15"])
    facts = session.hardware
    asked = dataclasses.replace(describe_need(model), heads=64, kv_heads=64, queries=1 << 15, keys=1 << 15)
    live = LivePlan(partial(decide, facts, asked, Choice()), session.dial, {})
    before = live.now
    session.dial.chunk = 1 << 15
    assert choices(live.now) == choices(before) and live.refused is not None and "chunk of queries" in str(live.refused)
    assert live.now is live.now, "told once"
    why = next(str(each.sentence) for each in live.now.because if each.field == "chunk_q")
    assert why == f"You asked for 32768, but automatic is used: {live.refused.objections[0]}", "whoever sees the plan is told"
    assert live.refused is live.refused, "decided once, told once"
    again = LivePlan(partial(decide, facts, asked, Choice()), session.dial, {}, live)
    assert choices(again.now) == choices(before), "a fallback is taken on what ran"
    session.dial.chunk = 64
    assert live.now.chunk_q == 64 and live.refused is None
    assert not any(each.sentence.key == "chunk_q.differs" for each in live.now.because)


def test_a_size_that_changes_while_a_plan_begins_is_the_one_decided_for() -> None:
    """The slider moves in another process at any time."""
    dial, plans = Dial(), dict[Chunk, object]()

    def decided(verdicts: object, chunk: Chunk) -> Plan:
        dial.chunk = 64
        plans[chunk] = plan = decide(MACHINES["cpu"], chunk=chunk)
        return plan

    dial.chunk = 128
    assert LivePlan(decided, dial, {})._latest is plans[128]


def test_a_death_while_loading_is_not_answered_with_chunks(run: Run, models: dict[str, str]) -> None:
    events = run(speech(models), died=Died("memory", None, "killed", loading=True))
    assert isinstance(events[-1], Finished)
    assert "smaller-chunk" not in [event.fallback for event in events if isinstance(event, Adjusted)]


def test_what_another_process_learned_meanwhile_counts_and_stays(
    run: Run, session: Session, models: dict[str, str], plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    fallback = Verdict(Subject.fallback(models["voice"], "contiguous"), passed=False, seen=RunFailure("numbers", 4, "float16"))
    learn(session.home.verdicts, session.hardware, fallback)
    run(speech(models))
    assert plans[0].contiguous
    session.verdicts.clear()
    monkeypatch.setattr("app.engine.session.maintenance.run.steps", lambda hardware, found, asked: iter(()))
    run(SelfTest())
    assert load(session.home.verdicts, session.hardware)[fallback.subject] == fallback
