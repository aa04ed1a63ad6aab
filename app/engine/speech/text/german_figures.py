"""Say German figures: numbers, years and days, and what hangs on grammar: "der 3. Oktober", "am 20. Geburtstag", "1 Stunde". Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from app.engine.speech.text.numerals import word_large, word_set, words

MONTHS: Final = words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
_DE: Final = words(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
)
_LARGE: Final = (10**9, "eine Milliarde", "Milliarden"), (10**6, "eine Million", "Millionen")
_TENS: Final = words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_ODD: Final = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}

_BEFORE: Final = "in|an|auf|aus|bei|mit|nach|seit|von|zu|vor|hinter|neben|über|unter|zwischen|während|wegen|trotz|gegenüber"
OWN: Final = "(?:[mds]ein|ihr|unser|kein|ein)"
_OWN_ALONE: Final = re.compile(OWN)
ARTICLES: Final = rf"d(?:er|ie|as|en|em|es)|am|im|[vz]om|ab|seit|zum|zur|beim|bis|{OWN}(?:e[mnrs]?)|(?:dies|jed|welch)e[mnrs]?|alle[nr]?"
STARTERS: Final = words(
    "Der Die Das Er Sie Es Wir Ich Ihr Du Man Dann Da Und Aber Doch Als Wenn Weil Nun So In Im Am Auf Ein Eine Was Wer Wie Jetzt Niemand "
    "Danach Gestern Heute Alle Mein Dein Sein Dort Hier Später Vorher Bald Noch Auch Nur"
)
"""A sentence begins so: what stands before it is no ordinal."""
_MASCULINE: Final = "Geburtstag|Jahrestag|Hochzeitstag|Todestag|Tag|Platz|Sieg|Versuch|Roman|Band|Teil|Akt|Stock|Sohn|Mann|Freund"
_FEMININE: Final = re.compile(
    r".*(?:ung|heit|keit|schaft|ion|tät|ie|ik|[^aeiou]e|[aeu]e|frau|nacht|stadt|hand|person|"
    r"mutter|tochter|schwester|mark|tür|wand|fahrt|antwort|arbeit|nummer|zahl|kuh|maus)",
    re.IGNORECASE,
)
_NOT_FEMININE: Final = word_set(
    "Name Junge Auge Ende Kunde Käse Gedanke Buchstabe Löwe Hase Affe Bote Erbe Zeuge Kollege Experte Neffe Riese Interesse Gebäude Gebirge Gemälde "
    "Gelände Getreide Bube Funke Wille Haufe Franzose Hirte Sprung Schwung Spion Champion Stadion Skorpion Knie"
)


def cardinal(value: int) -> str:
    return word_large(value, _LARGE, cardinal) or _join(value)


def _join(value: int) -> str:
    if value < 20:
        return _DE[value]
    for scale, name in ((1000, "tausend"), (100, "hundert")):
        if value >= scale:
            count, rest = divmod(value, scale)
            return f"{'ein' if count == 1 else _end_in_ein(_join(count))}{name}" + (_join(rest) if rest else "")
    tens, rest = divmod(value, 10)
    return (f"{'ein' if rest == 1 else _DE[rest]}und" if rest else "") + _TENS[tens - 2]


def _end_in_ein(said: str) -> str:
    return said[:-1] if said.endswith("eins") else said


def year(value: int) -> str:
    century, rest = divmod(value, 100)
    return f"{_DE[century]}hundert{cardinal(rest) if rest else ''}" if 11 <= century <= 19 else cardinal(value)


def day(value: int) -> str:
    return f"{_nth(value)}er"


def one(noun: str) -> str:
    """Return the word for one of these, as a guess by the noun's ending."""
    return "eine" if noun not in _NOT_FEMININE and _FEMININE.fullmatch(noun) else "ein"


def _nth(value: int) -> str:
    rest = value % 100
    if rest in _ODD:
        return f"{_join(value - rest) if value > rest else ''}{_ODD[rest]}"
    return f"{_join(value)}{'t' if 0 < rest < 20 else 'st'}"


def _end(before: str | None, article: str, noun: str) -> str:
    """Return how an ordinal ends after an article: the third, in the third."""
    lower = article.lower()
    if lower in ("der", "dieser", "jeder", "welcher"):
        return "en" if before or (lower == "der" and one(noun) == "eine") else "e"
    if lower in ("dieses", "jedes", "welches"):
        return "e"
    return "e" if lower == "das" or lower.endswith("e") else "en"


def _word_nth(found: re.Match[str]) -> str:
    value = int(found["day"])
    noun = _NOUN.match(found.string, found.end())
    return f"{found[1]}{_nth(value)}{_end(found['before'], found['article'], noun[0] if noun else '')} " if value else found[0]


