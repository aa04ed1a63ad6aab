"""Test what the window knows of LoRAs: which are shown first, what pictures were made with them, and what comes back with a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.ui.api.a1111_lists import list_lora_files
from app.ui.state.desk import Desk
from app.ui.state.lora_desk import SHOWN_MOST, Chosen, read_chosen, write_chosen
from app.ui.tabs.loras import row_view
from tests.engine.models.test_lora_library import write_lora
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at
from tests.support.waiting import until


def names(desk: Desk, words: str = "", chosen: tuple[str, ...] = (), model: str = "sd15") -> list[str]:
    until(lambda: desk.loras.search("", None, ())[2] == 0)
    return [each.file.name for each in desk.loras.search(words, catalog.BY_ID[model], chosen)[0]]


def test_what_fits_and_was_used_last_goes_first(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        folder = desk.keeper.home.loras
        paths = [str(write_lora(folder / f"{name}.safetensors", **{"modelspec.trigger_phrase": f"word {name}"})) for name in "abc"]
        (folder / "0broken.safetensors").write_bytes(b"junk")
        keep_creation(desk, PictureRequest("x", loras=(Lora(paths[1], 0.4),)), "one.png")
        keep_creation(desk, PictureRequest("x", loras=(Lora(paths[2], 0.9), Lora(paths[1], 0.6))), "two.png")
        newest = keep_creation(desk, PictureRequest("x", loras=(Lora(paths[1], -0.5),)), "three.png").id
        assert names(desk) == ["b", "c", "a", "0broken"]
        assert names(desk, "WORD a") == ["a"] and names(desk, "word a", ("c",)) == ["c", "a"]
        first = desk.loras.search("", catalog.BY_ID["sdxl"], ())[0][0]
        assert first.misfit is not None, "all of SD 1.5"
        used = next(each for each in desk.loras.search("", None, ())[0] if each.file.name == "b")
        assert (used.weight, used.picture) == (-0.5, newest)
        desk.keeper.shelf.delete(newest)
        assert next(each for each in desk.loras.search("", None, ())[0] if each.file.name == "b").weight == 0.6


def test_a_damaged_row_of_the_shelf_hides_no_other(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        path = str(write_lora(desk.keeper.home.loras / "a.safetensors"))
        keep_creation(desk, PictureRequest("x", loras=(Lora(path, 0.4),)), "one.png")
        for place, odd in enumerate(("{", "[]", '{"loras": 5}', '{"loras": [5, {"path": 3, "weight": "x"}]}')):
            broken = keep_creation(desk, PictureRequest("x"), f"{place}.png")
            desk.keeper.database.write("UPDATE creations SET request=? WHERE id=?", odd, broken.id)
        assert desk.keeper.shelf.list_loras()[path][0] == 0.4


def test_many_are_a_matter_of_searching(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        for place in range(SHOWN_MOST + 5):
            write_lora(desk.keeper.home.loras / f"{place:03}.safetensors")
        shown, more, _ = desk.loras.search("", None, ("044", "gone"))
        assert [each.file.name for each in shown[:2]] == ["044", "000"] and (len(shown), more) == (SHOWN_MOST, 5)


def test_what_is_in_use_comes_back_by_path_or_name(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        path = str(write_lora(desk.keeper.home.loras / "styles" / "ink.safetensors"))
        other, word = str(write_lora(tmp_path / "other.safetensors")), str(write_lora(desk.keeper.home.loras / "bad.safetensors"))
        asked = (
            Lora(path, 0.5),
            Lora("ink.safetensors", 0.7),
            Lora(other, 2.0),
            Lora("gone.safetensors"),
            Lora(word, word="bad"),
            Lora("/x", word="lost"),
        )
        text, missing = desk.loras.restore(asked, ours=True)
        assert read_chosen(text) == [Chosen("styles/ink", 0.5), Chosen("styles/ink", 0.7), Chosen(other, 2.0)] and missing == (
            "gone",
            "lost",
        )
        assert desk.loras.parse(text) == (Lora(path, 0.7), Lora(other, 2.0))
        assert desk.loras.restore(asked, ours=False)[1] == ("other", "gone", "lost"), "a stranger's picture names no file of this computer"
        with pytest.raises(Trouble) as told:
            desk.loras.parse(write_chosen([Chosen("gone", 1.0)]))
        assert told.value.sentence.key == "lora.gone"


@pytest.mark.parametrize("text", ["", "{", "5", "[5]", '[{"name": 5, "weight": 1}]', '[{"name": "a"}]', '[{"name": "a", "weight": "x"}]'])
def test_nonsense_is_nothing(text: str) -> None:
    assert read_chosen(text) == []


def test_what_lies_in_several_places_is_listed_once(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        own, other = desk.keeper.home.loras, tmp_path / "a tool"
        paths = [
            write_lora(folder / name, ss_tag="same")
            for folder, name in ((own, "z.safetensors"), (other, "b.safetensors"), (other, "a/z.safetensors"))
        ]
        write_lora(other / "different.safetensors", ss_tag="none")  # of one size
        desk.loras.add_folder(str(other))
        keep_creation(desk, PictureRequest("x", loras=(Lora(str(paths[0]), 0.9),)), "one.png")
        newest = keep_creation(desk, PictureRequest("x", loras=(Lora(str(paths[1]), 0.4),)), "two.png").id
        assert names(desk) == ["z", "different"]
        (shown, _), more, _ = desk.loras.search("", None, ())
        assert (shown.places, shown.weight, shown.picture, more) == ((paths[0], paths[2], paths[1]), 0.4, newest, 0)
        assert row_view(shown, "en")["places"] == f"In 3 places: {paths[0]}, {paths[2]}, {paths[1]}"
        assert [row_view(each, "en")["places"] for each in desk.loras.search("different", None, ())[0]] == [""]
        assert names(desk, "b") == ["z"], "found by another of its names"
        assert names(desk, "nothing", ("b", "b")) == ["b"] and names(desk, "", ("b", "a/z")) == ["b", "a/z", "different"], (
            "what is in use stays so"
        )
        assert desk.loras.parse(write_chosen([Chosen("b", 0.5)])) == (Lora(str(paths[1]), 0.5),)
        assert [each["name"] for each in list_lora_files(desk)] == ["z", "b", "different"]


def test_the_same_file_is_kept_once_and_another_of_its_name_beside_it(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        for place, title in enumerate(("one", "one", "two")):
            write_lora(tmp_path / str(place) / "ink.safetensors", **{"modelspec.title": title})
        assert desk.loras.take_in(str(tmp_path / str(place) / "ink.safetensors") for place in range(3)) == ["ink", "ink", "ink 2"]
        assert sorted(each.name for each in desk.keeper.home.loras.iterdir()) == ["ink 2.safetensors", "ink.safetensors"]


def test_other_folders_are_named_and_left(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        path = write_lora(tmp_path / "mine" / "far.safetensors")
        desk.loras.add_folder(f'"{path.parent}"')
        assert names(desk) == ["far"]
        with pytest.raises(Trouble):
            desk.loras.add_folder(str(tmp_path / "nowhere"))
        desk.loras.forget_folder(str(path.parent))
        assert names(desk) == [] and path.is_file()
