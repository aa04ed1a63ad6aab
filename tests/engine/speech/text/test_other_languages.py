"""Figures and abbreviations in words of other languages than English, as those who speak them say them."""

from __future__ import annotations

import time

import pytest

from app.engine.speech.text import other_languages
from app.engine.speech.text.other_languages import write_figures
from app.engine.speech.text.written_out import find_said

NUMBERS = {
    "de": {0: "null", 1: "eins", 17: "siebzehn", 21: "einundzwanzig", 101: "einhunderteins", 1001: "eintausendeins", 100_000: "einhunderttausend",
           1_000_001: "eine Million eins", 2_300_000: "zwei Millionen dreihunderttausend"},
    "es": {16: "dieciséis", 22: "veintidós", 31: "treinta y uno", 100: "cien", 101: "ciento uno", 515: "quinientos quince", 1000: "mil",
           21_000: "veintiún mil", 1_000_000: "un millón", 2_000_001: "dos millones uno"},
    "fr": {17: "dix-sept", 21: "vingt et un", 71: "soixante et onze", 80: "quatre-vingts", 81: "quatre-vingt-un", 99: "quatre-vingt-dix-neuf",
           100: "cent", 200: "deux cents", 201: "deux cent un", 1000: "mille", 80_000: "quatre-vingt mille", 2_000_000: "deux millions"},
    "it": {8: "otto", 21: "ventuno", 23: "ventitré", 28: "ventotto", 103: "centotré", 180: "centottanta", 1000: "mille", 2021: "duemilaventuno",
           1_000_000: "un milione"},
    "pt": {16: "dezesseis", 21: "vinte e um", 100: "cem", 101: "cento e um", 999: "novecentos e noventa e nove", 1100: "mil e cem",
           1999: "mil novecentos e noventa e nove", 2_000_000: "dois milhões"},
}  # fmt: skip


