"""Numbers, dates, times, money, units and abbreviations in words of German, Spanish, French, Italian and Portuguese, for voices that were taught few
numbers. What hangs on grammar, as most ordinals, stays as it is. Pure and linear."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.engine.speech.text import german_figures
from app.engine.speech.text.numerals import word_large, words
from app.engine.speech.text.spoken_forms import AT_THE_END, FRACTIONS

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
LIMIT: Final = 10**12
"""A longer number is read figure by figure."""
ARTICLE_MOST: Final = 10
"""An article and the blanks behind it are no longer."""
_DECIMALS: Final = {"1/2": "5", "1/4": "25", "3/4": "75"}
_FEMININE: Final = re.compile(
    r" (?:horas?|tazas?|cucharad(?:it)?as?|libras?|docenas?|páginas?|cebollas?|botellas?|manzanas?|naranjas?|pizzas?|copas?|semanas?|jornadas?|xícaras?|"
    r"colher(?:es)?|dúzias?|garrafas?|maçãs?|cebolas?|laranjas?|tazza|ora|pagina|dozzina|cipolla|mela|arancia|bottiglia|giornata)\b",
    re.IGNORECASE,
)
"""Half of one of these is called otherwise in Spanish, Portuguese and Italian. An ending does not tell: día and problema are masculine."""
_WHOLE: Final = r"\d{1,3}(?:[. \u00a0\u202f']\d{3}){1,5}+(?![\d.]\d)|\d{1,40}+"
_PARTED: Final = rf"(?P<whole>{_WHOLE})(?:[,.](?P<part>\d{{1,20}}+))?+"
_AMOUNT: Final = rf"(?<![\w.,])(?P<minus>-)?{_PARTED}"


@dataclass(frozen=True, slots=True)
class Language:
    """How one language says what is written in figures and signs."""

    cardinal: Callable[[int], str]
    months: tuple[str, ...]
    date: str
    """It is made of a day, a month and a year."""
    clock: str
    """It is made of hours and minutes."""
    hour: str
    comma: str
    minus: str
    money: Mapping[str, tuple[str, str]]
    """Each sign leads to the word for one and that for several."""
    cents: str
    units: Mapping[str, tuple[str, str]]
    """A word for one that begins with an asterisk has its article with it, as that of a feminine noun."""
    short: Mapping[str, str]
    """Abbreviations stand here as they are written, with their stops."""
    signs: Mapping[str, str]
    fractions: Mapping[str, str]
    mixed: Callable[[str, str], str]
    """It joins a whole number and a fraction."""
    counted: str
    """A fraction after one of these nouns is none: one page of two."""
    several: str
    """After one of these, it is two of them."""
    of: str
    measured: str
    """Before one of these, or a unit, a fraction is one all the same."""
    before_parts: str = ""
    """Fifths and what is smaller are fractions only before one of these, or a unit: else they may be marks, houses or issues."""
    about: tuple[str, ...] = ()
    """Or after one of these, which goes as far as the slash, and where it is in lowest terms: else it may be a mark."""
    numbered: tuple[tuple[Sequence[str], str], ...] = ()
    """But not after one of these nouns, where they are numbers of it: unless what stands beside them follows, or a unit."""
    articles: str = ""
    """A fraction of one has no article of its own after these; empty: after its own."""
    hours: Callable[[int], str] | None = None
    """It gives the words for a clock's hours, where they are counted otherwise than anything else."""
    count: Callable[[int], str] | None = None
    """It gives the word for a number before what it counts, where that is another one."""
    first: str = ""
    """The first day of a month is called so; empty: its number is said."""
    year: Callable[[int], str] | None = None
    day: Callable[[int], str] | None = None
    own: tuple[Rule, ...] = ()
    """These rules come before those that all languages share."""


def write_figures(text: str, language: str) -> str:
    """Return a text with its figures, signs and abbreviations in words of this language; as it is where that is not known."""
    row = LANGUAGES.get(language)
    if row is None:
        return text
    text = text.translate(FRACTIONS)
    for pattern, said in _list_rules(language):
        text = pattern.sub(said, text)
    for sign, word in row.signs.items():
        if sign in text:
            text = text.replace(sign, f" {word} ")
    return " ".join(text.split())


