"""Guesses at who speaks in a story, which a person confirms."""

from __future__ import annotations

from itertools import chain

import pytest

from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_limits import DIA
from app.engine.speech.text.cast_script import parse_request
from app.engine.speech.text.cast_tags import find_tags
from app.engine.speech.text.said_by import count_quotes, drop_tags, find_quotes, find_same, guess_speakers, put_tags, tag_chapter
from tests.engine.speech.text.test_said_passages import PASSAGES, find_answers

STORY = """It was late. \u201cCome in,\u201d said Anna, \u201cand sit down.\u201d She waited.
\u201cThank you,\u201d Ben replied. \u201cIt is cold.\u201d
Ben whispered: "Very." He laughed.
"I know," he said."""


def put_in(text: str) -> str:
    return put_tags(text, guess_speakers(text))


def test_quotes_go_to_whom_the_words_beside_them_name_and_the_rest_to_the_narrator() -> None:
    assert put_in(STORY) == (
        "It was late. [Anna] \u201cCome in,\u201d [Narrator] said Anna, [Anna] \u201cand sit down.\u201d [Narrator] She waited.\n"
        "[Ben] \u201cThank you,\u201d [Narrator] Ben replied. [Ben] \u201cIt is cold.\u201d\n"
        '[Narrator] Ben whispered: [Ben] "Very." [Narrator] He laughed.\n"I know," he said.'
    )
    parsed = parse_request(SpeechRequest(put_in(STORY), "dia"), lambda _: DIA)
    assert [each.name for each in parsed.actors] == ["Narrator", "Anna", "Ben"], "and the script has these speakers"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "He left.",
        '"Yes," said Anna.',
        '"Yes," he said. "No," she said.',
        "[Anna] Hi. \u201cYes,\u201d said Ben. \u201cNo,\u201d said Ben.",
    ],
)
def test_what_names_nobody_or_once_is_left_alone(text: str) -> None:
    assert not guess_speakers(text)


def test_of_a_book_all_names_are_counted_and_only_those_that_were_confirmed_get_tags() -> None:
    chapters = [STORY, "\u201cNo,\u201d said Ben.", "\u201cPerhaps,\u201d said Carl.", "[Anna] Hers."]
    assert count_quotes(chapters)[0] == {"Ben": 4, "Anna": 2}, "who speaks once may be no name"
    assert put_tags(chapters[1], find_quotes(chapters[1], {"Ben"})) == "[Ben] \u201cNo,\u201d [Narrator] said Ben."
    assert not find_quotes(chapters[1], {"Anna"}) and not find_quotes(chapters[3], {"Anna"}), "a chapter with tags keeps its own"
    told = put_tags(STORY, find_quotes(STORY, {"Anna"}))
    assert "[Ben]" not in told and told.count("[Anna]") == 2
    assert "[Narrator] She waited.\n\u201cThank you" in told, "Ben's words are the narrator's then"


def test_who_speaks_elsewhere_in_the_book_is_known_in_a_chapter() -> None:
    chapter = "“It rains,” said Anna.\n\n“Does it?” Ben asked."
    assert "[Ben]" not in tag_chapter(chapter, {"Anna", "Ben"})
    assert "[Ben] “Does it?”" in tag_chapter(chapter, {"Anna", "Ben"}, known={"Anna", "Ben"})


def test_a_quote_that_goes_on_in_the_next_paragraph_goes_on_behind_its_clause() -> None:
    assert put_in("“It rained,” said Ben. “All of it.\n\n“And then,” he went on. “I left.”").count("[Ben]") == 4


def test_a_quote_that_ends_with_one_within_it_is_speech() -> None:
    assert put_in("“She said,” said Ben, who had it from her, “‘a man I know.’” He left.").count("[Ben]") == 2


def test_who_speaks_too_seldom_for_a_voice_still_tells_who_is_another_one() -> None:
    said = ["Mary", "Anne", "Anne", "Mary Anne", "Mary Anne"]
    counts, same = count_quotes([story := "\n".join(f"“No,” said {name}." for name in said)])
    assert counts == {"Anne": 2, "Mary Anne": 2}
    assert [each.name for each in find_quotes(story, counts, same) if each.name != "Narrator"] == ["Anne", "Anne", "Mary Anne", "Mary Anne"]


