"""Say what the patterns of written_out.py find: each function returns the words of one kind of match. Pure."""

from __future__ import annotations

import re
from typing import Final

from app.engine.speech.text import numerals
from app.engine.speech.text import spoken_forms as forms

REPEATED: Final = re.compile(r"([a-z])\1{2,}")


def count(value: str, unit: str) -> str:
    """Read an amount of something: one mile, two miles, zero point five miles per hour."""
    unit = unit if "*" in unit else f"{unit}*"
    first, _, rest = unit.partition("*")
    before, _, noun = first.rpartition(" ")
    if value.replace(",", "") != "1":
        noun = forms.PLURALS.get(noun) or f"{noun}s"
    return f"{numerals.number(value)} {before} {noun}{rest}".replace("  ", " ")


def stop_after(found: re.Match[str]) -> str:
    """Return a full stop where what was found ends with one that also ends the sentence."""
    rest = found.string[found.end() : found.end() + 12].lstrip('" ')
    goes_on = rest.partition(" ")[0].rstrip(".,!?") in forms.AFTER_A_NAME | forms.AFTER_AN_HOUR
    return "." if found[0].rstrip().endswith(".") and (not rest or (rest[0].isupper() and not goes_on)) else ""


def money(found: re.Match[str]) -> str:
    whole, part = forms.MONEY[found["sign"]]
    groups = found.groupdict()
    minus = "minus " if found["minus"] or groups.get("back") else ""
    if scale := groups.get("word") or forms.SCALES.get(groups.get("scale") or ""):
        return f"{minus}{numerals.number(found['whole'] + (found['part'] or ''))} {scale} {forms.PLURALS.get(whole, f'{whole}s')}"
    cents = int((found["part"] or ".0")[1:].ljust(2, "0")[:2])
    said = minus + count(found["whole"], whole)
    return f"{said} and {count(str(cents), part)}" if cents else said


def old_money(found: re.Match[str]) -> str:
    """Read pounds, shillings and pence, as they were until 1971; "the 40s" are no money."""
    if found["alone"]:
        return count(found["alone"], "penny") + stop_after(found)
    alone = found["pounds"] is None and found["pence"] is None
    if alone and not (found["dot"] and int(found["shillings"]) < 20 and not stop_after(found)):
        return found[0]
    said = [count(found["pounds"], "pound")] if found["pounds"] else []
    said.append(count(found["shillings"], "shilling"))
    said += [f"and {count(found['pence'], 'penny')}"] if found["pence"] else []
    return " ".join(said) + stop_after(found)


def counted(found: re.Match[str]) -> str:
    """Read the Roman number of a chapter."""
    return numerals.cardinal(read_roman(found[1])) if found[1] else f"{numerals.cardinal(read_roman(found[2]))}, "


def numbered(found: re.Match[str]) -> str:
    return f"{forms.NUMBERED[found[1].lower()] if found[1] else 'number'} "


def clock(found: re.Match[str]) -> str:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    late = f" {found['half'].upper()} M{stop_after(found)}" if found["half"] else ""
    said = numerals.cardinal(hour)
    if minute or second:
        said += f" {'oh ' if minute < 10 else ''}{numerals.cardinal(minute)}"
    elif not late:
        said += " o'clock" if 1 <= hour <= 12 else " hundred"
    return said + (f" and {count(str(second), 'second')}" if second else "") + late


def half_day(found: re.Match[str]) -> str:
    return f"{numerals.cardinal(int(found[1]))} {found[2].upper()} M{stop_after(found)}"


def date(month: int, day: int, year: str | None) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{forms.MONTHS[month - 1]} {numerals.ordinal(day)}" + (f", {numerals.year(int(year))}" if year else "")


def iso_date(found: re.Match[str]) -> str:
    return date(int(found[2]), int(found[3]), found[1]) or " ".join(map(numerals.number, found.groups()))


def slashed_date(found: re.Match[str]) -> str:
    return date(int(found[1]), int(found[2]), found[3]) or " ".join(map(numerals.number, found.groups()))


def month_day(found: re.Match[str]) -> str:
    return date(forms.MONTHS.index(found[1]) + 1, int(found[2]), found[3]) or found[0]


def day_month(found: re.Match[str]) -> str:
    return date(forms.MONTHS.index(found[2]) + 1, int(found[1]), found[3]) or found[0]


def fraction(found: re.Match[str]) -> str:
    above, below = int(found[2]), int(found[3])
    mixed = f"{numerals.number(found[1])} and " if found[1] else ""
    if below not in forms.PARTED or above >= below:
        return f"{mixed}{numerals.cardinal(above)} {numerals.cardinal(below)}"
    part = forms.PARTS.get(below) or numerals.ordinal(below)
    return f"{mixed}{numerals.cardinal(above)} {part if above == 1 else 'halves' if below == 2 else part + 's'}"