@functools.cache
def _list_rules(language: str) -> tuple[Rule, ...]:
    row = LANGUAGES[language]
    units = "|".join(re.escape(unit) for unit in sorted(row.units, key=len, reverse=True))
    short = "|".join(re.escape(each).replace(r"\ ", r"[ \u00a0]?") for each in sorted(row.short, key=len, reverse=True))
    signs = "".join(row.money)
    months = "|".join(row.months)

    def word_date(found: re.Match[str]) -> str:
        day, month, year = (int(found[each]) for each in ("day", "month", "year"))
        if not (0 < day < 32 and 0 < month < 13):
            return found[0]
        return row.date.format(day=_word_day(row, day), month=row.months[month - 1], year=_word_year(row, year))

    def word_clock(found: re.Match[str]) -> str:
        hour, minute = int(found[1]), int(found[2])
        if hour > 24 or minute > 59:
            return found[0]
        words = {"hour": row.hours(hour) if row.hours is not None else _count(row, hour), "minute": row.cardinal(minute)}
        return (row.clock if minute else row.hour).format(**words)

    def word_money(found: re.Match[str]) -> str:
        one, several = row.money[found["sign"]]
        whole = _to_int(found["whole"])
        words = _word_one(row, one) if whole == 1 else f"{_count(row, whole)} {several}"
        part = (found["part"] or "").ljust(2, "0")
        if len(part) > 2:
            words = f"{_word_number(row, found['whole'], found['part'])} {several}"
        elif int(part):
            words = row.cents.format(money=words, cents=row.cardinal(int(part)))
        return f"{row.minus} {words}" if found["minus"] else words

    def word_unit(found: re.Match[str]) -> str:
        one, several = row.units[found["unit"]]
        whole = _to_int(found["whole"])
        counted = not found["part"] and (whole == 1 or one != several)
        if counted and whole == 1:
            words = _word_one(row, one)
        else:
            words = f"{_count(row, whole) if counted else _word_number(row, found['whole'], found['part'])} {several}"
        return f"{row.minus} {words}" if found["minus"] else words

    def word_day(found: re.Match[str]) -> str:
        day = int(found[1])
        return f"{_word_day(row, day)}{found[2]}" if 0 < day < 32 else found[0]

    def word_year(found: re.Match[str]) -> str:
        return f"{found[1]}{_word_year(row, int(found[2]))}"

    def word_number(found: re.Match[str]) -> str:
        words = _word_number(row, found["whole"], found["part"])
        return f"{row.minus} {words}" if found["minus"] else words

    def word_mixed(found: re.Match[str]) -> str:
        part, whole = row.fractions[found["part"]], found["whole"]
        said = row.mixed(row.cardinal(int(whole)), part) if whole else part
        article, _, rest = said.partition(" ")
        before = found.string[max(0, found.start() - ARTICLE_MOST) : found.start()]
        if (
            rest
            and not whole
            and found["part"].startswith("1/")
            and re.search(rf"(?<!\w)(?:{row.articles or article})\s+$", before, re.IGNORECASE)
        ):
            return rest  # "one" stands there already
        return f"{said[:-1]}a" if said.endswith(("medio", "meio", "mezzo")) and _FEMININE.match(found.string, found.end()) else said

    named = "|".join(re.escape(each) for pair in row.units.values() for each in pair)
    unmeasured = rf"(?![ \u00a0-]?(?:{units}|{named}|{row.measured})(?!\w))"
    measures = rf"(?=[ \u00a0-](?:{row.before_parts}|{named})(?!\w))"
    small = [part for part in row.fractions if int(part.partition("/")[2]) > 4]
    after = {
        part: "|".join((measures, *(rf"(?<=\b{each}{part[part.index('/') :]})" for each in row.about if _is_in_lowest_terms(part))))
        for part in small
    }
    alone = [f"{part}(?:{after.get(part, '')})" for part in row.fractions]
    begin, end = r"(?<![\w./])(?<!\d )(?:(?P<whole>\d{1,6})[ \u00a0])?(?P<part>", r")(?![\w/])"
    amount = f"{begin}{'|'.join(row.fractions)}{end}"
    no_number = ""
    for nouns, then in row.numbered:
        behind_none = "".join(rf"(?<!{re.escape(each)}[ \u00a0])" for each in nouns)
        no_number += rf"(?:{behind_none}|(?=[\d \u00a0]{{1,9}}/\d\d?[ \u00a0](?:{then}|{named})(?!\w)))"
    return (
        *row.own,
        (
            re.compile(rf"\b({row.counted}) (\d{{1,4}})/(\d{{1,3}})(?![\w/]){unmeasured}", re.IGNORECASE | re.MULTILINE),
            lambda found: f"{found[1]} {found[2]} {row.of} {found[3]}" if int(found[2]) <= int(found[3]) else found[0],
        ),
        (
            re.compile(rf"\b({row.several}) (\d{{1,4}})/(\d{{1,4}})(?![\w/]){unmeasured}", re.IGNORECASE | re.MULTILINE),
            lambda found: f"{found[1]} {found[2]} {row.signs['&']} {found[3]}",
        ),
        (
            re.compile(rf"{amount}[ \u00a0]?(?P<unit>{units})(?!\w)"),
            lambda found: (
                f"{found['whole'] or 0},{_DECIMALS[found['part']]} {found['unit']}"
                if found["part"] in _DECIMALS
                else f"{word_mixed(found)} {row.units[found['unit']][1]}"
            ),
        ),
        (re.compile(f"{no_number}{begin}{'|'.join(alone)}{end}"), word_mixed),
        (re.compile(rf"(?<![\w.])(?:{short})(?!\w)"), lambda found: row.short[_close(found[0], row.short)]),
        (re.compile(r"(?<![\w./])(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>\d{4})(?![\w/])"), word_date),
        (re.compile(r"(?<![\w./-])(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\w/-])"), word_date),
        (re.compile(r"(?<![\w:,])(\d{1,2})(?::| ?h ?(?=\d\d))(\d{2})(?: Uhr\b| ?h\b)?(?![\w:])"), word_clock),
        (re.compile(rf"{_AMOUNT} ?(?P<sign>[{signs}])"), word_money),
        (re.compile(rf"(?P<minus>-)?(?P<sign>[{signs}]) ?{_PARTED}"), word_money),
        (re.compile(rf"{_AMOUNT}[ \u00a0]?(?P<unit>{units})(?!\w)"), word_unit),
        (re.compile(rf"(?<![\w.,])(\d{{1,2}})(?:\.|er|º|°)?( (?:de )?(?:{months})\b)", re.IGNORECASE), word_day),
        (re.compile(rf"(\b(?:{months})(?: de)? )(\d{{4}})(?![\d.,]\d|\w)", re.IGNORECASE), word_year),
        (re.compile(r"(?<![\w.,])()(1[1-9]\d{2})(?![\d.,]\d|\w)"), word_year),
        (re.compile(rf"{_AMOUNT}(?![\w])"), word_number),
    )