@pytest.mark.parametrize("language", [*NUMBERS])
def test_numbers(language: str) -> None:
    for value, words in NUMBERS[language].items():
        assert other_languages.LANGUAGES[language].cardinal(value) == words


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("de", "Am 3. Oktober 1990 um 14:30 Uhr", "Am dritten Oktober neunzehnhundertneunzig um vierzehn Uhr dreißig"),
        ("de", "z.B. für 5,20 €", "zum Beispiel für fünf Euro zwanzig"),
        ("de", "um 14.30 Uhr, 1 Uhr", "um vierzehn Uhr dreißig, ein Uhr"),
        ("de", "der 3. Oktober, am 3.4., bis 2024-05-03", "der dritte Oktober, am dritten April, bis dritten Mai zweitausendvierundzwanzig"),
        ("de", "sein 20. Geburtstag, in der 3. Klasse, die 101. Nacht", "sein zwanzigster Geburtstag, in der dritten Klasse, die einhunderterste Nacht"),
        ("de", "es war 1 Kind, 1 Stunde, 1 Name, 1 h, Kapitel 1 Ende", "es war ein Kind, eine Stunde, ein Name, eine Stunde, Kapitel eins Ende"),
        ("de", "1 Einleitung, § 1 Absatz 2", "eins Einleitung, § eins Absatz zwei"),
        ("de", "jedes 2. Kind der 3. Klasse", "jedes zweite Kind der dritten Klasse"),
        ("de", "in der 3.5. Version, Saison 08/2009", "in der drei Komma fünf. Version, Saison null acht/zweitausendneun"),
        ("de", "Er wurde 20. Dann 3.4 Punkte", "Er wurde zwanzig. Dann drei Komma vier Punkte"),
        ("de", "030 1234567", "null drei null eins zwei drei vier fünf sechs sieben"), ("de", "+49 89 1234", "plus vier neun acht neun eins zwei drei vier"),
        ("de", "1/2 l, 2½ kg und 1/3 l", "null Komma fünf Liter, zwei Komma fünf Kilogramm und ein Drittel Liter"),
        ("de", "1/2 und 3/4, 5/8 Zoll", "ein halb und drei Viertel, fünf Achtel Zoll"),
        ("de", "1/2 Stunde, nach ½ Stunde, die 1/2 Stunde, der 1/2 Stunde", "eine halbe Stunde, nach einer halben Stunde, die halbe Stunde, der halben Stunde"),
        ("de", "1/2 Jahr, vor 1/2 Jahr, ein 1/2 Jahr, das 1/2 Jahr", "ein halbes Jahr, vor einem halben Jahr, ein halbes Jahr, das halbe Jahr"),
        ("de", "1/2 Tag, 1/2 Tag, in 1/2 Tag, 2 1/2 Stunden", "ein halber Tag, einen halben Tag, in einem halben Tag, zweieinhalb Stunden"),
        ("de", "7/8 davon, 5/16 km, 2 5/8 Zoll, 4/5 der Leute, 9/11", "sieben Achtel davon, fünf Sechzehntel Kilometer, zweifünfachtel Zoll, "
         "vier Fünftel der Leute, neun/elf"),
        ("de", "6/8-Takt. Bewertung: 8/10, Hauptstraße 5/6, Heft 5/6, am 5/8 und 4/5", "sechs Achtel-Takt. Bewertung: acht/zehn, Hauptstraße fünf/sechs, "
         "Heft fünf/sechs, am fünf/acht und vier/fünf"),
        ("de", "Der 1/2 Liter reicht. Jede 1/2 Stunde, meine 1/2 Stunde, die letzte 1/2 Stunde", "Der halbe Liter reicht. Jede halbe Stunde, "
         "meine halbe Stunde, die letzte halbe Stunde"),
        ("de", "in etwa 1/2 Stunde, mit ca. 1/2 Liter, dieses 1/2 Jahr, unser 1/2 Liter, im letzten 1/2 Jahr", "in etwa einer halben Stunde, mit circa einem "
         "halben Liter, dieses halbe Jahr, unser halber Liter, im letzten halben Jahr"),
        ("de", "1/2 Liter Milch steht da. 1/2 Liter fehlt, nimm ca. 1/2 Liter", "ein halber Liter Milch steht da. ein halber Liter fehlt, nimm circa einen "
         "halben Liter"),
        ("de", "1/5 des Gehalts, 1/6 vom Kuchen, 1/5 von allen, 2/5 seiner Leute, 1/8 ihres Gelds, 1/5 mehr", "ein Fünftel des Gehalts, "
         "ein Sechstel vom Kuchen, ein Fünftel von allen, zwei Fünftel seiner Leute, ein Achtel ihres Gelds, ein Fünftel mehr"),
        ("de", "Ein 1/5, etwa 2/5, fast 1/10, ein 1/4, ein 1/8 kg, ein 8/10, kein 1/5", "Ein Fünftel, etwa zwei Fünftel, fast ein Zehntel, ein Viertel, "
         "ein Achtel Kilogramm, ein acht/zehn, kein Fünftel"),
        ("de", "Heft 5/6 des Jahrgangs, Nr. 3/4 der Reihe, Ringstraße 1/2, 5/6 des Jahrgangs", "Heft fünf/sechs des Jahrgangs, Nummer drei/vier der Reihe, "
         "Ringstraße eins/zwei, fünf Sechstel des Jahrgangs"),
        ("de", "Heft 1/6 des Jahres, Runde 2/5 des Turniers, Aktenzeichen 3/8 vom 4. Mai, § 3/5 des Gesetzes", "Heft eins/sechs des Jahres, "
         "Runde zwei/fünf des Turniers, Aktenzeichen drei/acht vom vierten Mai, § drei/fünf des Gesetzes"),
        ("de", "Gleis 1/5 des Bahnhofs, Satz 3/6 von links, Beschluss 1/4 des Rats, im Haus 2/3, Etappe 4/5 der Tour", "Gleis eins/fünf des Bahnhofs, "
         "Satz drei/sechs von links, Beschluss eins/vier des Rats, im Haus zwei/drei, Etappe vier/fünf der Tour"),
        ("de", "in der Wohnung 3/4 Stunde, in der Klasse 2/3 der Schüler, im Haus 1/3 der Fenster, auf der Straße 1/4 Liter Milch",
         "in der Wohnung drei Viertel Stunde, in der Klasse zwei Drittel der Schüler, im Haus ein Drittel der Fenster, "
         "auf der Straße ein Viertel Liter Milch"),
        ("de", "ein 1/4 Min. später, ein 1/4 min. Dann", "ein Viertel Minute später, ein Viertel Minute. Dann"),
        ("de", "3 Männer tranken\n1/2 Liter Milch", "drei Männer tranken einen halben Liter Milch"),
        ("de", "100 g weiche Butter\n1/2 Liter Milch", "einhundert Gramm weiche Butter ein halber Liter Milch"),
        ("de", "2 Dosen gehackte Tomaten\n1/2 Liter Milch", "zwei Dosen gehackte Tomaten ein halber Liter Milch"),
        ("de", "3 Leute kauften Brot\n1/2 Liter Milch", "drei Leute kauften Brot einen halben Liter Milch"),
        ("de", "- 3 EL Öl, kalt\n- 1/2 Liter Milch", "- drei EL Öl, kalt - ein halber Liter Milch"),
        ("de", "4 große Eier (Größe M)\n1/2 Liter Milch", "vier große Eier (Größe M) ein halber Liter Milch"),
        ("de", "2 Kinder tranken Saft und Peter\n1/2 Liter Milch", "zwei Kinder tranken Saft und Peter einen halben Liter Milch"),
        ("de", "in der Hauptstr. 3/4, Raum 3/4 die Tür", "in der Hauptstr. drei/vier, Raum drei/vier die Tür"),
        ("de", "Dann trank\nPeter\n1/2 Liter Milch", "Dann trank Peter einen halben Liter Milch"),
        ("de", "fast 8/10, fast 4/5, fast 8/10 der Leute", "fast acht/zehn, fast vier Fünftel, "
         "fast acht Zehntel der Leute"),
        ("de", "Er trank\n1/2 Liter Milch, alle 1/2 Stunde\n\n1/2 Liter", "Er trank einen halben Liter Milch, alle halbe Stunde ein halber Liter"),
        ("de", "„Ein 1/5 davon“, (ein 1/4), Stein 1/4", "„Ein Fünftel davon“, (ein Viertel), Stein ein Viertel"),
        ("es", "(un 1/4), ¿un 1/4?, (un)1/4", "(un cuarto), ¿un cuarto?, (un)un cuarto"),
        ("de", "Zutaten:\n1/2 Liter Milch\n1/2 Liter Wasser\n\nDer Teig\n1/2 Liter Öl", "Zutaten: ein halber Liter Milch ein halber Liter Wasser "
         "Der Teig ein halber Liter Öl"),
        ("de", "Zutaten\n- 1/2 Liter Milch\n- 1/2 Liter Öl", "Zutaten - ein halber Liter Milch - ein halber Liter Öl"),
        ("de", "Wir bekamen alle 1/2 Liter Milch, alle ½ Stunde und alle 1/2 Meter", "Wir bekamen alle einen halben Liter Milch, "
         "alle halbe Stunde und alle halbe Meter"),
        ("de", "eine 1/4 Stunde, kein 1/4, das 1/3, mein 1/8 Liter, kein 3/4", "eine Viertel Stunde, kein Viertel, das Drittel, "
         "mein Achtel Liter, kein drei Viertel"),
        ("de", "ein 1/4 l, ein 1/2 l, eine 1/4 h, ein 1/2 kg", "ein Viertel Liter, ein halber Liter, eine Viertel Stunde, ein halbes Kilogramm"),
        ("de", "um 1/5, ca. 1/5, circa 1/5, gut 1/5, Über 1/5, ungefähr 1/5, etwa 2 1/5, warum 1/5", "um ein Fünftel, circa ein Fünftel, "
         "circa ein Fünftel, gut ein Fünftel, Über ein Fünftel, ungefähr ein Fünftel, etwa zweieinfünftel, warum eins/fünf"),
        ("fr", "un 1/4, un ¼, brun ¼", "un quart, un quart, brun un quart"), ("es", "medio 1/2", "medio medio"),
        ("fr", "1 h, 1/2", "une heure, un demi"), ("it", "1 h", "un'ora"),
        ("fr", "2024-05-03", "trois mai deux mille vingt-quatre"), ("es", "1 h y 1 £", "una hora y una libra"), ("pt", "1 h", "uma hora"),
        ("de", "31.12.2024: -3 °C, 12,5 %", "einunddreißigster Dezember zweitausendvierundzwanzig: minus drei Grad Celsius, zwölf Komma fünf Prozent"),
        ("de", "1.234 km und 1 km, 21 kg", "eintausendzweihundertvierunddreißig Kilometer und ein Kilometer, einundzwanzig Kilogramm"),
        ("fr", "Le 1er mai 2024 à 14h30, M. Dupont", "Le premier mai deux mille vingt-quatre à quatorze heures trente, monsieur Dupont"),
        ("fr", "81,50 € ou 1 234,5 ; 71 %", "quatre-vingt-un euros cinquante ou mille deux cent trente-quatre virgule cinq ; soixante et onze pour cent"),
        ("es", "121 km, 1 €, 31 %, p. ej. el Sr. Díaz", "ciento veintiún kilómetros, un euro, treinta y uno por ciento, por ejemplo el señor Díaz"),
        ("it", "Il 1º maggio alle 14:30, $3,10", "Il primo maggio alle quattordici e trenta, tre dollari e dieci"),
        ("pt", "31/12/1999, 0,5 kg", "trinta e um de dezembro de mil novecentos e noventa e nove, zero vírgula cinco quilos"),
        ("de", "0049, A4 & B", "null null vier neun, A4 und B"),
        ("de", "1" + "0" * 14, "eins" + " null" * 14),
        ("fr", "1:00, 21:30", "une heure, vingt et une heures trente"), ("pt", "1:00, 2:15", "uma hora, duas horas e quinze"),
        ("es", "1:00, 21:05", "una en punto, veintiuna y cinco"), ("it", "1:10", "una e dieci"), ("de", "1:05", "ein Uhr fünf"),
        ("de", "Seite 1/2, S. 12/13, Kapitel 3/4 und Seiten 3/4", "Seite eins von zwei, S. zwölf von dreizehn, Kapitel drei von vier und Seiten drei und vier"),
        ("de", "1 1/2 Tage, 2 1/2 Stunden, 21 3/4", "eineinhalb Tage, zweieinhalb Stunden, einundzwanzigdreiviertel"),
        ("de", "Teil 1/2024, Seite 3/2, 1/2/2024", "Teil eins/zweitausendvierundzwanzig, Seite drei/zwei, erster Februar zweitausendvierundzwanzig"),
        ("de", "Akt 3/4 der Zeit, Blatt 1/2 Liter, Seite 1/2 Stunde", "Akt drei Viertel der Zeit, Blatt einen halben Liter, Seite eine halbe Stunde"),
        ("de", "Teil 1/2\nDie Teile 1/2 – und Akt 3/4.", "Teil eins von zwei Die Teile eins und zwei – und Akt drei von vier."),
        ("de", "Teil 1/2 davon", "Teil ein halb davon"), ("fr", "la partie 1/2 tasse", "la partie un demi tasse"),
        ("fr", "page 1/2, les pages 3/4, 2 1/2, 2 1/4, 2½ kg", "page un sur deux, les pages trois et quatre, deux et demi, deux et un quart, "
         "deux virgule cinq kilos"),
        ("es", "Página 1/2, capítulo 3/4, 2 1/2 horas, 1/2 vaso", "Página uno de dos, capítulo tres de cuatro, dos y media horas, medio vaso"),
        ("it", "pagina 1/2, capitoli 3/4, 2 1/2, 1/2 tazza", "pagina uno di due, capitoli tre e quattro, due e mezzo, mezza tazza"),
        ("pt", "página 1/2, capítulo 3/4, 2 1/2, 1/2 hora", "página um de dois, capítulo três de quatro, dois e meio, meia hora"),
        ("es", "1/2 día, 1/2 para ti, 1/2 cucharadita", "medio día, medio para ti, media cucharadita"),
        ("pt", "1/2 dia, 1/2 colher", "meio dia, meia colher"), ("it", "1/2 problema, 1/2 ora", "mezzo problema, mezza ora"),
        ("ko", "12 kg", "12 kg"),
    ],
)  # fmt: skip
def test_what_is_read_aloud(language: str, written: str, said: str) -> None:
    assert write_figures(written, language) == said


def test_only_other_words_are_shown() -> None:
    assert not find_said("\u201cDon't!\u201d said \u00c9lodie - twice; (softly)", "en")
    assert not find_said("Schon gut, Anna!", "de") and not find_said("1999", "")
    assert find_said("In 1999.", "en") == "In nineteen ninety nine."


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("piece", ["1.", "1 ", "-1", "9", "€1,", "1 123", "am ter ", "p. ", "1/1/", "12:", "1 de ", "z ", "\u00a0"])
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    begun = time.process_time()
    for language in other_languages.LANGUAGES:
        write_figures(piece * (20_000 // len(piece)), language)
    assert time.process_time() - begun < 5, "what is quadratic takes minutes"
