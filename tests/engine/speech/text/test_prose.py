"""Ordinary prose: its sentences stay whole where they fit, its layout becomes pauses, and what must be cut is cut where one breathes."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.engine.models.voice_limits import DIA, VoiceLimits, read_limits
from app.engine.speech.families.dia.voice_prompt import compose_text
from app.engine.speech.text.layout import BREAK_S, HEADING_S, PARAGRAPH_S, list_paragraphs
from app.engine.speech.text.script import ParsedScript, parse_script
from app.engine.speech.text.sentences import split_sentences
from app.engine.speech.text.turns import CLAUSE_S, SENTENCE_S, Turn, cut_sentence, estimate_seconds

STARTER = read_limits(Path(__file__).parents[4] / "assets" / "starter" / "voice")
LONG_LINE = "The harbour lay still that evening, and nobody who came down the steps of it could say"


def list_parts(text: str, limits: VoiceLimits = STARTER) -> list[tuple[float, str]]:
    return [(part.pause_before_s, part.text.removeprefix("[S1] ")) for part in parse_script(text, limits).parts]


@pytest.mark.parametrize(
    "text",
    [
        "He was 6 ft. 2 in. tall, and thin.|She was not.",
        "It rose in 3 h. 20 min. and lay on 5 yds. 2 ft. of cloth.|Nobody saw.",
        "Write to 12 Elm Ave. Apt. 4, Leeds.|We came on Mon. 3 Feb. from 10 Park Rd. Flat 3.|He paid £4. 10s. 6d. for 4 cwt. 3 qrs. 12 lbs. of it.",
        "Write to Springfield, Ill. 62704, or San Jose, Calif. 95110.|We came on Mon. Feb. 3 and left on Tues. March 4.|It was 98.6 deg. F. at noon.",
        "They live in Park Rd.|Nobody else does.",
        "It cost £4 10s. to mend.|It cost £4 10s. 6d. to buy.",
        "Go to example.com/a?b=1 now.|Write to me@home.org.|Then wait.",
        "J. R. R. Tolkien wrote it.|So did J. K. Rowling.|Take plan B.|The end.",
        "Take fruit, e.g. apples, i.e. Bramleys, approx. five.|Tom vs. Ann.|Then go.",
        "See p. 42 and vol. 2, fig. 3 and No. 42.|He said no.|Anna left.",
        "Acme Inc. sold it to Smith & Co. Ltd. in May.|Acme Inc.|The rest is known.",
        "At 5 p.m. they met.|At 5 p.m.|Then at 9 a.m. Monday it was over.",
        "Mr. Smith and Mrs. Jones of St. Ives saw Dr. Who on Main St.|The house was dark.",
        "The U.S. Army left the U.S.|The end.",
        'Well...|I see.|"No!"|"Yes?!"|She sighed... and left.',
        '"Who are you?" he asked.|"Who are you?" Anna asked.|"I am no one," I said.|"Oh!"|She left.',
        "1. Milk is cheap.|2. Eggs are not.",
        "IV. The ferry was late.|Louis XIV. was not.",
        "It is 3.5 km, at 10:30, in notes.txt of version 1.2.3.|It is.",
        "He said it (loudly!) and left.|(She did not.)|He came back.",
        'He asked: "Why?"|"Because."|"Oh."',
        "In 1990. 42 people came.".replace(". 4", ".|4"),
        "你好。|我是小明！|“你呢？”",
        "I slept. (laughs)|So did I.",
        "Sie mag z. B. Äpfel.|Er mag u. a. Birnen, d. h. nicht alle.|Er nicht.",
        "Das ist Hr. Müller aus Nr. 5.|Am 3. Oktober war ihr 20. Geburtstag.|Es war im 2. Stock.|Gut.",
        "Wir sind die 20.|Der Rest ging.|Das war 1990.|Heute nicht.",
        "She works in HR.|He is in Los Angeles, CA.|It took 1 hr.|Then: Questo è mio.|Prendi.|Er kam am 3.|Danach nicht.|Choose option b.|Adam knew.",
        "I am 20.|My brother is in apartment b.|Then he left.|They die 20.|Then nothing.|He had abs.|I saw him in 3.|April was cold.",
    ],
)
def test_sentences_end_where_they_end(text: str) -> None:
    assert split_sentences(text.replace("|", " ")) == text.split("|")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (  # a heading is no part of the sentence after it
            "CHAPTER ONE\n\nIt was a dark night.\n\nThe ferry was late.",
            [(0.0, "CHAPTER ONE."), (HEADING_S, "It was a dark night."), (PARAGRAPH_S, "The ferry was late.")],
        ),
        ("CHAPTER ONE\nIt was dark.\nIV\nIt was not.", [(0.0, "CHAPTER ONE."), (HEADING_S, "It was dark."), (HEADING_S, "four"), (HEADING_S, "It was not.")]),
        ("## Notes\nOne.\n\nThe Ferry\n\nTwo.", [(0.0, "Notes."), (HEADING_S, "One."), (HEADING_S, "The Ferry."), (HEADING_S, "Two.")]),
        ("Notes\n=====\nOne.\n\n* * *\n\nTwo.\n---\nThree.\n\n#\nFour.",
         [(0.0, "Notes."), (HEADING_S, "One."), (BREAK_S, "Two."), (BREAK_S, "Three."), (BREAK_S, "Four.")]),
        (  # lines of wrapped prose are no paragraphs
            f"{LONG_LINE}\nwhat it was. Nobody asked. The lamps of the ferry came nearer, one by\none.\n    It was late.",
            [(0.0, f"{LONG_LINE} what it was."), (SENTENCE_S, "Nobody asked. The lamps of the ferry came nearer, one by one."), (PARAGRAPH_S, "It was late.")],
        ),
        ('"Yes," he said.\n"No," she said.', [(0.0, "Yes, he said."), (PARAGRAPH_S, "No, she said.")]),
        ("Buy:\n1. Milk\n2. Eggs\nThen come home.", [(0.0, "Buy, one, Milk. two, Eggs. Then come home.")]),
        ("Roses are red,\nViolets are blue\nSugar is sweet", [(0.0, "Roses are red, Violets are blue, Sugar is sweet")]),
        ("One.\n\n(pause 2s)\n\nTwo.\n\n* * *", [(0.0, "One."), (2.0, "Two.")]),
        ("My nephew. Young Jean Luc. And who puts them out? He did not answer.",
         [(0.0, "My nephew. Young Jean Luc. And who puts them out? He did not answer.")]),
        ("It cost £4 10s. to mend. Well.", [(0.0, "It cost four pounds ten shillings to mend. Well.")]),
        ("[S1] One.\n\n[S2] Two.", [(0.0, "One. [S2] Two.")]),
    ],
)  # fmt: skip
def test_layout_and_sentences_make_parts(text: str, parts: list[tuple[float, str]]) -> None:
    assert list_parts(text) == parts


def test_a_break_at_the_end_of_a_turn_is_a_pause() -> None:
    assert [part.pause_before_s for part in parse_script("[S1] One.\n* * *\n[S2] Two.", STARTER).parts] == [0.0, BREAK_S]


@pytest.mark.parametrize(
    ("written", "limits", "read"),
    [
        ("One, two,", STARTER, ".."),
        ("One, two", STARTER, "."),
        ("One, two?", STARTER, "?"),
        ("One, two,", DIA, "One, two."),
        ("One; two;", DIA, "One; two."),
        ("One, two -", DIA, "One, two."),
        ('"One two."', DIA, '"One two."'),
        ("One. (laughs)", DIA, "One. (laughs)"),
    ],
)
def test_what_the_model_reads_ends_as_a_sentence(written: str, limits: object, read: str) -> None:
    given = compose_text((Turn(1, written),), limits)  # type: ignore[arg-type]
    assert given.endswith(read[-1]) and (limits is STARTER or given == f"[S1] {read}")
    assert "," not in given[-2:]


def test_a_sentence_as_long_as_the_voice_speaks_is_whole() -> None:
    wind = "The wind came off the fjord, smelling of salt, tar, and something sweeter, apples, perhaps, or rot."
    assert (0.0, wind) in list_parts(f"{wind} Somewhere a dog barked; nobody answered it, and it stopped again.")


@pytest.mark.parametrize(
    ("text", "spoken_s"),
    [
        ("Well.", 0.67),
        ("My nephew.", 1.05),
        ("When the clock in the hall struck seven.", 2.4),
        ("If the weather holds and the road is not washed away by then.", 3.8),
        ("He had been walking since the early morning, along the river and over the hill.", 4.9),
        ("Although nobody had told him what to expect from the people of the island, and he had read nothing of it.", 6.5),
    ],
)
def test_the_starter_voice_takes_as_long_as_is_forecast(text: str, spoken_s: float) -> None:
    """As measured: the mean of its eight voices. A short part takes longer than its words let expect."""
    (part,) = parse_script(text, STARTER).parts
    assert 1 / 1.2 < spoken_s / part.seconds < 1.2


def test_a_long_sentence_is_cut_where_one_breathes() -> None:
    text = (
        "He had walked since the early morning along the river and over the hill; nobody had told him what to expect of the people of the "
        "island, and when he saw the first of them he thought that they were sheep which somebody had forgotten to bring home."
    )
    pieces = [*cut_sentence(text, 80, 116, len)]
    assert pieces == [
        "He had walked since the early morning along the river and over the hill;",
        "nobody had told him what to expect of the people of the island,",
        "and when he saw the first of them he thought that they were sheep which somebody had forgotten to bring home.",
    ]
    parts = parse_script(text, STARTER).parts
    assert all(STARTER.part_aim_s * 0.4 <= part.seconds <= STARTER.part_most_s for part in parts)
    assert {part.pause_before_s for part in parts[1:]} == {CLAUSE_S}


LEDGER = "In the ledger she wrote, in her small upright hand, that the old harbour master still owed the widow {} for the mending of nets."


@pytest.mark.parametrize(
    "amount",
    [
        "£12 6s. 8d.", "$1,234.56", "123,456 people", "17 hours 45 minutes", "6 ft 11 in", "three hundred and fifty-two pounds and eight pence",
    ],
)  # fmt: skip
@pytest.mark.parametrize("voice", [STARTER, DIA])
def test_an_amount_is_not_cut(amount: str, voice: VoiceLimits) -> None:
    """Wherever the cuts come to lie; it was cut before "and eight pence"."""
    said = parse_script(f"[S1] It is {amount} now.", voice).parts[0].turns[0].text.removeprefix("It is ").removesuffix(" now.")
    for before in range(0, 90, 3):
        text = f"{'On that day ' * 9}"[-before:] + LEDGER.format(amount)
        turns = [turn.text for part in parse_script(text, voice).parts for turn in part.turns]
        assert any(said in each for each in turns), turns


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "He had always loved the slow, ceremonious manner in which the old priest lifted the silver cup of wine.",
            ["He had always loved the slow, ceremonious manner", "in which the old priest lifted the silver cup of wine."],
        ),
        (
            "Behind the coffin they walked at a slow, ceremonious pace past the houses, which were all shuttered.",
            ["Behind the coffin they walked at a slow, ceremonious pace past the houses,", "which were all shuttered."],
        ),
        (
            "At noon they came to the harbour, smelling of salt and tar, and sat on the wall with all the others.",
            ["At noon they came to the harbour, smelling of salt and tar,", "and sat on the wall with all the others."],
        ),
    ],
)
def test_a_phrase_is_cut_at_its_end(text: str, pieces: list[str]) -> None:
    assert [*cut_sentence(text, 52, 80, len)] == pieces


@pytest.mark.parametrize("voice", [STARTER, DIA])
def test_no_word_is_lost_and_no_part_too_long(voice: VoiceLimits) -> None:
    rng = random.Random(3)
    bits = [
        "and ",
        "the ",
        "house",
        ", ",
        ". ",
        "; ",
        "\n",
        "\n\n",
        "Mr. ",
        '"',
        "Who? ",
        "* * *\n",
        "CHAPTER II\n",
        "1. ",
        "A ",
        "x" * 90,
        "(laughs) ",
    ]
    for _ in range(150):
        text = "".join(rng.choices(bits, k=80))
        checked: ParsedScript = parse_script(text, voice)
        said = " ".join(part.text for part in checked.parts)
        for word in ("house", "Who", "and"):
            assert said.count(word) == text.count(word)
        blanks_s = 0.2  # those between sentences
        for part in checked.parts:
            assert voice.silence_s + sum(estimate_seconds(turn.text, voice) for turn in part.turns) <= voice.part_most_s + blanks_s


def test_dia_gets_no_paragraph_that_it_cannot_speak_alone() -> None:
    text = (
        '"Yes."\n\n"No."\n\n'
        + "The ferry came and went, and nobody who saw it that night could say where to. " * 2
        + "\n\n* * *\n\nThe end."
    )
    assert list_parts(text, DIA)[0][1].startswith('"Yes." "No." The ferry')
    assert list_parts("CHAPTER ONE\n\nIt was a dark night.", DIA) == [(0.0, "CHAPTER ONE. It was a dark night.")]
    assert list_parts(text, replace(DIA, part_least_s=0.0))[1] == (PARAGRAPH_S, '"No."')


def test_paragraphs_keep_what_is_written() -> None:
    paragraphs, after_s = list_paragraphs("One\ntwo.\n\nThree.\n\n***", False)
    assert [(each.text, each.pause_before_s) for each in paragraphs] == [("One two.", 0.0), ("Three.", PARAGRAPH_S)]
    assert after_s == BREAK_S


@pytest.mark.slow
@pytest.mark.parametrize(
    "bit",
    [
        *(". ", ".(a) ", "1. ", "x\n", "IV\n", "word "),
        *(
            pytest.param(bit, marks=pytest.mark.slow)
            for bit in ("a. ", ".", "Ab. ", "(a) ", "\u3002", '."', "* * *\n", "Yes.\n\n", "A B C ", "-", ", ", "##")
        ),
    ],
)
def test_a_long_text_takes_time_in_proportion(bit: str) -> None:
    def seconds(count: int) -> float:
        begun = time.thread_time()  # the process may have others at work
        parse_script(bit * (count // len(bit)) + str(count), STARTER)
        return time.thread_time() - begun

    assert min(seconds(20_000), seconds(20_001)) < 10 * min(seconds(4_000), seconds(4_001)) + 0.1