def _is_in_lowest_terms(fraction: str) -> bool:
    return math.gcd(*map(int, fraction.split("/"))) == 1


def _close(written: str, known: Mapping[str, str]) -> str:
    """Return an abbreviation as the table has it, whatever blanks it is written with."""
    if written in known:
        return written
    bare = "".join(written.split())
    return next(each for each in known if "".join(each.split()) == bare)


def _to_int(written: str) -> int:
    return int("".join(each for each in written if each.isdigit()))


def _word_number(row: Language, whole: str, part: str | None) -> str:
    digits = "".join(each for each in whole if each.isdigit())
    long = int(digits) >= LIMIT or (len(digits) > 1 and digits[0] == "0")
    words = _word_each(row, digits) if long else row.cardinal(int(digits))
    return f"{words} {row.comma} {_word_each(row, part)}" if part else words


def _word_each(row: Language, digits: str) -> str:
    return " ".join(row.cardinal(int(each)) for each in digits)


def _count(row: Language, value: int) -> str:
    """Say how many there are of something."""
    return (row.count or row.cardinal)(value) if value < LIMIT else _word_each(row, str(value))


def _word_one(row: Language, unit: str) -> str:
    return unit[1:] if unit.startswith("*") else f"{_count(row, 1)} {unit}"


def _word_day(row: Language, day: int) -> str:
    return row.day(day) if row.day is not None else row.first if day == 1 and row.first else row.cardinal(day)


