"""What months, money, units, abbreviations, capitals and signs are read as, and which of them end no sentence: the tables of written_out.py
and sentences.py. Pure."""

from __future__ import annotations

from typing import Final

from app.engine.speech.text.numerals import word_set

MONTHS: Final = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
SHORT_MONTHS: Final = {name[:3]: name for name in MONTHS if name != "May"} | {"Sept": "September"}
MONEY: Final = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent"), "¥": ("yen", "yen"), "¢": ("cent", "cent")}
SCALES: Final = {"k": "thousand", "K": "thousand", "m": "million", "M": "million", "bn": "billion", "B": "billion", "T": "trillion"}
UNITS: Final = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "km²": "square kilometer", "m²": "square meter",
    "m³": "cubic meter", "cm²": "square centimeter", "cm³": "cubic centimeter", "ft²": "square foot", "ha": "hectare",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "l": "liter", "L": "liter", "ml": "milliliter", "mL": "milliliter", "cl": "centiliter",
    "tsp": "teaspoon", "tbsp": "tablespoon", "ft": "foot", "mi": "mile", "yd": "yard", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "s": "second", "sec": "second", "secs": "second",
    "ms": "millisecond", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "W": "watt", "kW": "kilowatt",
    "kWh": "kilowatt hour", "V": "volt", "dB": "decibel", "kcal": "kilocalorie", "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte",
    "TB": "terabyte", "px": "pixel", "km/h": "kilometer* per hour", "kph": "kilometer* per hour", "mph": "mile* per hour",
    "m/s": "meter* per second", "°C": "degree* Celsius", "°F": "degree* Fahrenheit", "°": "degree",
}  # fmt: skip
"""The word that an amount makes a plural is the last, or has a star."""
PLURALS: Final = {"foot": "feet", "inch": "inches", "penny": "pence", "yen": "yen", "hertz": "hertz", "kilohertz": "kilohertz", "megahertz": "megahertz",
                  "gigahertz": "gigahertz"}  # fmt: skip