def test_a_short_name_is_the_only_full_one_that_it_begins_or_ends() -> None:
    story = [
        "\u201cNo,\u201d said Dr. Okonkwo.",
        "\u201cWell,\u201d said Okonkwo.",
        "\u201cYes,\u201d Anna said.\n\u201cYes,\u201d said Anna Berg.",
    ]
    assert count_quotes(story)[0] == {"Dr. Okonkwo": 2, "Anna Berg": 2}
    same = count_quotes(story)[1]
    assert put_tags(story[1], find_quotes(story[1], {"Dr. Okonkwo"}, same)) == "[Dr. Okonkwo] \u201cWell,\u201d [Narrator] said Okonkwo."
    assert put_in(story[2]).count("[Anna Berg]") == 2, "a script tells so itself"
    assert not find_same(["Mary", "Anne", "Mary Anne"]), "three speakers"
    assert find_same(["Mary", "Mary Anne", "Mary Ann"]) == {"Anne": "Mary Anne", "Ann": "Mary Ann"}, "Mary may be either"
    assert find_same(["Okonkwo", "Ada Okonkwo", "Dr. Ada Okonkwo"])["Okonkwo"] == "Dr. Ada Okonkwo"
    assert "Berg" not in find_same(["Berg", "Herr von Berg"]), "what follows a particle is a place, or another one"
    both = ["\u201cNo,\u201d said Mr. Voss.", "\u201cNo,\u201d said Mrs. Voss.", "\u201cNo,\u201d said Voss."] * 2
    assert count_quotes(both)[0] == {"Mr. Voss": 2, "Mrs. Voss": 2, "Voss": 2}, "who knows which of them"


def test_a_daughter_is_not_two_because_her_fathers_surname_is_hers() -> None:
    """Amara and Amara Nwosu had a voice each, where Nwosu alone was said of Dr. Nwosu once."""
    names = ["Amara", "Dr. Nwosu", "Amara Nwosu", "Nwosu", "Amara"]
    counts, same = count_quotes(f"“No,” said {name}." for name in names)
    assert counts == {"Amara Nwosu": 3, "Dr. Nwosu": 2}
    assert same["Amara"] == "Amara Nwosu" and same["Nwosu"] == "Dr. Nwosu"
    assert find_same(["Ada", "Ada Okonkwo", "Okonkwo", "Dr. Ada Okonkwo"])["Ada"] == "Dr. Ada Okonkwo"


@pytest.mark.parametrize(("short", "full"), [("Mary", "Mary Anne"), ("Berry", "Mrs. Berry")])
def test_who_answers_somebody_is_another_one(short: str, full: str) -> None:
    """Mary had the voice of her cousin Mary Anne, and Berry that of his wife."""
    talk = "\n\n".join(f"“A man,” said {short}.\n\n“A woman,” {full} said." for _ in range(3))
    counts, same = count_quotes([talk, f"“No,” said {short}."])
    assert counts == {short: 4, full: 3} and short not in same
    assert {each.name for each in guess_speakers(talk)} == {short, full, "Narrator"}, "also in a script"
    told = talk.replace("\n\n", "\n\nIt rained.\n\n")
    assert count_quotes([told])[0] == {full: 6}, "nobody is answered"
    goes_on = f"“It rained,” said {full}. “All of it.\n\n“And then,” {short} said, “I left.”\n\nIt rained.\n\n"
    assert short not in dict(count_quotes([goes_on * 3])[0]), "nor where a quote goes on in the next paragraph"


