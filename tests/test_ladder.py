"""The ladder, the diagnosis of a death, and the folding of events: pure, so every case is walked."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from app.compat.hardware import Hardware
from app.compat.meter import Reading
from app.compat.plan import Choice, Need, Plan, Precision, decide
from app.compat.pretend import MACHINES
from app.compat.quirks import QUIRKS
from app.engine import event
from app.engine.diagnosis import diagnose
from app.engine.ladder import BY_ID, RUNGS, SMALLEST_CHUNK, Fault, next_rung, stepped
from app.engine.progress import Progress
from app.sentence import say


def plan_of(hardware: Hardware) -> Plan:
    return decide(hardware, Need(kind="picture", width=512, height=512), Choice(), {})


def climbed(plan: Plan, fault: Fault) -> list[tuple[str, Plan]]:
    steps = []
    while (step := next_rung(plan, fault)) and len(steps) < 60:
        rung, plan = step
        steps.append((rung.id, plan))
    return steps


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("fault", ["numbers", "memory", "crash"])
def test_every_ladder_ends_and_every_rung_changes_the_plan(name: str, fault: Fault) -> None:
    start = plan_of(MACHINES[name])
    steps = climbed(start, fault)
    assert 0 < len(steps) < 20
    plans = [start, *(plan for _, plan in steps)]
    assert all(before != after for before, after in pairwise(plans))


def test_memory_shrinks_chunks_before_it_offloads() -> None:
    ids = [id_ for id_, _ in climbed(plan_of(MACHINES["rtx-3060"]), "memory")]
    assert ids[0] == "smaller-chunk" and ids[-1] == "offload-all" and ids.index("tiled-decoder") < ids.index("offload")
    last = climbed(plan_of(MACHINES["rtx-3060"]), "memory")[-1][1]
    assert last.chunk_q == SMALLEST_CHUNK and last.offload == "sequential" and last.vae.tile_pixels > 0


@pytest.mark.parametrize("name", ["cpu", "m1-8gb"])
def test_where_memory_is_shared_a_pictures_parts_wait_in_files_and_a_voices_nowhere(name: str) -> None:
    plan = plan_of(MACHINES[name])
    assert climbed(plan, "memory")[-1][0] == "offload" and climbed(plan, "memory")[-1][1].offload == "model"
    voice = replace(plan, precision=(Precision("model", "speech", plan.dtype, plan.dtype, plan.device),))
    assert not {"offload", "offload-all"} & {id_ for id_, _ in climbed(voice, "memory")}


def test_from_groups_it_goes_on_to_single_layers() -> None:
    steps = climbed(replace(plan_of(MACHINES["rtx-3060"]), offload="group"), "memory")
    assert steps[-1][0] == "offload-all" and steps[-1][1].offload == "sequential"


def test_a_broken_decoder_is_helped_before_anything_else() -> None:
    plan = decide(MACHINES["rtx-3060"], replace(Need(kind="picture", width=512, height=512)), Choice(), {})
    plan = replace(plan, precision=())
    memory = next_rung(plan, "memory", "vae")
    assert memory is not None and memory[0].id == "tiled-decoder"
    assert next_rung(plan, "memory", "denoiser") == next_rung(plan, "memory")


def test_rungs_of_an_earlier_attempt_are_stepped_at_once() -> None:
    plan = plan_of(MACHINES["m1-8gb"])
    safer = stepped(plan, ("smaller-chunk", "contiguous", "a rung of next year"))
    assert safer.contiguous and safer.chunk_q == 512 and stepped(plan, ()) == plan


def test_every_rung_has_a_sentence_of_its_own() -> None:
    assert len({rung.sentence.key for rung in RUNGS}) == len(RUNGS) == len(BY_ID)
    assert all(str(rung.sentence) for rung in RUNGS)


@pytest.mark.parametrize(
    ("code", "words", "wedged", "fault", "key"),
    [
        (-9, "", False, "memory", "death.killed"),
        (-6, "", False, "crash", "death.aborted"),
        (-11, "", False, "crash", "death.signal"),
        (1, "Traceback", False, "crash", "death.exit"),
        (None, "", True, "crash", "death.wedged"),
    ],
)
def test_a_death_is_told_by_its_code(code: int | None, words: str, wedged: bool, fault: Fault, key: str) -> None:
    death = diagnose(code, words, wedged)
    assert (death.fault, death.sentence.key, death.quirk) == (fault, key, "")


def test_last_words_that_are_known_name_their_row() -> None:
    words = "/AppleInternal/MPSNDArray.mm:89: failed assertion `[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32'"
    death = diagnose(-6, "some noise\n" + words)
    assert death.quirk == "mps-4gib" and death.sentence == next(row.sentence for row in QUIRKS if row.id == "mps-4gib")


STEP = event.Step(1, 10, 2.0, "frames", 4.5, Reading(), part=0, parts=2)
SENTENCE = say("test.word", "A word.")


def test_progress_told_to_somebody_late_folds_to_the_same() -> None:
    happened: list[event.Event] = [
        event.Loading("m", SENTENCE), event.Note(SENTENCE), STEP, event.Sound(0, "a.wav", 0, 1), event.Adjusted("r", SENTENCE),
        event.Part(0, 2, "0.wav", "one", 1, 3.0), event.Sound(1, "b.wav", 0, 1), replace(STEP, done=7, part=1), event.Preview(2, "p.jpg"),
    ]  # fmt: skip
    progress = Progress()
    for each in happened:
        progress = progress.after(each)
    assert [part.index for part in progress.parts] == [0] and [sound.part for sound in progress.sounds] == [1]
    late = Progress()
    for each in progress.events():
        late = late.after(each)
    assert late == progress
    ended = progress.after(event.Finished(("x",), 1, 1, "frames", 0))
    assert ended.end is not None and ended.after(event.Part(0, 2, "new.wav", "one", 2, 1.0)).parts[0].path == "new.wav"