ABBREVIATIONS: Final = {
    "mr": "mister", "mrs": "missus", "ms": "miz", "dr": "doctor", "prof": "professor", "jr": "junior", "sr": "senior", "vs": "versus",
    "etc": "et cetera", "e.g": "for example", "i.e": "that is", "approx": "approximately", "dept": "department", "inc": "incorporated",
    "ltd": "limited", "mt": "mount", "ave": "avenue", "rd": "road", "blvd": "boulevard", "gen": "general", "capt": "captain",
    "sgt": "sergeant", "lt": "lieutenant", "rev": "reverend", "hon": "honorable", "est": "established", "vol": "volume",
    "gov": "governor", "sen": "senator", "mon": "Monday", "tue": "Tuesday", "tues": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "thurs": "Thursday",
    "fri": "Friday", "a.m": "A M", "p.m": "P M", "messrs": "messieurs", "mme": "madame", "mlle": "mademoiselle", "col": "colonel",
    "maj": "major", "cpl": "corporal", "adm": "admiral", "cmdr": "commander", "supt": "superintendent", "co": "company", "corp": "corporation",
    "bros": "brothers", "esq": "esquire", "cf": "compare", "viz": "namely",
}  # fmt: skip
"""They are written with a full stop after them."""
BARE: Final = {name: ABBREVIATIONS[name.lower()] for name in ("Mr", "Mrs", "Ms", "Dr", "Prof", "vs")} | {
    "OK": "okay", "ok": "okay", "PhD": "P H D", "Wi-Fi": "wifi", "WiFi": "wifi", "COVID": "covid", "tsp": "teaspoon", "tbsp": "tablespoon",
}  # fmt: skip
ENDING: Final = frozenset({"etc", "a.m", "p.m", "inc", "ltd", "jr", "sr", "co", "corp", "bros", "esq"})
"""These abbreviations may end a sentence, as initials may: their stop stays before a capital or the end."""
SPELLED: Final = word_set("ESPN HDMI IEEE NAACP NYPD OECD UCLA USAF USDA YMCA")
"""These capitals are read by their letters although they are long and have a vowel."""
SHORT_WORDS: Final = word_set(
    """A ACT ADD AGE AGO AIR ALL AM AN AND ANY ARE ARM ART AS ASK AT ATE AWAY BAD BAG BE BED BIG BOX BOY BUT BUY BY CAN CAR CAT CUP CUT DAD DAY
    DID DIE DO DOG DON DRY EAR EAT EGG END EYE FAR FAT FEW FIT FIX FLY FOR FUN GET GO GOD GOT GUN HAD HAS HAT HE HER HEY HI HIM HIS HIT HOT HOW
    ICE IF IN INTO IS IT ITS JOB JOY KEY KID LAW LEG LET LIE LOT LOW MAD MAN MAP MAY ME MEN MET MIX MOM MUM MY NET NEW NO NOR NOT NOW OF OFF OH
    OIL OLD ON ONE OR OUR OUT OWN PAY PEN PER PET PUT RAN RAW RED RUN SAD SAT SAW SAY SEA SEE SET SEX SHE SIR SIT SIX SKY SO SON SUN TAX TEA TEN
    THE TIE TO TOO TOP TOY TRY TWO UP US USE VAN WAR WAS WAY WE WET WHO WHY WIN WON YES YET YOU"""
)
"""These capitals of two or three letters are words. NASA and its like are words as well: they have a vowel and four letters."""
SAID: Final = word_set("AIDS PIN RAM ROM SIM GIF")
"""These short capitals are read as a word though they are none."""
SIGNS: Final = {
    "&": " and ", "+": " plus ", "=": " equals ", "@": " at ", "%": " percent ", "×": " times ", "÷": " divided by ", "±": " plus or minus ",
    "≠": " is not ", "≤": " at most ", "≥": " at least ", "≈": " about ", "¥": " yen ", "¢": " cents ", "§": " section ", "²": " squared ",
    "³": " cubed ", "→": ", ", "•": ", ", "£": " pounds ", "€": " euros ", "$": " dollars ", "°": " degrees ",
}  # fmt: skip
BETWEEN_NUMBERS: Final = {"<": "is less than", ">": "is more than", "*": "times", "^": "to the power of", "x": "by", "·": "times"}
ADDRESS_SIGNS: Final = {
    "@": " at ", ".": " dot ", "/": " slash ", "-": " dash ", "_": " underscore ", ":": " colon ", "?": " question mark ", "=": " equals ",
    "&": " and ", "#": " hash ", "%": " percent ", "+": " plus ", "~": " tilde ",
}  # fmt: skip
DOMAINS: Final = ("com", "org", "net", "edu", "gov", "info", "io", "dev", "app", "uk", "de", "fr", "eu", "ca", "au", "nz", "ie", "jp", "cn")
"""Addresses that are written without a beginning end so."""
FILES: Final = ("txt", "pdf", "docx?", "xlsx?", "pptx?", "csv", "json", "xml", "html?", "css", "md", "py", "js", "ts", "sh", "exe", "zip", "png",
                "jpe?g", "gif", "webp", "svg", "mp3", "mp4", "wav", "flac", "ogg", "epub", "safetensors")  # fmt: skip
