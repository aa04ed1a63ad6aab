"""The help: what everybody reads in every language, what guests are spared, and that every error leads to a topic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.models import catalog
from app.engine.models.picture_families import FAMILIES
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.ui.page.help_topics import TOPICS
from app.ui.page.protocol import CURES
from app.ui.state.desk import Desk
from app.ui.tabs import help as help_view
from tests.support.guests import desk_at
from tests.support.places import TOP

SCRIPTS = TOP / "app" / "ui" / "page" / "static" / "js"
SCRIPT = (SCRIPTS / "help.js").read_text("utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("help")) as desk:
        yield desk


@pytest.mark.parametrize("spoken", ["en", "de", "zh"])
def test_the_owner_reads_every_topic(desk: Desk, spoken: str) -> None:
    topics = {each["id"]: each for each in help_view.list_topics(desk, True, spoken)}
    assert list(topics) == [each.id for each in TOPICS]
    assert all(line["text"] and "{" not in line["text"].replace("{red|blue}", "") for each in topics.values() for line in each["lines"])
    voices, painters = ([line["term"] for line in topics[each]["lines"]] for each in ("voices", "painters"))
    named = {"en": (["Starter voice"], ["Starter painter"]), "de": (["Startstimme"], ["Startmaler"]), "zh": (["入门语音"], ["入门画师"])}
    assert (voices, painters) == named[spoken]


SEARCHED = {
    "updates": {"en": "update", "de": "update", "zh": "更新", "ja": "更新"},
    "pause": {"en": "battery", "de": "akku", "zh": "电池", "ja": "バッテリー"},
    "notify": {"en": "phone", "de": "handy", "zh": "手机", "ja": "スマートフォン"},
    "phone": {"en": "microphone", "de": "mikrofon", "zh": "麦克风", "ja": "マイク"},
}


@pytest.mark.parametrize("spoken", ["en", "de", "zh", "ja"])
def test_what_people_search_for_is_found(desk: Desk, spoken: str) -> None:
    said = {each["id"]: str(each).lower() for each in help_view.list_topics(desk, True, spoken)}
    for topic, words in SEARCHED.items():
        assert words[spoken] in said[topic]
    assert "ntfy" in said["notify"] and "https" in said["phone"]


def test_guests_are_told_nothing_of_the_machine_and_its_models(desk: Desk) -> None:
    topics = [each["id"] for each in help_view.list_topics(desk, False, "en")]
    assert topics == ["first", "script", "prompt", "keys", "words", "notify", "phone", "away"]
    said = str(list(help_view.list_topics(desk, False, "en")))
    assert "Models tab" not in said and "Machine tab" not in said and "this computer" not in said


def test_a_voice_is_described_by_what_its_family_says() -> None:
    assert "(laughs)" in str(help_view.describe_voice(DIA)) and "[S1], [S2]" in str(help_view.describe_voice(DIA))
    brought = {"alba": Path("alba.safetensors"), "marius": Path("marius.safetensors")}
    pocket = VoiceLimits(languages=("de", "pt-BR"), nonverbals=frozenset(), brought=brought, needs_transcript=False)
    said = str(help_view.describe_voice(pocket))
    assert "German, Portuguese" in said and "alba, marius" in said and "without its words" in said and "no laughs" in said
    assert "own voices only" in str(help_view.describe_voice(VoiceLimits(imitates=False)))


def test_a_painter_of_every_family_is_described() -> None:
    said = {each.family: str(help_view.describe_painter(each)) for each in catalog.CATALOG if each.kind == "picture" and not each.starter}
    assert said.keys() == FAMILIES.keys()
    assert "Short phrases" in said["sd15"] and "English or Chinese" in said["z-image"] and "Whole sentences, in English;" in said["flux"]
    assert "Negative prompt: none" in said["flux"] and "Negative prompt: yes" in said["sd3"]


def read_table(name: str) -> dict[str, str]:
    """Return which topics a table of the script leads to."""
    return dict(re.findall(r'"?([\w.#-]+)"?: "([\w-]+)"', re.findall(rf"{name} = {{(.*?)}}", SCRIPT, re.DOTALL)[0]))


def test_every_cure_and_every_tab_leads_to_a_topic() -> None:
    of_tabs, of_cures, of_cards, of_codes = map(read_table, ("OF_TABS", "OF_CURES", "OF_CARDS", "OF_CODES"))
    assert {*of_tabs.values(), *of_cures.values(), *of_cards.values(), *of_codes.values(), "keys"} <= {each.id for each in TOPICS}
    assert set(CURES) - of_cures.keys() == {"use", "get", "voices"}, "models, by their first word; and a script's own"


def test_every_dialog_that_shows_a_failure_has_a_topic() -> None:
    """The tabs' cards are asked in a browser."""
    scripts = "".join(each.read_text("utf-8") for each in SCRIPTS.glob("*.js"))
    dialogs = re.findall(r'<dialog class="(?:[\w-]+ )*([\w-]+)"[^`]*class="h-trouble', scripts)
    assert dialogs and {f".{each}" for each in dialogs} <= read_table("OF_CARDS").keys()