def _word_date(found: re.Match[str]) -> str:
    month = int(found["month"])
    dated = found["year"] or (found["article"] or "").lower() in _BEFORE_A_DATE
    if not dated or not (0 < int(found["day"]) < 32 and 0 < month < 13):
        return found[0]
    ending = _end(found["before"], found["article"], "Tag") if found["article"] else "er"
    written = f"{found[1] or ''}{_nth(int(found['day']))}{ending} {MONTHS[month - 1]}"
    if found["year"]:
        return f"{written} {year(int(found['year']))}"
    return f"{written}." if found.end() == len(found.string) else written


def _word_clock(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if hour > 24 or minute > 59:
        return found[0]
    return f"{'ein' if hour == 1 else cardinal(hour)} Uhr" + (f" {cardinal(minute)}" if minute else "")


def _word_one(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - 20) : found.start()].split()
    counts = before and (before[-1][0].islower() or before[-1].endswith(",")) and found[1] not in STARTERS
    return f"{one(found[1]) if found[1] != 'Uhr' else 'ein'} " if counts else found[0]


def _word_half(found: re.Match[str]) -> str:
    kind = 0 if found["feminine"] else 1 if found["neuter"] else 2
    before, article = found["before"] or "", found["article"] or ""
    if article:
        return f"{article}{found['adjective'] or ''} halb{_end_half(article.lower(), kind)} "
    if before:
        return f"{before} {'einer' if kind == 0 else 'einem'} halben "
    said = found.string[: found.start()].rstrip(" \n\t\u00a0-*\u2022\u2013")  # a list's signs, too
    lines = found.string.count("\n", len(said), found.start())
    begins = not said or lines > 1 or _ENDED.search(said[-8:]) or (lines and _LISTED.fullmatch(said, said.rfind("\n") + 1))
    return ("eine halbe ", "ein halbes ", "ein halber " if begins else "einen halben ")[kind]


def _end_half(article: str, kind: int) -> str:
    """Return how "halb" ends after an article: the half litre, in the half hour."""
    if _OWN_ALONE.fullmatch(article):
        return ("e", "es", "er")[kind]
    nominative = article == "das" or (article in ("dieses", "jedes", "welches") and kind == 1) or (article.endswith("er") and kind == 2)
    return "e" if nominative or article.endswith("e") else "en"


def _word_call(found: re.Match[str]) -> str:
    groups = found[0].replace("/", " ").replace("-", " ").split()
    if (
        sum(each.isdigit() for each in found[0]) < 7
        or _MONTH_OF_YEAR.fullmatch(found[0])
        or (found[0][0] == "+" and {*map(len, groups[1:])} == {3})
    ):
        return found[0]
    return " ".join("plus" if each == "+" else _DE[int(each)] for each in found[0] if each.isdigit() or each == "+")


