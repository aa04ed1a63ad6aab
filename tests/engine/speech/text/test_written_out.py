"""Texts are written out as they are read aloud."""

from __future__ import annotations

import random
import string
import time

import pytest

from app.engine.speech.text import numerals
from app.engine.speech.text.written_out import can_read, write_out


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It costs $3.50, or £1.", "It costs three dollars and fifty cents, or one pound."),
        ("$2.5 million", "two point five million dollars"),
        ("In 1999, 2005 and 1492.", "In nineteen ninety nine, two thousand five and fourteen ninety two."),
        ("the 1990s and the '80s", "the nineteen nineties and the eighties"),
        ("Meet me at 7:05 p.m. or 10:00.", "Meet me at seven oh five P M or ten o'clock."),
        ("March 5, 2026", "March fifth, twenty twenty six"),
        ("5 March 2026", "March fifth, twenty twenty six"),
        ("2026-11-23", "November twenty third, twenty twenty six"),
        ("12/25/2024", "December twenty fifth, twenty twenty four"),
        ("Dr. Smith and Mrs. Jones live on Main St. with St. Peter.", "doctor Smith and missus Jones live on Main street with Saint Peter."),
        ("1,234,567 people", "one million two hundred thirty four thousand five hundred sixty seven people"),
        ("3.14 and -5", "three point one four and minus five"),
        ("the 21st and the 12th", "the twenty first and the twelfth"),
        ("50% of 1/2 and 3/4", "fifty percent of one half and three quarters"),
        ("5 km at 60 mph, 20 °C", "five kilometers at sixty miles per hour, twenty degrees Celsius"),
        ("1 kg", "one kilogram"),
        ("The FBI and NASA met", "The F B I and NASA met"),
        ("STOP THAT NOW", "STOP THAT NOW"),
        ("pages 5-10", "pages five to ten"),
        ("call 555-1234", "call five five five, one two three four"),
        ("me@home.org", "me at home dot org"),
        ("café naïve", "cafe naive"),
        ("rock & roll", "rock and roll"),
        ("She said: \"no\"; he left...", "She said, no, he left."),
        ("well-known (mostly) facts - here", "well known, mostly, facts, here"),
        ("The cat sat.", "The cat sat."),
        ("don't you're Tom's 'quoted'", "don't you're Tom's quoted"),
        ("GitHub, iPhones and McGregor's MacBook", "Git Hub, i Phones and McGregor's Mac Book"),
        ("the Wi-Fi of a PhD, WiFi's end", "the wifi of a P H D, wifi's end"),
        ("I LOVE you. STOP! THE END of the FBI", "I LOVE you. STOP! THE END of the F B I"),
        ("SALE 50% OFF, CALL 911 NOW", "SALE fifty percent OFF, CALL nine one one NOW"),
        ("It is -5°C, -10 kg, -$5 and \u22123", "It is minus five degrees Celsius, minus ten kilograms, minus five dollars and minus three"),
        ("5 - 10 km, 20-25°C, 9am-5pm, 10:00-11:00", "five to ten kilometers, twenty to twenty five degrees Celsius, nine A M to five P M, "
         "ten o'clock to eleven o'clock"),
        ("200-300 words or 555-1234", "two hundred to three hundred words or five five five, one two three four"),
        ("Henry VIII, World War II, XIV century, Malcolm X", "Henry the eighth, World War two, fourteenth century, Malcolm X"),
        ("node.js, 3.10.2 and 192.168.1.1", "node dot js, three point ten point two and one hundred ninety two dot one hundred sixty eight dot one dot one"),
        ("At 5 p.m. Then at 9 a.m. sharp", "At five P M. Then at nine A M sharp"),
        ("$20k, $1.5M, US$50, 20\u20ac, \u00a5500, 50\u00a2", "twenty thousand dollars, one point five million dollars, fifty dollars, twenty euros, "
         "five hundred yen, fifty cents"),
        ("J. K. Rowling, J.R.R. Tolkien, a Ph.D. student. Plan B. The end", "J K Rowling, J R R Tolkien, a P H D student. Plan B. The end"),
        ("3\u00d74, 10\u00d715 cm, 5\u00b12, 1920x1080", "three times four, ten by fifteen centimeters, five plus or minus two, "
         "nineteen twenty by one thousand eighty"),
        ("\u215b tsp, 1\u215b, 10\u00b2, 7 \u2260 8, 20 m\u00b2", "one eighth teaspoon, one and one eighth, ten squared, seven is not eight, "
         "twenty square meters"),
        ("Page 1/2, pages 3/4, p. 3/4, Chapter 12/3, 1,000 1/2", "Page one of two, pages three and four, page three of four, Chapter twelve, three, "
         "one thousand and one half"),
        ("See part 1/2. Acts 3/4, then step 2/3", "See part one of two. Acts three and four, then step two of three"),
        ("a steel sheet 3/8 inch thick, the disc 3/8 of an inch", "a steel sheet three eighths inch thick, the disc three eighths of an inch"),
        ("the parts 1/2 inch apart, level 1/2 of them, page 1/2-inch", "the parts one half inch apart, level one half of them, page one half inch"),
        ("step 3/4 turn, sheet 3/8\" thick, pages 1/2 full", "step three quarters turn, sheet three eighths thick, pages one half full"),
        ("24/7, 9/11, 3/16", "twenty four seven, nine eleven, three sixteenths"),
        ("5 km/h and 1 m/s", "five kilometers per hour and one meter per second"),
        ("Hmmm, mmm. Shhh!", "hum, um. shush!"),
        ("(555) 123-4567 or +44 20 7946 0958", "five five five, one two three, four five six seven or four four, two zero, seven nine four six, "
         "zero nine five eight"),
        ("on Main St. The house of St. Peter", "on Main street. The house of Saint Peter"),
        ("# Heading, #hashtag, #5", "Heading, hashtag hashtag, number five"),
        ("5 > 3, 2^8, 5*3, ~5", "five is more than three, two to the power of eight, five times three, about five"),
        ("2024-01-15T10:30:00Z", "January fifteenth, twenty twenty four at ten thirty"),
        ("\u00de\u00f3r and \u0110\u1eb7ng", "Thor and Dang"),
        ("007", "zero zero seven"),
        ("etc. And more", "et cetera. And more"),
        ("5 ft 11 in, and 5 ft 1 in tall. It is 5 ft in length.", "five feet eleven inches, and five feet one inch tall. It is five feet in length."),
        ("10 st. 4 lb. in all", "ten stone four pounds in all"),
        ("6 ft. 2 in. tall. It weighs 5 kg.", "six feet two inches tall. It weighs five kilograms."),
        ("\u00a34 10s. to mend, \u00a32 7s. 6d. or 1s. 1d.", "four pounds ten shillings to mend, two pounds seven shillings and six pence or "
         "one shilling and one penny."),
        ("in his 40s. In the 1990s.", "in his forties. In the nineteen nineties."),
        ("example.com/a?b=1 or notes.txt, v1.2.3 of a .dsc", "example dot com slash a question mark b equals one or notes dot txt, "
         "version one point two point three of a dot dsc"),
        ("p. 42, pp. 4-5, vol. 2, fig. 3, Nos. 4 and 5, c. 1850", "page forty two, pages four to five, volume two, figure three, numbers four and five, "
         "circa eighteen fifty"),
        ("at 9.30 a.m. sharp", "at nine thirty A M sharp"),
        ("1. Milk", "one, Milk"),
        ("(b) bread", "b, bread"),
        ("IV", "four"),
        ("XLII. The Ferry", "forty two, The Ferry"),
        ("CHAPTER XII, part II, the part I played", "CHAPTER twelve, part two, the part I played"),
        ("Smith & Co. Ltd. of Acme Corp.", "Smith and company limited of Acme corporation."),
        ("and... then", "and, then"),
        ("CIVIL", "CIVIL"),
        ("你好", ""),
        ("...!?", ""),
    ],
)  # fmt: skip
def test_reads_as_a_person_would(written: str, said: str) -> None:
    assert write_out(written) == said