def test_who_answers_somebody_is_not_the_same_by_way_of_a_third_name() -> None:
    """Okonkwo had the voice of his wife, as he did not answer Ada Okonkwo, only Mrs. Ada Okonkwo."""
    alone = "\n\nIt rained.\n\n“No,” said Ada Okonkwo."
    talk = "\n\n".join("“A man,” said Okonkwo.\n\n“A woman,” said Mrs. Ada Okonkwo." for _ in range(2)) + 2 * alone
    assert count_quotes([talk])[0] == {"Mrs. Ada Okonkwo": 4, "Okonkwo": 2}
    names, answered = ["Okonkwo", "Ada Okonkwo", "Mrs. Ada Okonkwo"], frozenset(("Okonkwo", "Mrs. Ada Okonkwo"))
    assert find_same([*names, "Dr. Okonkwo"], {answered})["Okonkwo"] == "Dr. Okonkwo"
    assert "Okonkwo" not in find_same(names, {frozenset(names[:2])})
    neither = find_same(["Mary", "Smith", "Mary Anne Smith"], {frozenset(("Mary", "Smith"))})
    assert not {"Mary", "Smith"} & {*neither}, "one of them is Mary Anne Smith, nobody knows which"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("„Ja“, sagte Ben. „Komm“, sagte Ben zu Anna. „Nein“, sagte Anna. „Doch“, rief Ben.", "Ben:Ja Ben:Komm Anna:Nein Ben:Doch"),
        ("„Ja“, sagte Herr Berg zu Frau Berg.", "Herr Berg:Ja"),
        ("—Sí —dijo la madre de Ana.\n—No —dijo Ana.", "Ana:No"),
        ("— Oui, dit la mère de Paul.\n— Non, dit Paul.", "Paul:Non"),
        ("«Sì», disse la madre di Marco. «No», disse Marco.", "Marco:No"),
        ("„Ja“, sagte Herr Professor Doktor Schmidt.", "Doktor Schmidt:Ja"),
        ("“Yes,” said Rev. Dr. Martin Luther. “No,” said General Sir Arthur Wellesley.", "Dr. Martin Luther:Yes Sir Arthur Wellesley:No"),
        ("„Ja“, sagte Prinzessin Maria von Hohenzollern-Sigmaringen.", ""),
        ("« Oui », dit la comtesse de Ségur.", "Comtesse de Ségur:Oui"),
    ],
)
def test_a_name_is_read_to_its_end_and_no_further(text: str, answer: str) -> None:
    assert find_answers(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("„Ja“, rief Alles.", ""),
        ("“Yes,” said Well. “No,” said Monday.", ""),
        ("„Ja“, sagte Montag früh Anna.", ""),
        ("“No,” said Friday.", "Friday:No"),
        ("„Komm“, bat Ben Anna. „Nein“, rief Ben Anna zu.", "Ben:Komm Ben:Nein"),
        ("„Komm“, rief Anna Berg und ging. „Nein“, sagte Anna Berg.", "Anna Berg:Komm Anna Berg:Nein"),
        ("„Ja“, rief Ben und Anna. „Nein“, rief Herr Ben.", "Herr Ben:Nein"),
        ("何处说：“好。”\n李雷说：“好。”", "李雷:好"),
        ('Anna asked if Ben said "yes."', ""),
        ('Anna said as she laughed: "Yes."', "Anna:Yes"),
    ],
)
def test_what_is_no_speakers_name_is_none(text: str, answer: str) -> None:
    assert find_answers(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('"Go," said Anna, "now." Carl laughed. "No."', "Anna:Go Anna:now"),
        ("“Go,” said Anna, “now.” Mr. Brown nodded. “No.”", "Anna:Go Anna:now"),
        ("“Go,” said Anna, “now.” Then Mr. Brown nodded. “No.”", "Anna:Go Anna:now"),
        ("“Yes,” said Anna. The man nodded. “No.”", "Anna:Yes"),
        ("„Ja“, sagte Anna. Der Mann nickte. „Nein.“", "Anna:Ja"),
        ("« Oui », dit Anna. L’homme sourit. « Non. »", "Anna:Oui"),
        ("“Go,” said Anna, “now.” Anna laughed. “Or not.” She sat down. “No.”", "Anna:Go Anna:now Anna:Or Anna:No"),
        ("“Go!” cried Anna. Her hand shook. “Now!”", "Anna:Go Anna:Now"),
        ("„Ja“, sagte Herr von Berg.\n„Nein“, rief Anna. Sie kam von draußen. „Doch.“", "Herr von Berg:Ja Anna:Nein Anna:Doch"),
    ],
)
def test_a_quote_after_somebody_else_is_not_given_to_whoever_spoke_before(text: str, answer: str) -> None:
    assert find_answers(text) == answer


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ("晓明笑着说：“请坐。”", "李晓明:请坐"),
        ("“请坐，”晓明说。", "李晓明:请坐"),
        ("“请坐，”晓月说。", ""),
        ("王晓明说：“我走了。”\n晓明说：“请坐。”", "王晓明:我走了 晓明:请坐"),
    ],
)
def test_a_chinese_given_name_is_the_only_full_one_that_ends_so(told: str, answer: str) -> None:
    assert find_answers(f"李晓明说：“你好。”\n{told}") == f"李晓明:你好 {answer}".strip()


