"""Scripts with a cast: who speaks by their tags, and the parts of each voice model."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.text.cast_script import choose_cast, parse_request
from app.engine.speech.text.cast_tags import find_tags, list_names
from app.engine.speech.text.known_voices import name_actors
from app.engine.speech.text.script import ParsedScript, parse_script
from app.engine.speech.text.turns import ScriptPart, Turn, group_speakers

POCKET = replace(
    DIA, name="Pocket TTS", speakers=4, speakers_a_part=1, part_least_s=0.0, carries=False, ready={"a": "Ann", "b": "Bob", "c": "Cy"}
)
LIMITS = {"dia": DIA, "pocket": POCKET}


def parse(text: str, *cast: Actor, model: str = "dia", voice: VoicePrompt | None = None) -> ParsedScript:
    return parse_request(SpeechRequest(text, model, voice, cast=cast), LIMITS.__getitem__)


def words(parsed: ParsedScript) -> list[tuple[str, str]]:
    return [(part.model, part.text) for part in parsed.parts]


def told(parsed: ParsedScript) -> str:
    return " ".join(str(problem.sentence) for problem in parsed.problems)


@pytest.mark.parametrize(
    ("text", "known", "names"),
    [
        ("[Anna] Hi. [Pause 1s] Well. [Pause] So.", (), ["Anna"]),
        ("[Anna] Hi. [Ben] Hello.", (), ["Anna", "Ben"]),
        ("It was dark. [Anna] Hi.", (), ["Narrator", "Anna"]),
        ("Hello. [S2] Hi.", (), ["S1", "S2"]),
        ("[speaker 3] Hi. [s1] Ho.", (), ["S3", "S1"]),
        ("[Anna] Hi.\nBen: not a name yet.\nANNA: Ho.", (), ["Anna"]),
        ("[Anna] Hi.\nBen: a name.\n\uff22en\uff1a no.", ("Ben",), ["Anna", "Ben"]),
        ("Ben: Hi.\nAnna: Ho.", ("anna", "Ben"), ["Ben", "anna"]),
        ("Note: nothing.\n[laughs] Ha. [Laughs] Ha. [whispers] Ho. [Pause] Hm.", (), []),
        ("[Illustration]\n\nThe end.", (), []),
        ("He left.[1] She stayed. [23] It rained. [*] It does.", (), []),
        ("when [King] Henry came. He said [Sic] so.", (), []),
        ("when [King] Henry came.", ("King",), ["Narrator", "King"]),
        ("The judge said \u201c[Congress] shall make no law.\u201d \u201c[T]he right,\u201d he added", (), []),
        ("Il dit : \u00ab[Le] Roi\u00bb", (), []),
        ('See [Chapter One] "The Beginning" for more.', (), []),
        ('He said [Sic] "that".', (), []),
        ("a list: x; [Note] y \u2013 [Note] z", (), []),
        ('[Anna] Hi.\n[Ben] He pressed [Enter] "twice".', (), ["Anna", "Ben"]),
        ('[Narrator] Anna said [Anna] \u201c[T]his.\u201d \u2013 [Narrator] Ben said [Ben] "That."', (), ["Narrator", "Anna", "Ben"]),
        ("[\u5c0f\u660e] \u4f60\u597d\u3002", (), ["\u5c0f\u660e"]),
        ("[Old Tom of the Hill] Ay.", (), []),
        ("\u201cWell.\u201d [Mary Ann] Yes.", (), ["Narrator", "Mary Ann"]),
    ],
)  # fmt: skip
def test_names_are_what_is_tagged_as_one(text: str, known: tuple[str, ...], names: list[str]) -> None:
    assert list(list_names(text, known)) == names


def test_tags_are_found_in_linear_time() -> None:
    began_s = time.monotonic()
    for text in ("[Anna] " * 20_000, "[" * 200_000, "[ " * 100_000, "A" * 200_000, "Anna:" * 40_000, "[A\n" * 60_000, " " * 200_000 + ":"):
        find_tags(text, ("Anna",))
    assert time.monotonic() - began_s < 10


def test_a_script_of_a_voices_own_speakers_is_split_as_ever() -> None:
    text = "[S1] Hello there. [S2] Hi. [S1] How are you?"
    assert parse(text) is parse_script(text, DIA) and choose_cast(text, "dia", (Actor("Zoe"),), LIMITS.__getitem__) == ()
    assert parse(text, Actor("s2", pace=1.2)).actors


def test_parts_keep_names_models_and_pauses() -> None:
    text = "[Anna] One. [Ben] Two. (pause 2s)\n[Anna] Three. [Carl] (pause 1s) [Ben] Four."
    parsed = parse(text, Actor("Ben", model="pocket", volume_db=-3.0))
    assert words(parsed) == [("dia", "[Anna] One."), ("pocket", "[Ben] Two."), ("dia", "[Anna] Three."), ("pocket", "[Ben] Four.")]
    assert [part.pause_before_s for part in parsed.parts] == [0.0, 0.3, 2.0, 1.0] and parsed.parts[1].volume_db == -3.0
    assert parsed.seconds_estimate == pytest.approx(sum(part.seconds + part.pause_before_s for part in parsed.parts))
    assert [each.name for each in parsed.actors] == ["Anna", "Ben", "Carl"]


def test_dia_keeps_two_voices_at_a_time_and_says_what_that_costs() -> None:
    line = "This line is long enough to be a part by itself, I should think, or nearly."
    scene = f"[Anna] {line} [Ben] {line} [Carl] {line} [Dora] Short. [Anna] {line}"
    parsed = parse(scene)
    assert all(len(part.speakers) <= 2 for part in parsed.parts) and len(parsed.parts) >= 3
    assert "keeps two voices at a time" in told(parsed) and "shorter than 5 s" not in told(parse(f"[Anna] {line} [Ben] {line}"))
    alone = parse(scene, model="pocket")
    assert all(len(part.speakers) == 1 for part in alone.parts) and "two voices" not in told(alone)
    assert "may come out as noise" in told(parse(f"[Anna] {line} [Ben] {line} [Carl] Oh.", Actor("Carl", pace=1.1)))


def test_several_models_and_one_voice_for_many_are_said() -> None:
    assert "Dia, Pocket TTS" in told(parse("[Anna] One. [Ben] Two.", Actor("Ben", model="pocket")))
    single = VoiceLimits(name="Phonon", speakers=1, speakers_a_part=1, carries=False, imitates=False, part_least_s=0.0)
    found = parse_request(SpeechRequest("[Anna] One. [Ben] Two.", "x"), lambda _: single)
    assert "Phonon has one voice" in told(found) and len(found.parts) == 2


def test_the_chosen_voice_is_the_first_ones_who_has_none() -> None:
    voice, own = VoicePrompt("a.wav", "Oh."), VoicePrompt("b.wav", "Ah.")
    actors = parse("[Anna] One. [Ben] Two. [Carl] Three.", Actor("Anna", own), Actor("Ben", model="pocket"), voice=voice).actors
    assert [each.voice for each in actors] == [own, None, voice]


def test_a_script_of_tags_alone_is_refused() -> None:
    assert parse("[Anna] (pause 1s) [S3]").fatal


def test_who_has_no_voice_chosen_gets_one_that_nobody_has() -> None:
    assert name_actors([None, ("b",), None, ("z",), None], POCKET) == ("Ann", "Bob", "Cy", "", "Bob")
    assert name_actors([None] * 6, POCKET) == ("Ann", "Bob", "Cy", "Cy", "Bob", "Cy"), "nobody has the narrator's"
    assert name_actors([None, None], POCKET)[0] == name_actors([None, ("c",)], POCKET)[0], (
        "it hangs on no other's choice while there are enough"
    )
    assert name_actors([None, ("a",)], POCKET) == ("Bob", "Ann"), "but a chosen voice is taken"
    assert name_actors([None, ("a",)], DIA) == ("", "")


def test_speakers_of_one_part_are_of_one_group() -> None:
    def group(*speakers: str) -> list[int]:
        return group_speakers([ScriptPart(tuple(Turn(int(each), "Hi.") for each in part), 1.0) for part in speakers])

    assert group("1", "2", "1", "3") == [1, 2, 1, 3]
    assert group("3", "12", "1", "2", "4") == [3, 1, 1, 1, 4]
    assert group("2", "4", "43", "32", "1") == [2, 2, 2, 2, 1], "also by way of a third one"
    assert group() == []
