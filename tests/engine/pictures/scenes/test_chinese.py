"""Chinese captions are read by the painter's own dictionary, and what it knows nothing of is refused, never painted as something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.paths import assets, home
from app.base.trouble import Trouble
from app.engine import kinds
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.pictures.prompts.starter_words import list_unknown, match_prompt
from app.engine.pictures.scenes.chinese import _OTHERS, _WORDS, NOUNS, is_chinese, read_chinese, write_chinese
from app.engine.pictures.scenes.match import understand
from app.engine.pictures.scenes.tables import read_card, read_tables
from app.engine.pictures.scenes.words import split_phrases
from training.pictures.scenes import scene

PAINTER = assets() / "starter" / "painter"
TABLES = read_tables(PAINTER)


@pytest.mark.parametrize(
    ("prompt", "caption", "lost"),
    [
        ("彩虹下的房子", "green hills with a house and a rainbow", ()),
        ("一只红色的小船在日落的海上", "the sea at sunset with a red boat", ()),
        ("两只猫和一只黑色的狗", "two cats and a black dog", ()),
        ("小猫在房子的左边", "a cat at the left and a house at the right", ()),
        ("一個紅色的氣球", "a red balloon", ()),
        ("雪地里有一个雪人，没有树", "snowy hills with a snowman", ()),
        ("水墨山水", "green hills with mountains behind", ("水墨",)),
        ("晚上的中国龙和一座城堡", "green hills at night with a castle", ("中国龙",)),
        ("红色的 car", "a red car", ()),
        ("画一张可爱的图片", read_card(PAINTER)["examples"][2], ()),
        ("日出时的沙漠", "a desert at sunset", ("日出",)),
        ("一只熊猫和一只狗", "a dog", ("熊猫",)),
        ("开心的狗", "a dog", ("开心",)),
        ("特别大的房子", "a big house", ("特别",)),
        ("一座别墅和一棵树", "a house and a tree", ()),
    ],
)
def test_a_chinese_caption_is_painted_as_it_is_meant(prompt: str, caption: str, lost: tuple[str, ...]) -> None:
    match = match_prompt(PAINTER, prompt)
    assert (match.caption, match.lost) == (caption, lost)
    assert [prompt[each.begin : each.end] for each in list_unknown(PAINTER, prompt, match.lost)] == list(lost)


def test_every_scene_is_read_back_from_its_chinese() -> None:
    for seed in range(300):
        wanted = scene(seed)
        found = understand(read_chinese(write_chinese(wanted)), "", TABLES)
        assert not found.lost, (write_chinese(wanted), found.lost)
        assert {each.kind for each in found.scene.groups} == {each.kind for each in wanted.groups}, write_chinese(wanted)
        assert (found.scene.ground, found.scene.weather, found.scene.style) == (wanted.ground, wanted.weather, wanted.style)


def test_the_dictionary_speaks_the_cards_words() -> None:
    assert set(NOUNS) == set(TABLES.grammar["nouns"])
    for chinese, english in _WORDS.items():
        assert all(each.role != "unknown" for each in split_phrases(english, TABLES)), (chinese, english)
    assert not _OTHERS & set(_WORDS)


@pytest.mark.parametrize("prompt", ["龙", "一条马路", "无人机", "a dragon breathing fire", "quarterly report"])
def test_what_is_not_known_at_all_is_refused_before_it_is_painted(prompt: str, tmp_path: Path) -> None:
    """It was answered by an unrelated picture. What may be tried stands in the refusal, in Chinese for a Chinese prompt."""
    with pytest.raises(Trouble) as refused:
        kinds.check(home(tmp_path), PictureRequest(prompt, "starter-painter"), catalog.find("starter-painter"))
    assert refused.value.sentence.key == "starter.unknown"
    offered = match_prompt(PAINTER, prompt).offered
    assert offered and all(match_prompt(PAINTER, each).caption for each in offered)
    assert all("的" in each for each in offered) == is_chinese(prompt)
