"""A trained recogniser finds a word that is cut, doubled or swapped in flite's and the starter voice's speech, and nearly nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Need
from app.engine.hearing.compare import Mark, mark
from app.engine.hearing.ears import ear
from app.engine.hearing.spelling import spell
from app.engine.jobs.control import Control
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from app.engine.speech.sound.sound import Samples
from tests.support import trained_ears
from tests.support.places import TOP

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
trained_whisper = trained_ears.trained_whisper
STARTER = TOP / "assets" / "starter" / "voice"
SENTENCES = (
    "The captain opened the letter and laughed before the rain.", "My sister walked down to the harbour long after midnight.",
    "Nobody asked for bread, cheese and a little ham that evening.", "The woman looked at the sea for a long time without a word.",
    "Her uncle forgot the key and came home when the clock struck seven.", "The engine was repaired, painted and measured again.",
    "They counted the lamps slowly, as if it were a game.", "The second trial was smaller than everybody had expected.",
    "A wise woman opened the window and listened to the wind.", "We sold the house in the spring and moved to the city.",
    "The doctor waited at the station with both hands in his pockets.", "I only wish that you had been here with us in the garden.",
)  # fmt: skip
UNSEEN = (
    "He is not at home, so go in and wait for him.", "Julia told Martin that the bus to Dublin had already left.",
    "The company opened 12 new offices in the spring of 1987.", "If it is up to me, we will do it on our own.",
    "Professor Lang teaches history at the college in Oxford.", "Cut the bread into thin slices and toast them on both sides.",
    "What do you mean by that, and who gave you the idea?", "The path goes down to a lake, then up through the forest.",
    "My aunt Rosa keeps bees, hens and two very lazy goats.", "No one in the room could say how he had got in.",
    "Turn right at the church and drive on for 8 miles.", "It is odd that a man of his age can run so far.",
    "Oliver wanted to be a pilot, but his eyes were too weak.", "The price of oil fell by a third in less than a year.",
    "We sat on the grass and ate a bag of cherries.", "Is it true that Simon and Clara are to be married in June?",
    "All at once the door flew open and a tall stranger came in.", "The minister said that the new law would protect small farms.",
    "She has been to Rome, to Athens and to a town in Egypt.", "Put the cup back on the shelf as soon as you are done with it.",
    "The ship lost its mast near the coast of Norway.", "I am sure that it was you who sent me the note.",
    "About 40 people stood in line for the only open desk.", "The dog ran after the ball, over the fence and into a pond.",
    "Let us go to the top of the hill and look at the stars.", "Victor played the piano while Emma sang an old Irish song.",
    "Water the plants once a week, but never when the sun is high.", "Do as he says, or it will be the end of us all.",
    "The engineers tested the brake five times before they were content.", "By noon the snow had gone and the roads were dry again.",
)  # fmt: skip
"""No constant was chosen by these: what is measured on them holds for any text."""
OLD = (
    "And feareth nothing, and the keeper of the vineyard dwelleth among the hills.", "A wise woman dwelleth among the hills, and feareth nothing.",
    "The multitude saith unto them that he shall not want bread.", "Her uncle goeth softly, and hath turned away his face.",
)  # fmt: skip
OTHERS = ("table", "silver", "mountain", "tomorrow", "bottle", "purple")
OTHERS_UNSEEN = ("basket", "winter", "orange", "market", "soldier", "pencil", "gentle", "finger")
FAULTS = ("cut", "doubled", "swapped")
FOUND, WORDS_A_MARK = 0.95, 200
FOUND_UNSEEN, WORDS_A_MARK_UNSEEN = 0.8, 60


def plant(text: str, fault: str, rng: random.Random, others: Sequence[str] = OTHERS) -> str:
    words = text.split()
    place = rng.randrange(1, len(words) - 1)
    said = {"cut": [], "doubled": [words[place].rstrip(","), words[place]], "swapped": [rng.choice(others)]}[fault]
    return " ".join([*words[:place], *said, *words[place + 1 :]])


class Judge:
    def __init__(self, folder: Path) -> None:
        self._plan = decide(probe(), describe_need(BY_ID["whisper-tiny-en"]))
        self._ear = ear.load(folder, self._plan, "whisper-tiny-en")

    def mark(self, samples: Samples, text: str) -> list[Mark]:
        with applied(self._plan):
            ((_, words, meant, _),) = self._ear.hear(samples, 16_000, text)
        return mark(meant, " ".join(word.text for word in words), spell)


def test_flite(trained_whisper: Path, tmp_path: Path) -> None:
    judge, rng = Judge(trained_whisper), random.Random(1)
    clean = [(voice, text) for voice in ("slt", "rms") for text in SENTENCES]
    false = [(text, marks) for voice, text in clean if (marks := judge.mark(trained_ears.say(text, tmp_path, voice), text))]
    words = sum(len(text.split()) for _, text in clean)
    assert sum(len(marks) for _, marks in false) <= -(-words // WORDS_A_MARK), false
    missed, tried = Counter[str](), Counter[str]()
    for voice, text in clean:
        for fault in FAULTS:
            tried[fault] += 1
            missed[fault] += not judge.mark(trained_ears.say(plant(text, fault, rng), tmp_path, voice), text)
    print(f"\nflite: {sum(tried.values())} faults, missed {dict(missed)}; {len(false)} false marks in {words} words")
    assert sum(missed.values()) <= (1 - FOUND) * sum(tried.values()), missed


def test_the_starter_voice(trained_whisper: Path, tmp_path: Path) -> None:
    judge, rng = Judge(trained_whisper), random.Random(2)
    tried = missed = marked = 0
    for number, text in enumerate(SENTENCES):
        whole, *spoken = speak([text, *(plant(text, fault, rng) for fault in FAULTS)], tmp_path, number)
        if judge.mark(whole, text):
            marked += 1
            continue
        tried += len(spoken)
        missed += sum(not judge.mark(samples, text) for samples in spoken)
    print(f"\nstarter voice: {tried} faults, {missed} missed; {marked} of {len(SENTENCES)} sentences marked as they are")
    assert tried and missed <= 0.1 * tried and marked <= 1


@pytest.mark.parametrize("voice", ["flite", "starter"])
def test_unseen_sentences(trained_whisper: Path, tmp_path: Path, voice: str) -> None:
    """The starter voice at times says a word once that is written twice."""
    judge, rng = Judge(trained_whisper), random.Random(3)
    missed, tried, false, words = Counter[str](), Counter[str](), list[tuple[str, list[Mark]]](), 0
    for number, text in enumerate(UNSEEN):
        texts = [text, *(plant(text, fault, rng, OTHERS_UNSEEN) for fault in FAULTS)]
        flite = (trained_ears.say(each, tmp_path, ("slt", "rms")[number % 2]) for each in texts)
        whole, *spoken = flite if voice == "flite" else speak(texts, tmp_path, number)
        words += len(text.split())
        false += [(text, marks)] if (marks := judge.mark(whole, text)) else []
        for fault, samples in zip(FAULTS, spoken, strict=True):
            tried[fault] += 1
            missed[fault] += not judge.mark(samples, text)
    print(
        f"\n{voice}, unseen: {sum(tried.values())} faults, missed {dict(missed)}; {len(false)} sentences of {words} words marked as they are"
    )
    assert sum(missed.values()) <= (1 - FOUND_UNSEEN) * sum(tried.values()), missed
    assert sum(len(marks) for _, marks in false) <= words / WORDS_A_MARK_UNSEEN, false


def test_old_words_are_no_faults(trained_whisper: Path, tmp_path: Path) -> None:
    """Nobody expects them, so that the recogniser writes others: 10 of 158 words were marked."""
    judge = Judge(trained_whisper)
    found = {text: judge.mark(next(speak([text], tmp_path, place)), text) for place, text in enumerate(OLD)}
    words = sum(len(text.split()) for text in OLD)
    print(f"\nold words: {sum(map(len, found.values()))} false marks in {words} words")
    assert sum(map(len, found.values())) <= 1, found


def speak(texts: Sequence[str], folder: Path, number: int) -> Iterator[Samples]:
    plan = decide(probe(), Need(kind="speech"), Choice(dtype="float32"), {})
    speaker, voice = loader.load(STARTER, plan), STARTER / "voices" / ("anna.ogg" if number % 2 else "brian.ogg")
    known = VoicePrompt(str(voice), json.loads(voice.with_suffix(".json").read_text())["transcript"])
    for place, text in enumerate(texts):
        job = folder / f"{number}-{place}"
        with applied(plan) as seam:
            run = speaker.run(SpeechRequest(f"[S1] {text}", voice=known, seed=7), Control(), seam, job)
            (part,) = [event for event in run if isinstance(event, PartDone)]
        samples, rate = sound.read(Path(part.path))
        yield sound.resample(samples, rate, 16_000)