NUMBERED: Final = {
    "no": "number", "nos": "numbers", "p": "page", "pp": "pages", "ch": "chapter", "chap": "chapter", "fig": "figure", "figs": "figures",
    "sec": "section", "c": "circa", "ca": "circa", "l": "line", "ll": "lines", "art": "article", "bk": "book", "vols": "volumes", "apt": "apartment",
}  # fmt: skip
"""Before a number, these are read so if a full stop follows them."""
PARTS: Final = {2: "half", 4: "quarter"}
"""These parts of a whole are not called by their ordinal."""
PARTED: Final = (*range(2, 11), 12, 16, 20, 32, 64, 100, 1000)
FRACTIONS: Final = str.maketrans({"½": " 1/2", "⅓": " 1/3", "⅔": " 2/3", "¼": " 1/4", "¾": " 3/4"})
AT_THE_END: Final = r"(?= \d{1,4}/\d{1,4}(?: ?(?:[.,;:!?)\]»”“]|$)| [–-] ))"
"""A noun that is measured as well as counted has this behind it: its clause ends after the figures."""
COUNTED: Final = (
    rf"page|p\.|chapter|ch\.|vol\.|scene|episode|lesson|CD|(?:sheet|slide|part|volume|book|act|section|step|level|disc){AT_THE_END}"
)
"""After one of these, 1/2 is no fraction: one of two."""
SEVERAL: Final = rf"pages|pp\.|chapters|scenes|episodes|(?:parts|volumes|acts){AT_THE_END}"
MEASURED: Final = (
    "of|an?|the|as|way|full|done|inch(?:es)?|in\\.|foot|feet|yards?|miles?|cups?|teaspoons?|tablespoons?|pints?|quarts?|gallons?|pounds?|ounces?|"
    "(?:centi|milli|kilo)?(?:met|lit)(?:er|re)s?|(?:kilo|milli)?grams?|hours?|minutes?|seconds?|days?|weeks?|months?|years?|percent"
)
"""Before one of these, or a unit, it is one all the same."""
CARDINAL_BEFORE: Final = word_set(
    """Act Apollo Appendix Article Book Bowl Chapter Class Division Episode Fantasy Figure Grade Level Mark Number Part Phase Rocky Scene Section Stage
    Step Table Tier Title Type Volume War Wars"""
)
ORDINAL_BEFORE: Final = word_set(
    """Alexander Alfonso Benedict Catherine Charles Christian Clement Edward Elizabeth Ferdinand Francis Frederick George Gregory Gustav Henry Innocent
    Ivan James John Juan Leo Louis Mary Napoleon Nicholas Otto Paul Peter Philip Pius Ptolemy Ramses Richard Wilhelm William"""
)
"""A Roman number counts what CARDINAL_BEFORE names; after these, it is that of a king or pope."""
STARTERS: Final = word_set(
    """A After Although And As At Because Before But By Did Do Every For From Had Have He Her His How I If In Is It Its My No Nobody Not Now On Our
    Perhaps She So That The Their Then There These They This Those Though Was We Were What When Where Which While Who Why With Yes You Your"""
)
"""After a single capital with a full stop, these begin a sentence and are no name."""
TITLES: Final = word_set(
    "mr mrs ms dr prof messrs mme mlle capt sgt lt gen rev hon gov sen col maj cpl adm cmdr supt e.g i.e vs viz cf mt approx"
)
"""Whatever comes after these and their full stop, the sentence goes on."""
DAYS_CUT: Final = word_set("mon tue tues wed thu thur thurs fri sat sun")
MONTHS_CUT: Final = frozenset(each.lower() for each in SHORT_MONTHS)
BEFORE_A_NUMBER: Final = frozenset({*NUMBERED, *DAYS_CUT, *MONTHS_CUT}) | word_set(
    """vol par pt ed op est tel ext rm nr ft in lb lbs oz yd mi min mins h hr hrs gal qt st cwt qr qrs yds tbsp tsp deg
    fl bldg"""
)
"""Before a number, it goes on."""
STREETS: Final = word_set("st ave rd blvd ln sq hwy")
"""After a name, within an address it goes on."""
STATES: Final = word_set(
    """Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Mass Md Mich Minn Miss Mo Mont Neb Nev Okla Ore Pa Penn Tenn Tex Va Vt
    Wash Wis Wyo"""
)
"""Before the five digits of a postal code, it goes on."""
DEGREES: Final = word_set("C F N S E W Celsius Fahrenheit")
"""After "deg.", it goes on."""
AFTER_AN_HOUR: Final = frozenset(MONTHS) | word_set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday EST EDT CST PST GMT UTC BST ET PT CET"
)
AFTER_A_NAME: Final = word_set("Ltd Inc Corp Jr Sr Esq LLC")
FOLDED: Final = str.maketrans({
    "ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "Oe", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "Ð": "D", "Þ": "Th",
    "þ": "th", "ð": "th", "ı": "i", "−": "-", "–": "-",
    "№": "No. ",
})  # fmt: skip
HUMMED: Final = {"hm": "hum", "mm": "um", "shh": "shush", "pst": "pist", "psst": "pist", "brr": "burr", "grr": "gurr", "tsk": "tisk"}
"""People write these sounds, and repeat letters in them at will."""
