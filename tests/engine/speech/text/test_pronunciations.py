"""Words said differently: the longest match, case, possessives, never inside tags, in linear time; the list as a file and as CSV from elsewhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.jobs.request import SpeechRequest, from_json, to_json
from app.engine.models.voice_limits import DIA
from app.engine.speech.kind import SpeechKind
from app.engine.speech.text import pronunciations
from app.engine.speech.text.cast_script import parse_request
from app.engine.speech.text.pronunciations import check_row, keep_used, read_csv, respell, restore_spelling, write_csv

ROWS = (
    ("Siobhan", "Shivawn"), ("US", "you ess"), ("New York", "Noo Yawk"), ("new", "gnu"), ("C++", "see plus plus"), ("can", "kan"),
    ("km/h", "kilometres an hour"), ("重庆", "崇庆"), ("Anna", "Ahna"),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path / "models").create()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Siobhan's hat, SIOBHAN’S hat, the Siobhans' hats", "Shivawn's hat, Shivawn’S hat, the Siobhans' hats"),
        ("in New York, New things, new york", "in Noo Yawk, Gnu things, Noo Yawk"),
        ("the US told us", "the you ess told us"),
        ("C++ and C + + and C", "see plus plus and C + + and C"),
        ("can, can't, can’t and cans", "kan, can't, can’t and cans"),
        ("90 km/h, m/h", "90 kilometres an hour, m/h"),
        ("去重庆了", "去崇庆了"),
        ("[Anna] Hello, Anna.\nAnna: yes (pause 1s) (laughs) Anna", "[Anna] Hello, Ahna.\nAnna: yes (pause 1s) (laughs) Ahna"),
        ("snow, renew, news", "snow, renew, news"),
        ("le chapeau d'Anna, L’Anna, dell'Anna, O'Anna", "le chapeau d'Ahna, L’Ahna, dell'Ahna, O'Ahna"),
        ("rockn'Anna, Anna'Anna", "rockn'Anna, Anna'Anna"),
    ],
)
def test_the_longest_word_is_said_as_it_is_listed(text: str, said: str) -> None:
    assert respell(text, ROWS) == said


def test_a_script_keeps_only_what_it_needs_and_readers_see_what_is_written() -> None:
    assert keep_used("New York and Anna's", ROWS) == (("New York", "Noo Yawk"), ("Anna", "Ahna"))
    assert keep_used("nothing of it", ROWS) == ()
    text = "Anna saw Siobhan. The US can."
    assert restore_spelling(["Ahna saw Shivawn.", "The you ess kan."], text, ROWS) == ["Anna saw Siobhan.", "The US can."]


def test_readers_see_what_is_written_whatever_stands_beside_it() -> None:
    rows = (("Heather", "Hethe"), ("lb", "He"), ("Mr 3", "Mr three—ah"), ("Siobhan", "Shiv’awn"), ("Anna", "Ahna"), ("重庆", "崇庆"))
    text = "Hethe said: lb. Mr 3 saw “Siobhan”, and Anna. 去重庆了"
    shown = ["Hethe said: He.", 'Mr three - ah saw "Shiv\'awn", and Ahna.', "去崇庆了"]
    assert restore_spelling(shown, text, rows) == ["Hethe said: lb.", 'Mr 3 saw "Siobhan", and Anna.', "去重庆了"]
    assert restore_spelling([], text, rows) == []
    more = (("It is", "'tis"), ("New York", "Noo Yawk"), ("Anna", "Ahna"))
    shown = ["'tissue so, 'tis. Noo Yawkers, Noo Yawk.", "Ahnas, ahna Ahna"]
    assert restore_spelling(shown, "It is New York, Anna Anna", more) == ["'tissue so, It is. Noo Yawkers, New York.", "Ahnas, ahna Anna"]
    assert restore_spelling(["She had five.", "Ahna."], "She had V. Anna.", (("V", "5"), ("Anna", "Ahna"))) == ["She had five.", "Anna."]


def test_fifty_thousand_words_take_linear_time() -> None:
    rows = tuple((f"name{number} two" if number % 3 else f"name{number}", f"Spoken {number}") for number in range(50_000))
    respell("", rows)

    def seconds(count: int) -> float:
        text = " ".join(f"name{number} two and" for number in range(count))
        began_s = time.thread_time()
        assert respell(text, rows).count("Spoken") == count
        return time.thread_time() - began_s

    short_s, long_s = zip(*[(seconds(4_000), seconds(16_000)) for _ in range(2)], strict=True)  # in turn: a neighbour slows both
    assert min(long_s) < 8 * max(min(short_s), 0.02), "four times the text in about four times the time"


def test_every_family_is_given_the_words_as_they_are_said() -> None:
    request = SpeechRequest("[S1] Siobhan came, I say.", pronunciations=(("Siobhan", "Shivawn"),))
    assert parse_request(request, lambda _: DIA).parts[0].text == "[S1] Shivawn came, I say."
    assert from_json(to_json(request)) == request and "pronunciations" not in to_json(SpeechRequest("[S1] Hello."))


def test_a_job_takes_the_owners_list_with_it(home: Home) -> None:
    pronunciations.store_everywhere(home, {"Siobhan": "Shivawn", "Anna": "Ahna", "fjord": "fee-ord"})
    asked = SpeechRequest("[Anna] Siobhan saw the fjord.", pronunciations=(("fjord", "fyord"),))
    assert dict(SpeechKind().complete(home, asked).pronunciations) == {"Siobhan": "Shivawn", "fjord": "fyord"}
    assert SpeechKind().complete(home, SpeechRequest("Siobhan.", keep=("x.wav",))).pronunciations == (), "what goes on has its own"
    assert pronunciations.write_own(home, (("Siobhan", "Shivawn"), ("fjord", "fyord"))) == '{"fjord": "fyord"}'


def test_the_last_change_can_be_taken_back(home: Home) -> None:
    pronunciations.store_everywhere(home, {"a": "ay"})
    pronunciations.store_everywhere(home, {"b": "bee"})
    pronunciations.take_back(home)
    assert pronunciations.read_everywhere(home) == {"a": "ay"}
    pronunciations.take_back(home)
    assert pronunciations.read_everywhere(home) == {"b": "bee"}
    home.pronunciations.write_text("{", "utf-8")
    assert pronunciations.read_everywhere(home) == {}, "a damaged list is put aside"


@pytest.mark.parametrize(
    ("word", "spoken", "said"),
    [
        ("", "x", "cannot be in the list"), ("x" * 61, "x", "cannot be in the list"), ("[S1]", "x", "cannot be in the list"),
        ("a b c d e f g h i", "x", "cannot be in the list"), ("Anna", "", "Write how Anna is spoken"), ("Anna", "(laughs)", "Write how"),
        ("Anna", "Anna", "spoken as itself"), ("Anna", "x" * 201, "Write how"),
    ],
)  # fmt: skip
def test_what_is_no_row_is_told(word: str, spoken: str, said: str) -> None:
    with pytest.raises(Trouble, match=said):
        check_row(word, spoken)


def test_a_list_that_names_itself_is_a_sentence(home: Home) -> None:
    with pytest.raises(Trouble, match="spoken as each other: b, c"):
        pronunciations.store_everywhere(home, {"a": "b", "b": "c", "c": "B"})
    assert pronunciations.read_everywhere(home) == {}


def test_lists_of_other_programs_are_read(home: Home) -> None:
    rows = {"Siobhan": "Shivawn", 'O"Hara, Jr': "o hara junior"}
    assert read_csv(write_csv(rows).encode("utf-8-sig")) == (rows, [])
    assert read_csv(b"Siobhan;Shivawn\r\n;\r\nx\r\n")[0] == {"Siobhan": "Shivawn"}
    assert read_csv(b"a\tay\nb\n[c]\tsee\n") == ({"a": "ay"}, ["2", "3"])
    for data, said in (
        (b"\xff\xfe\x00", "UTF-8"),
        (b"", "no line with a word"),
        (b"x\n" * 10, "no line with a word"),
        (b"a,b\nb,a\n", "as each other"),
        (b"x" * ((8 << 20) + 1), "larger than 8 MB"),
        ("\n".join(f"w{n},s{n}x" for n in range(50_001)).encode(), "limit is 50000"),
        (b'a,"' + b"x" * 200_000, "cannot be read"),
    ):
        with pytest.raises(Trouble, match=said):
            read_csv(data)
    file = home.root / "list.csv"
    file.write_text(write_csv(rows), "utf-8")
    assert pronunciations.read_csv_file(file) == rows
    with pytest.raises(Trouble, match="cannot be opened"):
        pronunciations.read_csv_file(home.root / "none.csv")