def test_only_words_and_marks_come_out() -> None:
    rng = random.Random(1)
    letters = string.printable + "äöü½€£°²ﬁ…’“—日本"
    for _ in range(3000):
        out = write_out("".join(rng.choices(letters, k=rng.randrange(40))))
        assert set(out) <= set(string.ascii_letters + "' .,!?"), out


def test_numbers_count_without_gaps() -> None:
    assert len({numerals.cardinal(value) for value in range(20000)}) == 20000
    assert len({numerals.ordinal(value) for value in range(20000)}) == 20000
    assert numerals.cardinal(10**12 + 1) == "one trillion one"
    assert numerals.number("1" * 16) == " ".join(["one"] * 16)


@pytest.mark.parametrize("sign", ["\u00a5", "\u00d7", "\u00a7", "\u00e9", "\u2192", "\u00bd", "5"])
def test_what_can_be_read_leaves_words(sign: str) -> None:
    assert can_read(sign) and write_out(f"a 2{sign}3 b") not in (write_out("a 2 3 b"), write_out("a 23 b"))


@pytest.mark.parametrize("sign", ["\u6f22", "\u00a9", "\u2603", "\U0001f600"])
def test_what_is_skipped_parts_words(sign: str) -> None:
    assert not can_read(sign) and write_out(f"one{sign}two") == "one two"


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    ["1", "1,", "1-", "1/", "1:", "1.", "A.", "a.", "St. ", "$1", "\u00bd", "1 km ", "+1 555 ", "X", "h", "s", "A", "1x", "- ", "(555) "],
)
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    def seconds(count: int) -> float:
        text = part * (count // len(part))
        begun = time.thread_time()
        write_out(text)
        return time.thread_time() - begun

    lengths = (4_000, 20_000) * 3  # in turn, so that both see the same moments of the machine
    taken_s = [seconds(count) for count in lengths]
    assert min(taken_s[1::2]) < 10 * min(taken_s[::2]) + 0.05
