"""Scripts: what is said about them, and how they are split. Nothing may be lost, whatever is typed."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.models.voice_limits import DIA, VoiceLimits, read_limits
from app.engine.speech.families.dia.facts import read_recommended
from app.engine.speech.text.script import parse_script, require_speakable
from app.engine.speech.text.turns import Turn, estimate_seconds

FOX = "The quick brown fox jumps over the lazy dog; nobody knows why. "
STARTER = replace(
    DIA, name="Starter", carries=False, part_least_s=0.0, part_aim_s=6.0, nonverbals=frozenset(),
    letters=Path("letters.bin"),
)  # fmt: skip


def keys(text: str, limits: VoiceLimits = DIA) -> dict[str, str]:
    return {problem.sentence.key: problem.severity for problem in parse_script(text, limits).problems}


def test_a_good_script_has_no_problems() -> None:
    text = "[S1] Did you hear the rain last night? It kept me awake for hours. [S2] I slept right through it. (laughs)"
    checked = parse_script(text)
    assert checked.problems == ()
    assert [part.text for part in checked.parts] == [text]
    assert checked.parts[0].turns[1] == Turn(2, "I slept right through it. (laughs)")
    assert 5 < checked.seconds_estimate < 9


@pytest.mark.parametrize(
    ("text", "key", "severity"),
    [
        ("[S1] One. [S3] Two.", "script.speakers", "fatal"),
        ("[Speaker 12] One.", "script.speakers", "fatal"),
        ("[s1] One. [S2] Two.", "script.tags", "note"),
        ("[ S1 ] One. [speaker 2] Two.", "script.tags", "note"),
        ("Nobody's line. [S2] Mine.", "script.no-tag", "note"),
        ("[S1] One. [S1] Two.", "script.alternate", "note"),
        ("[S1] “One”.", "script.typographic", "note"),
        ("[S1] 漢字", "script.not-english", "warning"),
        ("[S1] One [applauds].", "script.square", "warning"),
        ("[S1] One (waves).", "script.nonverbal", "warning"),
        ("[S1] One (pause soon) two.", "script.pause", "warning"),
        ("[S1] One (pause 500s) two.", "script.pause-long", "warning"),
        ("[S1] Hi.", "script.short", "warning"),
        ("[S1] [S2] (pause 1s) ...", "script.no-words", "fatal"),
        ("[S1] " + FOX * 200, "script.long", "note"),
    ],
)
def test_problems(text: str, key: str, severity: str) -> None:
    assert keys(text).get(key) == severity


def test_what_is_right_raises_no_word() -> None:
    for text, key in (
        ("[S1] One. [S2] Two.", "script.alternate"),
        ("[S1] One. [S2] Two.", "script.tags"),
        ("[S1] One (sighs) two.", "script.nonverbal"),
        ("[S1] I came (rather late, as always) and saw.", "script.nonverbal"),
        ("[S1] One (pause) two (pause 250 ms) three (pause 1.5 seconds).", "script.pause"),
        ("[S1] It's “Äpfel” as in Überlingen.", "script.not-english"),
        ("[S1] [S2] One.", "script.no-tag"),
        ("Plain prose, as a novel has it. (pause 1s) More of it.", "script.no-tag"),
    ):
        assert key not in keys(text)


@pytest.mark.parametrize(("speakers", "told"), [(2, "has 2 speakers"), (3, "has 3 speakers")])
def test_a_voice_of_any_number_of_speakers_says_whose_lines_it_has(speakers: int, told: str) -> None:
    limits = replace(DIA, speakers=speakers)
    (wrong,) = parse_script("[S1] One. [S9] Two.", limits).fatal
    assert told in str(wrong.sentence) and str(wrong.sentence).endswith(f"Give these lines to {', '.join(limits.tags)}.")
    notes = {each.sentence.key: str(each.sentence) for each in parse_script("[S1] One [applauds]. [s2] Two.", limits).problems}
    assert all(", ".join(limits.tags) in notes[key] for key in ("script.square", "script.tags"))


def test_pauses_last_as_long_at_any_speed() -> None:
    checked = parse_script("[S1] " + FOX * 3 + "(pause 10s) That is all.")
    spoken_s = checked.estimate_seconds(1.0) - 10
    assert checked.estimate_seconds(0.5) == pytest.approx(10 + 2 * spoken_s)
    assert checked.estimate_seconds(2.0) == pytest.approx(10 + spoken_s / 2)


def test_sounds_in_square_brackets_are_meant() -> None:
    assert parse_script("[S1] One [Laughs] two.").parts[0].text == "[S1] One (laughs) two."


def test_a_line_of_a_third_speaker_is_not_given_to_the_first() -> None:
    (part,) = parse_script("[S1] One. [S3] Two. [S2] Three.").parts
    assert [turn.speaker for turn in part.turns] == [1, 3, 2]


def test_a_number_without_end_is_no_speaker() -> None:
    assert parse_script(f"[S1] One. [S{'9' * 5000}] Two.").parts


def test_typographic_signs_become_plain() -> None:
    assert parse_script("[S1] “It’s” one…\u00a0two — three.").parts[0].turns[0].text == '"It\'s" one... two - three.'


def test_pauses_part_the_script() -> None:
    checked = parse_script("(pause 1s) [S1] One. (pause 250ms) (pause 0.5s) Two. [S2] Three. (pause 2s)")
    assert [(part.text, part.pause_before_s) for part in checked.parts] == [("[S1] One.", 1.0), ("[S1] Two. [S2] Three.", 0.75)]
    assert checked.pause_after_s == 2.0
    for limits in (DIA, STARTER):
        others = parse_script("[S1] One. [pause 1s] Two. (Pause: 2 s) Three. [Pause] Four. [pause, 250ms] Five.", limits)
        assert [part.pause_before_s for part in others.parts] == [0.0, 1.0, 2.0, 0.5, 0.25], "as other programs write it"
        assert {each.sentence.key for each in others.problems} <= {"script.short"}


def test_turns_stay_whole_where_they_fit() -> None:
    text = " ".join(f"[S{1 + index % 2}] {FOX.strip()}" for index in range(12))
    checked = parse_script(text)
    assert len(checked.parts) > 2
    for part in checked.parts:
        assert all(turn.text == FOX.strip() for turn in part.turns)
        assert DIA.part_least_s <= part.seconds <= DIA.part_most_s


def test_a_long_turn_is_split_between_sentences() -> None:
    checked = parse_script("[S1] " + FOX * 30)
    for part in checked.parts:
        assert part.turns[0].text.endswith(".")
        assert DIA.part_least_s <= part.seconds <= DIA.part_most_s
    assert " ".join(part.turns[0].text for part in checked.parts) == (FOX * 30).strip()


def test_one_turn_over_the_byte_limit_is_split() -> None:
    text = "[S1] " + "word " * 300
    assert len(text) > DIA.bytes_most
    checked = parse_script(text)
    assert not checked.fatal
    assert max(len(part.text.encode()) for part in checked.parts) <= DIA.bytes_most // 2
    assert "".join(part.turns[0].text for part in checked.parts).count("word") == 300


@pytest.mark.slow
def test_a_hundred_thousand_letters() -> None:
    for text in ("[S1] " + FOX * 1600, "a" * 100_000, "[S1] a [S2] b " * 7000, "(" * 100_000 + "x", "[" * 100_000 + "x"):
        began_s = time.thread_time()
        checked = parse_script(text)
        assert time.thread_time() - began_s < 5  # half a second on a quiet machine; what it must not be is quadratic
        assert max(part.seconds for part in checked.parts) <= DIA.part_most_s
        assert max(len(part.text.encode()) for part in checked.parts) <= DIA.bytes_most // 2


def letters(text: str) -> str:
    return re.sub(r"[\s]", "", text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*"ab.,!? ", "[S1] ", "[S2] ", "word ", "Ünï ", FOX, "x" * 300, "(laughs) ", "漢"]), max_size=60))
def test_nothing_is_lost_and_everything_fits(pieces: list[str]) -> None:
    text = "".join(pieces)
    checked = parse_script(text)
    spoken = "".join(turn.text for part in checked.parts for turn in part.turns)
    chunks = re.split(r"\[S[12]\]", text)
    assert letters(spoken) == letters("".join(each for each in chunks if re.search(r"\w", each)))
    for part in checked.parts:
        assert part.seconds <= DIA.part_most_s
        assert len(part.text.encode()) <= DIA.bytes_most // 2
        assert all(one.speaker != other.speaker for one, other in zip(part.turns, part.turns[1:], strict=False))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[S1] One (laughs).", "script.reads-sound"),
        ("[S1] One (waves).", ""),
        ("[S1] One (Theme music fades).", "script.reads-sound"),
        ("[S1] One (SFX: a door).", "script.reads-sound"),
        ("[S1] One (the music was loud that night).", ""),
        ("[S1] One [applauds].", "script.square-plain"),
        ("[S1] Two 漢字.", "script.skipped"),
        ("[S1] “One” – €2, ﬁne, café: 20°C…", ""),
    ],
)
def test_a_voice_that_reads_sounds_tells_what_it_reads_aloud_and_skips(text: str, key: str) -> None:
    assert keys(text, STARTER) == ({key: "warning"} if key else {})


def test_a_script_in_another_writing_is_not_called_empty() -> None:
    assert keys("小明：今天天气真好。", STARTER) == {"script.no-english": "fatal"}, (
        "not each of its characters as well, nor who speaks first"
    )
    assert keys("[S1] ...", STARTER)["script.no-words"] == "fatal"


def test_a_voice_that_reads_sounds_gets_words_alone() -> None:
    checked = parse_script("[S1] Hello (laughs)! [S2] I see 2 elephants; 21 mice.", STARTER)
    assert checked.parts[0].text == "[S1] Hello, laughs! [S2] I see two elephants, twenty one mice."


def test_limits_come_from_the_folder(tmp_path: Path) -> None:
    config = {
        "encoder_config": {"max_position_embeddings": 300},
        "decoder_config": {"max_position_embeddings": 404},
        "delay_pattern": [0, 1, 2, 3],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "config.json").write_text(json.dumps({"sampling_rate": 16000, "downsampling_ratios": [4, 10, 10]}))
    plain = read_limits(tmp_path)
    assert (plain.bytes_most, plain.rate, plain.frame_rate, plain.delay) == (300, 16000, 40.0, 3)
    assert plain.seconds_most == 10.0
    assert plain.part_most_s == 5.0  # the other half is for the part before
    starter = {"letters": "letters.bin", "generation": {"temperature": 0.8, "top_k": 7}, "name": "Small", "part_most_s": 7}
    (tmp_path / "starter.json").write_text(json.dumps(starter))
    small = read_limits(tmp_path)
    assert (small.name, small.letters, small.part_most_s, small.carries) == ("Small", tmp_path / "letters.bin", 7, False)
    assert small.settings["temperature"] == 0.8 and small.settings["guidance"] == DIA.settings["guidance"]
    assert small.settings["cfg_filter"] == 7 and read_recommended({"do_sample": False, "temperature": 1.2})["temperature"] == 0


def test_a_laugh_takes_its_time() -> None:
    assert estimate_seconds("Ha (laughs) ha") > estimate_seconds("Ha ha") + 0.9


def test_a_script_is_parsed_once_for_each_voice() -> None:
    """Whoever asks again, with limits read anew from the same folder, gets the value that is there."""
    slow = replace(DIA, bytes_per_s=3.0)
    first = parse_script("[S1] Once is enough.", replace(DIA, ready={"a": "b"}))
    assert require_speakable("[S1] Once is enough.", replace(DIA, ready={"a": "b"})) is first
    assert parse_script("[S1] Once is enough.", slow).seconds_estimate > 3 * first.seconds_estimate
    assert parse_script("[S1] Once is enough.", replace(DIA, letters=Path("letters.bin"))) is not first


def test_a_last_part_that_is_too_short_takes_from_the_one_before() -> None:
    """At 14.5 bytes a second the turns last 6, 6 and 4 s: the first two fill a part, and 4 s are too short for another."""
    text = " ".join(f"[S{speaker}] {'x' * length}" for speaker, length in ((1, 87), (2, 87), (1, 58)))
    assert [part.seconds for part in parse_script(text, replace(DIA, part_most_s=15.9)).parts] == [6.0, 10.0]
    assert [part.seconds for part in parse_script(text, replace(DIA, part_most_s=16.0)).parts] == [16.0]