def _word_year(row: Language, year: int) -> str:
    return row.year(year) if row.year is not None else row.cardinal(year)


_FR: Final = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf"
)
_FR_SCALES: Final = (10**9, "un milliard", "milliards"), (10**6, "un million", "millions")
_FR_TENS: Final = words("vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")


def french(value: int) -> str:
    if large := word_large(value, _FR_SCALES, french):
        return large
    if value >= 1000:
        count, rest = divmod(value, 1000)
        before = "" if count == 1 else f"{french(count).removesuffix('s') if count % 100 in (0, 80) and count > 1 else french(count)} "
        return f"{before}mille" + (f" {french(rest)}" if rest else "")
    if value >= 100:
        count, rest = divmod(value, 100)
        return ("cent" if count == 1 else f"{_FR[count]} cent{'' if rest else 's'}") + (f" {french(rest)}" if rest else "")
    if value < 20:
        return _FR[value]
    tens, rest = divmod(value, 10)
    rest += 10 if tens in (7, 9) else 0
    if not rest:
        return _FR_TENS[tens - 2] + ("s" if tens == 8 else "")
    return f"{_FR_TENS[tens - 2]}{' et ' if rest in (1, 11) and tens < 8 else '-'}{_FR[rest]}"


def _french_hours(value: int) -> str:
    words = french(value)
    return f"{words}{'e' if words.endswith('un') else ''} heure{'s' if value > 1 else ''}"


_ES: Final = words(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte"
    " veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"
)
_ES_TENS: Final = words("treinta cuarenta cincuenta sesenta setenta ochenta noventa")
_ES_HUNDREDS: Final = words("ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos")


def spanish(value: int) -> str:
    if value >= 10**6:
        count, rest = divmod(value, 10**6)
        return ("un millón" if count == 1 else f"{_before_noun(spanish(count))} millones") + (f" {spanish(rest)}" if rest else "")
    if value >= 1000:
        count, rest = divmod(value, 1000)
        return ("mil" if count == 1 else f"{_before_noun(spanish(count))} mil") + (f" {spanish(rest)}" if rest else "")
    if value >= 100:
        count, rest = divmod(value, 100)
        return "cien" if value == 100 else _ES_HUNDREDS[count - 1] + (f" {spanish(rest)}" if rest else "")
    if value < 30:
        return _ES[value]
    tens, rest = divmod(value, 10)
    return _ES_TENS[tens - 3] + (f" y {_ES[rest]}" if rest else "")


def _spanish_hours(value: int) -> str:
    words = spanish(value)
    return f"{words[:-1]}a" if words.endswith("uno") else words


def _before_noun(words: str) -> str:
    if words.endswith("veintiuno"):
        return f"{words.removesuffix('veintiuno')}veintiún"
    return words.removesuffix("o") if words.endswith("uno") else words


_IT: Final = words(
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove"
)
_IT_SCALES: Final = (10**9, "un miliardo", "miliardi"), (10**6, "un milione", "milioni")
_IT_TENS: Final = words("venti trenta quaranta cinquanta sessanta settanta ottanta novanta")


def italian(value: int) -> str:
    if large := word_large(value, _IT_SCALES, italian):
        return large
    words = _join_italian(value)
    return f"{words[:-1]}é" if words.endswith("tre") and words != "tre" else words