def part_of(found: re.Match[str]) -> str:
    """Read page 1/2: page one of two."""
    return f"{found[1]} {found[2]} of {found[3]}" if int(found[2]) <= int(found[3]) else f"{found[1]} {found[2]}, {found[3]}"


def telephone(found: re.Match[str]) -> str:
    return ", ".join(numerals.figures(part) for group in found.groups() if group for part in re.split("[ -]", group))


def short_telephone(found: re.Match[str]) -> str:
    if found[1] and found[1].endswith("0") and found[2].endswith("0"):
        return f"{numerals.number(found[1])} to {numerals.number(found[2])}"
    return telephone(found)


def decade(found: re.Match[str]) -> str:
    value = int(found[1])
    return numerals.plural(numerals.year(value) if value > 99 else numerals.cardinal(value))


def ordinal(found: re.Match[str]) -> str:
    return numerals.ordinal(int(found[1]))


def version(found: re.Match[str]) -> str:
    groups = found[0].split(".")
    return (" dot " if len(groups) == 4 else " point ").join(map(numerals.number, groups))


def amount(found: re.Match[str]) -> str:
    return (
        ("minus " if found["minus"] else "")
        + count(found["whole"] + (found["part"] or ""), forms.UNITS.get(found["unit"], "inch"))
        + stop_after(found)
    )


def number(found: re.Match[str]) -> str:
    minus, whole, part = "minus " if found[1] else "", found[2], found[3] or ""
    if found[4]:
        return f" point {numerals.figures(found[4])}"
    if len(whole) == 4 and not minus and not part and 1100 <= int(whole) <= 2099:
        return numerals.year(int(whole))
    return minus + numerals.number(whole + part)


def address(found: re.Match[str]) -> str:
    said = found[0].partition("://")[2] or found[0]
    for sign, word in forms.ADDRESS_SIGNS.items():
        said = said.rstrip("/.").replace(sign, word)
    return said


def read_roman(written: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in written]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))


def reign(found: re.Match[str]) -> str:
    word = found[1].title()
    if word in forms.CARDINAL_BEFORE and not (found[1].islower() and found[2] == "I") and found[2] not in ("L", "C"):
        return f"{found[1]} {numerals.cardinal(read_roman(found[2]))}"
    if word in forms.ORDINAL_BEFORE and found[1][0].isupper() and found[2] not in ("I", "L", "C"):
        return f"{found[1]} the {numerals.ordinal(read_roman(found[2]))}"
    return found[0]


def century(found: re.Match[str]) -> str:
    return numerals.ordinal(read_roman(found[1])) if found[1] else found[0]


def saint(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - 40) : found.start()].split()
    after = found.string[found.end() : found.end() + 1]
    if after and found.string[found.end() :].lstrip()[:1].isupper() and not (before and before[-1][0].isupper()):
        return "Saint" if after == " " else "Saint "
    return f"street{stop_after(found)}"


def _starts_sentence(found: re.Match[str]) -> bool:
    """Tell whether the word after this begins a sentence, as no name does; so does the end of the text."""
    word = re.match(r"\W*([A-Za-z]+)", found.string[found.end() : found.end() + 12])
    return word is None or word[1] in forms.STARTERS


def initials(found: re.Match[str]) -> str:
    if found[0].count(".") == 1 and _starts_sentence(found):
        return found[0]
    return " ".join(letter for letter in found[0] if letter.isalpha()) + " "


def dotted(found: re.Match[str]) -> str:
    said = " ".join(letter.upper() for letter in found[0] if letter.isalpha())
    return said + (stop_after(found) if _starts_sentence(found) else "")


def shortened(found: re.Match[str]) -> str:
    said = forms.SHORT_MONTHS.get(found[1]) or forms.ABBREVIATIONS.get(found[1].lower())
    if said is None:
        return found[0]
    return said + (stop_after(found) if found[1].lower() in forms.ENDING else "")


def hum(found: re.Match[str]) -> str:
    short = REPEATED.sub(r"\1\1", found[0].lower())
    short = "hm" if short[0] == "h" else "shh" if short[0] == "s" else short
    return forms.HUMMED.get(short, found[0])


def capitals(found: re.Match[str]) -> str:
    letters = found[1]
    long = len(letters) > 3 and any(each in "AEIOUY" for each in letters) and letters not in forms.SPELLED
    word = long or len(letters) > 6 or letters in forms.SHORT_WORDS or letters in forms.SAID
    return (letters if word else " ".join(letters)) + ("'s" if found[2] else "")