@pytest.mark.parametrize(
    "told",
    [
        "Anna smiled, and the door opened. “Hello!”",
        "Anna smiled as the door opened. “Hello!”",
        "Anna smiled at Carl. “Hello!”",
        "Anna smiled “Hello!”",
        "Anna smiled. “Hello,” said a man.",
        "Anna smiled. “Hello!” The man waved.",
        "Anna shook the child. “Hello?”",
        "Anna waited. “Hello?”",
        "Anna nodded to whoever stood there at the open door. “Hello!”",
        "Anna’s brother nodded. “Hello!”",
        "Carl nodded. “Hello!”",
        "Anna nodded. “Hello, Anna!”",
        "Anna raised her hand. “Hello?”",
        "Anna coughed. “Hello! Bless you!”",
        "“Well?” asked Ben. Anna smiled. “Hello!”",
    ],
)
def test_a_gesture_that_is_not_whoever_speaks_alone_gives_no_name(told: str) -> None:
    story = "“Go,” said Ben. “Now,” said Anna.\n"
    assert find_answers(story + "Anna slowly shook her head. “Hello!”") == "Ben:Go Anna:Now Anna:Hello"
    assert "Hello" not in find_answers(story + told)


def test_all_tags_of_a_guess_are_read_as_tags() -> None:
    """Also before a quote without a comma, and after the quotes and dashes of any language."""
    own = (
        "Anna said \u201cCome in.\u201d Ben replied \u201cNo.\u201d",
        "Anna said \u201cCome in.\u201d",
        "„Ja“, sagte Herr Professor Doktor Schmidt. „Nein“, sagte Prinzessin Maria von Hohenzollern-Sigmaringen.",
        "“Yes,” said Rev. Dr. Martin Luther. “No,” said General Sir Arthur Wellesley.",
        "\u201e[D]as\u201c \u2013 sagte Anna \u2013 \u201eist es.\u201c",
    )
    for text in (*own, *(text for text, _ in chain(*PASSAGES.values()))):
        edits = find_quotes(text)
        assert [each.name for each in find_tags(put_tags(text, edits))] == [each.name for each in edits], text


@pytest.mark.parametrize("heading", ["Emma: Part One\n\n", "  Emma: Part One\n\n", "It rained.\n\nEmma: Part One\n\n", "Emma: Part One. "])
def test_a_heading_that_begins_with_a_name_and_a_colon_is_the_narrators(heading: str) -> None:
    text = f"{heading}“Yes,” said Emma. “No,” said Ben.\n\nEmma: Part Two\n\nIt rained."
    tagged = put_tags(text, find_quotes(text))
    assert "Emma: Part One" in tagged
    assert [each.name for each in find_tags(tagged)] == ["Narrator", "Emma", "Narrator", "Ben", "Narrator", "Narrator"]
    assert drop_tags(tagged, ())[0] == text
    alone = f"{heading}It rained."
    tags = find_tags(tag_chapter(alone, {"Emma", "Ben"}), ["Narrator", "Emma", "Ben"])
    assert {each.name for each in tags} == {"Narrator"}, "nor where she says nothing"


def test_tags_that_were_put_into_a_script_are_taken_out_and_nothing_else_is() -> None:
    tagged = put_tags(STORY, find_quotes(STORY, {"Anna", "Ben"}))
    assert drop_tags(tagged, ()) == (STORY, frozenset({"Narrator", "Anna", "Ben"}))
    assert drop_tags(f"Anna: [pause 2s] well [sic].\n\n{tagged}", ["Anna"])[0] == f"Anna: [pause 2s] well [sic].\n\n{STORY}"