def _join_italian(value: int) -> str:
    if value < 20:
        return _IT[value]
    if value >= 1000:
        count, rest = divmod(value, 1000)
        return ("mille" if count == 1 else f"{_join_italian(count)}mila") + (_join_italian(rest) if rest else "")
    if value >= 100:
        count, rest = divmod(value, 100)
        head = f"{_IT[count] if count > 1 else ''}cento"
        return (head[:-1] if rest // 10 == 8 else head) + (_join_italian(rest) if rest else "")
    tens, rest = divmod(value, 10)
    head = _IT_TENS[tens - 2]
    return (head[:-1] if rest in (1, 8) else head) + (_IT[rest] if rest else "")


_PT: Final = words(
    "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove"
)
_PT_TENS: Final = words("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa")
_PT_HUNDREDS: Final = words("cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos")


def portuguese(value: int) -> str:
    for scale, one, several in ((10**9, "um bilhão", "bilhões"), (10**6, "um milhão", "milhões")):
        if value >= scale:
            count, rest = divmod(value, scale)
            return _and(one if count == 1 else f"{portuguese(count)} {several}", rest)
    if value >= 1000:
        count, rest = divmod(value, 1000)
        return _and("mil" if count == 1 else f"{portuguese(count)} mil", rest)
    if value >= 100:
        count, rest = divmod(value, 100)
        return "cem" if value == 100 else _PT_HUNDREDS[count - 1] + (f" e {portuguese(rest)}" if rest else "")
    if value < 20:
        return _PT[value]
    tens, rest = divmod(value, 10)
    return _PT_TENS[tens - 2] + (f" e {_PT[rest]}" if rest else "")


def _and(words: str, rest: int) -> str:
    if not rest:
        return words
    return f"{words}{' e ' if rest < 100 or (rest < 1000 and rest % 100 == 0) else ' '}{portuguese(rest)}"


def _portuguese_hours(value: int) -> str:
    words = re.sub("um$", "uma", re.sub("dois$", "duas", portuguese(value)))
    return f"{words} hora{'' if value == 1 else 's'}"


def _units(listed: str) -> dict[str, tuple[str, str]]:
    """Read rows such as "km Kilometer" and "h *eine Stunde/Stunden"."""
    found = dict[str, tuple[str, str]]()
    for row in listed.split(";"):
        unit, _, words = row.strip().partition(" ")
        one, _, several = words.partition("/")
        found[unit] = one, several or one
    return found


LANGUAGES: Final[Mapping[str, Language]] = {
    "de": Language(
        german_figures.cardinal, german_figures.MONTHS,
        "{day} {month} {year}", "{hour} Uhr {minute}", "{hour} Uhr", "Komma", "minus",
        {"€": ("Euro", "Euro"), "$": ("Dollar", "Dollar"), "£": ("Pfund", "Pfund")}, "{money} {cents}",
        _units("% Prozent; km Kilometer; m Meter; cm Zentimeter; mm Millimeter; kg Kilogramm; g Gramm; l Liter; "
               "h *eine Stunde/Stunden; min *eine Minute/Minuten; °C Grad Celsius; ° Grad; km/h Kilometer pro Stunde; GB Gigabyte; MB Megabyte"),
        {"z. B.": "zum Beispiel", "d. h.": "das heißt", "u. a.": "unter anderem", "usw.": "und so weiter", "bzw.": "beziehungsweise", "ca.": "circa",
         "Dr.": "Doktor", "Prof.": "Professor", "Nr.": "Nummer", "Hr.": "Herr", "vgl.": "vergleiche", "inkl.": "inklusive"},
        {"&": "und", "+": "plus", "=": "gleich", "@": "at"}, count=lambda value: "ein" if value == 1 else german_figures.cardinal(value),
        year=german_figures.year, day=german_figures.day, own=german_figures.RULES,
        fractions=german_figures.FRACTIONS, before_parts=german_figures.BEFORE_PARTS, about=german_figures.ABOUT,
        numbered=german_figures.NUMBERED, articles=german_figures.BEFORE_A_PART,
        mixed=lambda whole, part: f"{whole[:-1] if whole.endswith('eins') else whole}{part.replace(' ', '').lower()}",
        counted=f"Seite|S\\.|Kapitel|Kap\\.|Bd\\.|Szene|Folge|Lektion|CD|(?:Blatt|Teil|Band|Buch|Akt|Abschnitt|Folie|Schritt|Stufe){AT_THE_END}",
        several=f"Seiten|Folgen|Szenen|(?:Teile|Bände|Akte){AT_THE_END}", of="von",
        measured="an|der|des|dem|vom|voll|Zoll|Tassen?|Löffel|EL|TL|Pfund|Stunde|Minute|Sekunden?|Tage?|Jahre?",
    ),
    "es": Language(
        spanish, words("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
        "{day} de {month} de {year}", "{hour} y {minute}", "{hour} en punto", "coma", "menos",
        {"€": ("euro", "euros"), "$": ("dólar", "dólares"), "£": ("*una libra", "libras")}, "{money} con {cents}",
        _units("% por ciento; km kilómetro/kilómetros; m metro/metros; cm centímetro/centímetros; mm milímetro/milímetros; kg kilo/kilos; g gramo/gramos; "
               "l litro/litros; h *una hora/horas; min minuto/minutos; °C grado Celsius/grados Celsius; ° grado/grados; "
               "km/h kilómetro por hora/kilómetros por hora; GB gigabyte/gigabytes; MB megabyte/megabytes"),
        {"Sr.": "señor", "Sra.": "señora", "Srta.": "señorita", "Dr.": "doctor", "Dra.": "doctora", "etc.": "etcétera", "p. ej.": "por ejemplo",
         "EE. UU.": "Estados Unidos", "n.º": "número", "núm.": "número", "Ud.": "usted", "Uds.": "ustedes"},
        {"&": "y", "+": "más", "=": "igual a", "@": "arroba"}, count=lambda value: _before_noun(spanish(value)), first="uno", hours=_spanish_hours,
        fractions={"1/2": "medio", "1/3": "un tercio", "2/3": "dos tercios", "1/4": "un cuarto", "3/4": "tres cuartos"},
        mixed=lambda whole, part: f"{whole} y {part}", of="de",
        several=f"páginas|capítulos|tomos|escenas|episodios|partes{AT_THE_END}",
        counted=f"página|pág\\.|capítulo|cap\\.|tomo|escena|episodio|lección|CD|(?:hoja|parte|libro|acto|sección|paso|nivel){AT_THE_END}",
        measured="del?|pulgadas?|tazas?|cucharad(?:it)?as?|libras?|hora|minuto|segundos?|días?|años?",
    ),
    "fr": Language(
        french, words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
        "{day} {month} {year}", "{hour} {minute}", "{hour}", "virgule", "moins",
        {"€": ("euro", "euros"), "$": ("dollar", "dollars"), "£": ("*une livre", "livres")}, "{money} {cents}",
        _units("% pour cent; km kilomètre/kilomètres; m mètre/mètres; cm centimètre/centimètres; mm millimètre/millimètres; kg kilo/kilos; g gramme/grammes; "
               "l litre/litres; h *une heure/heures; min *une minute/minutes; °C degré Celsius/degrés Celsius; ° degré/degrés; "
               "km/h kilomètre heure/kilomètres heure; Go gigaoctet/gigaoctets; Mo mégaoctet/mégaoctets"),
        {"M.": "monsieur", "MM.": "messieurs", "Mme": "madame", "Mlle": "mademoiselle", "Dr": "docteur", "etc.": "et cetera", "p. ex.": "par exemple",
         "n°": "numéro", "c.-à-d.": "c'est-à-dire", "av. J.-C.": "avant Jésus-Christ"},
        {"&": "et", "+": "plus", "=": "égale", "@": "arobase"}, first="premier", hours=_french_hours,
        fractions={"1/2": "un demi", "1/3": "un tiers", "2/3": "deux tiers", "1/4": "un quart", "3/4": "trois quarts"},
        mixed=lambda whole, part: f"{whole} et {part.removeprefix('un ') if part == 'un demi' else part}", of="sur",
        several=f"pages|chapitres|tomes|scènes|épisodes|parties{AT_THE_END}",
        counted=f"page|p\\.|chapitre|chap\\.|tome|scène|épisode|leçon|CD|(?:feuille|partie|livre|acte|section|étape|niveau){AT_THE_END}",
        measured="de|du|des|d|pouces?|tasses?|cuillères?|livres?|heure|minute|secondes?|jours?|ans?",
    ),
    "it": Language(
        italian, words("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
        "{day} {month} {year}", "{hour} e {minute}", "{hour} in punto", "virgola", "meno",
        {"€": ("euro", "euro"), "$": ("dollaro", "dollari"), "£": ("*una sterlina", "sterline")}, "{money} e {cents}",
        _units("% per cento; km chilometro/chilometri; m metro/metri; cm centimetro/centimetri; mm millimetro/millimetri; kg chilo/chili; g grammo/grammi; "
               "l litro/litri; h *un'ora/ore; min minuto/minuti; °C grado Celsius/gradi Celsius; ° grado/gradi; km/h chilometro orario/chilometri orari; "
               "GB gigabyte; MB megabyte"),
        {"sig.": "signor", "Sig.": "signor", "sig.ra": "signora", "Sig.ra": "signora", "dott.": "dottor", "Dott.": "dottor", "prof.": "professor",
         "ecc.": "eccetera", "p. es.": "per esempio", "S.p.A.": "esse pi a"},
        {"&": "e", "+": "più", "=": "uguale a", "@": "chiocciola"}, count=lambda value: "un" if value == 1 else italian(value), first="primo",
        hours=lambda value: "una" if value == 1 else italian(value),
        fractions={"1/2": "mezzo", "1/3": "un terzo", "2/3": "due terzi", "1/4": "un quarto", "3/4": "tre quarti"},
        mixed=lambda whole, part: f"{whole} e {part}", of="di",
        several=f"pagine|capitoli|scene|puntate|(?:parti|volumi){AT_THE_END}",
        counted=f"pagina|pag\\.|capitolo|cap\\.|scena|puntata|lezione|CD|(?:foglio|parte|volume|libro|atto|sezione|passo|livello){AT_THE_END}",
        measured="di|d|del|dell|dello|della|dei|degli|delle|pollic[ei]|tazz[ae]|cucchia\\w{1,9}|libbr[ae]|ora|minuto|second[oi]|giorn[oi]|ann[oi]",
    ),
    "pt": Language(
        portuguese, words("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
        "{day} de {month} de {year}", "{hour} e {minute}", "{hour}", "vírgula", "menos",
        {"€": ("euro", "euros"), "$": ("dólar", "dólares"), "£": ("*uma libra", "libras")}, "{money} e {cents}",
        _units("% por cento; km quilômetro/quilômetros; m metro/metros; cm centímetro/centímetros; mm milímetro/milímetros; kg quilo/quilos; g grama/gramas; "
               "l litro/litros; h *uma hora/horas; min minuto/minutos; °C grau Celsius/graus Celsius; ° grau/graus; "
               "km/h quilômetro por hora/quilômetros por hora; GB gigabyte/gigabytes; MB megabyte/megabytes"),
        {"Sr.": "senhor", "Sra.": "senhora", "Dr.": "doutor", "Dra.": "doutora", "etc.": "et cetera", "p. ex.": "por exemplo", "n.º": "número",
         "EUA": "Estados Unidos"},
        {"&": "e", "+": "mais", "=": "igual a", "@": "arroba"}, first="primeiro", hours=_portuguese_hours,
        fractions={"1/2": "meio", "1/3": "um terço", "2/3": "dois terços", "1/4": "um quarto", "3/4": "três quartos"},
        mixed=lambda whole, part: f"{whole} e {part}", of="de",
        several=f"páginas|capítulos|cenas|episódios|(?:partes|volumes){AT_THE_END}",
        counted=f"página|pág\\.|capítulo|cap\\.|cena|episódio|lição|CD|(?:folha|parte|volume|livro|ato|seção|secção|passo|nível){AT_THE_END}",
        measured="d[aeo]s?|polegadas?|xícaras?|colher(?:es)?|libras?|hora|minuto|segundos?|dias?|anos?",
    ),
}  # fmt: skip