PARTS: Final = {3: "Drittel", 4: "Viertel", 5: "Fünftel", 6: "Sechstel", 8: "Achtel", 10: "Zehntel", 16: "Sechzehntel"}
FRACTIONS: Final = {
    "1/2": "ein halb",
    **{
        f"{above}/{below}": f"{cardinal(above) if above > 1 else 'ein'} {part}"
        for below, part in PARTS.items()
        for above in range(1, below)
    },
}
_MEASURES: Final = (
    "Zoll|Takt|Tassen?|Löffel|Teelöffel|Esslöffel|EL|TL|Becher|Pfund|Kilo|Stunden?|Minuten?|Sekunden?|Wochen?|Tage?s?|Jahre?s?"
    "|Seiten?|Millionen|Meilen?"
)
BEFORE_PARTS: Final = rf"{_MEASURES}|der|aller|davon|des|dieser|dieses|von|vom|mehr|weniger|(?:[mds]ein|ihr|unser|eur)e[rs]"
NUMBERED: Final = (
    (words("Heft Hefte Ausgabe Nummer Nr. Hausnummer Zimmer Jahrgang gasse allee § Etappe Gleis Aktenzeichen Beschluss"), _MEASURES),
    (words("Haus Wohnung Raum Klasse Linie Reihe Satz Runde straße Straße str. Str."), f"{_MEASURES}|der|aller"),
)
"""In the street 3/4, but in the street 3/4 of an hour. Each row: nouns, and what makes a part of what follows of a number of theirs."""
ABOUT: Final = (
    *(f"(?i:{word}) 1" for word in words("ein kein")),
    *(rf"(?i:{word}) {number}" for word in words("etwa rund knapp fast um ca\\. circa gut über ungefähr") for number in (r"\d", r"\d \d")),
)
BEFORE_A_PART: Final = rf"{OWN}(?:e[mnrs]?)?|das|de[ms]|jede[mnrs]?"
"""A fraction has no article of its own after one of these."""
_BEGINS: Final = "|".join(STARTERS)
_ARTICLE: Final = rf"((?:\b(?P<before>{_BEFORE}) )?\b(?P<article>{ARTICLES}) )"
_NOUN: Final = re.compile(r"[A-ZÄÖÜ][a-zäöüß]*")
_MONTH_OF_YEAR: Final = re.compile(r"0\d/\d{4}")
_BEFORE_A_DATE: Final = word_set("am vom zum bis den dem ab seit")
_ISO: Final = re.compile(r"(?<![\w./-])(\d{4})-(\d\d)-(\d\d)(?![\w/-])")
_CLOCK: Final = re.compile(r"(?<![\w.:,])(\d{1,2})[.:](\d{2}) Uhr\b")
_CALL: Final = re.compile(r"(?<![\w.,/+])(?:\+\d{1,3} |0)\d{1,5}[ /-]\d{3,12}(?:[ -]\d{2,6}){0,4}+(?![\w,.]\d|\w)")
_DATE: Final = re.compile(
    rf"{_ARTICLE}?+(?<![\w./])(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?:(?P<year>\d{{4}})(?![\w/]))?+(?!\d)", re.IGNORECASE
)
_COUNTED: Final = re.compile(rf"{_ARTICLE}(?P<day>\d{{1,3}})\. (?=(?-i:[A-ZÄÖÜ][a-zäöüß]))(?!(?-i:{_BEGINS})\b)", re.IGNORECASE)
_HIS: Final = re.compile(rf"\b({OWN}) (\d{{1,3}})\. (?=(?:{_MASCULINE})\b)", re.IGNORECASE)
_ONE: Final = re.compile(r"(?<![\w.,:/])1 (?=([A-ZÄÖÜ][a-zäöüß]{2,30}))")
_ENDED: Final = re.compile(
    r"(?:(?<!\b\w)(?<!\bca)(?<!\b(?:bzw|max|min))(?<!\b(?:mind|inkl|zzgl))\.|[:!?\u2026])[\"\u201c\u201d\u00bb\u00ab)]*$", re.IGNORECASE
)
"""Ends a sentence, not a short form."""
_LISTED: Final = re.compile(
    r"[-*\u2022\u2013] ?\d.*|(?<![^\n]\n)(?:\w+ )?[A-ZÄÖÜ]\w*|"
    r"\d\S*(?: \d\S*)?(?: (?:\w{1,3}\.?|[A-ZÄÖÜ]\w+(?= [a-zäöüß]+e[rs]? [A-ZÄÖÜ])))?(?: [a-zäöüß]+e[mnrs]?){0,2}(?: \w+)? [A-ZÄÖÜ]\w*"
    r"(?:, \w+|,? \([^()]*\))?"
)
"""Such a line has no end, and what is below begins: an ingredient, and what they are for. Behind a long measure as "Dose" stands no verb ("tranken")."""
_HALF: Final = re.compile(
    r"(?<![\w./])(?<!\d )(?:\b(?:(?P<before>(?:aus|bei|binnen|in|mit|nach|seit|von|vor|zu)(?: (?:etwa|rund|knapp|circa|ca\.|gut|fast|kaum|genau|ungefähr))?)|"
    rf"(?P<article>d(?:er|ie|as|e[mns])|[ai]m|[vz]om|zu[mr]|beim|{OWN}(?:e[mnrs]?)?|(?:dies|jed|welch)e[mnrs]?|"
    r"alle(?= {1,2}1/2[ \u00a0](?:Stunde|Minute|Sekunde|Tag|Woche|Monat|Jahr|Meter|Kilometer|Seite)\b))"
    r"(?P<adjective> (?:letzt|erst|nächst|vorig|zweit|dritt|ganz|gut|knapp|reichlich|voll|übrig)e[mnrs]?)?) {1,2})?+"
    r"1/2[ \u00a0](?=(?:(?P<feminine>Stunde|Minute|Sekunde|Woche|Seite|Million|Milliarde|Tasse|Flasche|Packung|Dose|Scheibe|Zwiebel|Zitrone|Umdrehung)|"
    r"(?P<neuter>Jahr(?:zehnt|hundert|tausend)?|Pfund|Kilo(?:gramm)?|Dutzend|Glas|Huhn|Brot)|Tag|Monat|Liter|Meter|Kilometer|Becher|(?:Tee|Ess)?[Ll]öffel)\b)",
    re.IGNORECASE,
)
_SPELLED: Final = {"l": "Liter", "m": "Meter", "km": "Kilometer", "kg": "Kilogramm", "h": "Stunde", "min": "Minute"}
_OF_A_UNIT: Final = re.compile(rf"\b((?i:{BEFORE_A_PART})) {{1,2}}(1/\d)[ \u00a0]?(l|m|km|kg|h|[Mm]in)\b(?:(?<=in)\.(?= [a-zäöüß]))?")
"""After an article it is no decimal number."""
RULES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_OF_A_UNIT, lambda found: f"{found[1]} {found[2]} {_SPELLED[found[3].lower()]}"),
    (_HALF, _word_half),
    (_ISO, lambda found: f"{found[3]}.{found[2]}.{found[1]}"),
    (_CLOCK, _word_clock),
    (_CALL, _word_call),
    (_DATE, _word_date),
    (_COUNTED, _word_nth),
    (_HIS, lambda found: f"{found[1]} {_nth(int(found[2]))}er "),
    (_ONE, _word_one),
)
"""These come before the rules that all languages share."""
