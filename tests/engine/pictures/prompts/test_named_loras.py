"""Test that a prompt's tags and words find their LoRAs and embeddings, and that what does not fit is told before anything is loaded."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog, lora_library
from app.engine.models.fingerprint import hash_whole
from app.engine.pictures.files.lora_tags import split_tags
from app.engine.pictures.prompts.named_loras import check_fit, complete, count_copies_once, leave_out_words

KOHYA = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight"


def write(path: Path, name: str, shape: tuple[int, ...]) -> str:
    size = 2 * shape[0] * shape[1]
    header = json.dumps({name: {"dtype": "F16", "shape": shape, "data_offsets": [0, size]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    return str(path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path / "models")


@pytest.mark.parametrize(
    ("prompt", "bare", "tags"),
    [
        ("a cat <lora:ink:0.8> at dusk", "a cat at dusk", (("ink", 0.8),)),
        ("a cat, <lora:ink>,<lyco:b c:-1:x>", "a cat", (("ink", 1.0), ("b c", -1.0))),
        ("a <lora:ink:nan> b", "a b", (("ink", 1.0),)),
        ("a  cat <3 <lora:>", "a  cat <3 <lora:>", ()),
    ],
)
def test_tags_leave_the_prompt(prompt: str, bare: str, tags: tuple[tuple[str, float], ...]) -> None:
    assert split_tags(prompt) == (bare, tags)


def test_a_request_gets_what_its_prompt_names(home: Home) -> None:
    ink, bad = (
        write(home.loras / "styles" / "Ink.safetensors", KOHYA, (1, 768)),
        write(home.loras / "badhands.safetensors", "emb_params", (2, 768)),
    )
    write(home.loras / "cat.safetensors", KOHYA, (1, 768))  # a word of the prompt, but no embedding
    asked = PictureRequest(
        "a cat <lora:ink:0.7>", negative="(BadHands:1.2), ugly", loras=(Lora(ink, 0.2), Lora("styles/ink", 0.4), Lora("/other", 0.5))
    )
    done = complete(home, asked)
    assert done.prompt == "a cat" and done.loras == (Lora(ink, 0.7), Lora("/other", 0.5), Lora(bad, 1.0, "badhands"))
    assert complete(home, done) == done
    assert complete(home, PictureRequest("badhandsome. A cat")).loras == ()
    assert complete(home, PictureRequest("many badhands.")).loras == (Lora(bad, 1.0, "badhands"),)


def test_a_copy_by_another_name_counts_once(home: Home, tmp_path: Path) -> None:
    ink = write(home.loras / "ink.safetensors", KOHYA, (1, 768))
    copy = write(tmp_path / "other" / "old.safetensors", KOHYA, (1, 768))
    home.settings.write_text(json.dumps({"loras": [str(tmp_path / "other")]}))
    other = Path(write(home.loras / "oil.safetensors", KOHYA, (1, 768)))
    other.write_bytes(other.read_bytes()[:-1] + b"1")
    asked = PictureRequest("a cat <lora:old:0.7> <lora:oil:0.3>", loras=(Lora(ink, 0.2), Lora("/gone", 0.5), Lora("/gone too", 0.5)))
    counted, other_way = (count_copies_once(complete(home, each)) for each in (asked, PictureRequest("a cat <lora:old> <lora:ink:0.4>")))
    assert counted.loras == (Lora(ink, 0.7), Lora("/gone", 0.5), Lora("/gone too", 0.5), Lora(str(other), 0.3))
    assert other_way.loras == (Lora(copy, 0.4),)


def test_copies_are_read_once_until_one_changes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large ones were read whole for every picture, and before its job was in the queue."""
    read = list[str]()
    monkeypatch.setattr(lora_library, "hash_whole", lambda path: (read.append(path.name), hash_whole(path))[1])
    ink, oil = (write(home.loras / f"{name}.safetensors", KOHYA, (1, 768)) for name in ("ink", "oil"))
    asked = complete(home, PictureRequest("a cat", loras=(Lora(ink), Lora(oil))))
    assert asked.loras == (Lora(ink), Lora(oil)) and not read
    assert [count_copies_once(asked).loras for _ in range(3)] == [(Lora(ink),)] * 3
    assert read == ["ink.safetensors", "oil.safetensors"]
    stat = Path(oil).stat()
    os.utime(oil, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    assert count_copies_once(asked).loras == (Lora(ink),) and read == ["ink.safetensors", "oil.safetensors", "oil.safetensors"]


def test_a_line_of_a_wildcard_may_name_a_lora(home: Home) -> None:
    ink = write(home.loras / "ink.safetensors", KOHYA, (1, 768))
    (home.root / "wildcards").mkdir()
    (home.root / "wildcards" / "style.txt").write_text("in ink <lora:ink:0.5>", "utf-8")
    done = complete(home, PictureRequest("a cat, __style__"))
    assert (done.prompt, done.loras) == ("a cat, in ink", (Lora(ink, 0.5),))


def test_alternatives_of_loras_and_of_the_negative_prompt_are_chosen_once_for_all_pictures(home: Home) -> None:
    ink, oil = (write(home.loras / f"{name}.safetensors", KOHYA, (1, 768)) for name in ("ink", "oil"))
    (home.root / "wildcards").mkdir()
    (home.root / "wildcards" / "art.txt").write_text("<lora:ink:0.5> in ink\n<lora:oil:0.5> in oil", "utf-8")
    for prompt in ("{<lora:ink:0.5> in ink|<lora:oil:0.5> in oil}, {red|blue}", "__art__, {red|blue}"):
        found = {
            (done.prompt, done.loras, done.negative)
            for done in (complete(home, PictureRequest(prompt, negative="{ugly|dark}")) for _ in range(60))
        }
        assert found == {
            (f"in {name}, {{red|blue}}", (Lora(file, 0.5),), bad) for name, file in (("ink", ink), ("oil", oil)) for bad in ("ugly", "dark")
        }
    seeded = [complete(home, PictureRequest("{<lora:ink>|<lora:oil>} a", seed=7)) for _ in range(9)]
    assert len(set(seeded)) == 1


def test_a_word_that_another_familys_embedding_has_stays_a_word(home: Home) -> None:
    fantasy = write(home.loras / "fantasy.safetensors", "emb_params", (2, 768))
    request = complete(home, PictureRequest("a fantasy castle"))
    assert request.loras == (Lora(fantasy, word="fantasy"),)
    check_fit(request, catalog.BY_ID["z-image-turbo"])
    assert leave_out_words(request, catalog.BY_ID["sd15"]) == (request, [])
    with pytest.raises(Trouble, match="It is an embedding"):
        check_fit(PictureRequest("a castle", loras=(Lora(fantasy),)), catalog.BY_ID["sd15"])
    plain, notes = leave_out_words(request, catalog.BY_ID["z-image-turbo"])
    assert plain.loras == () and plain.prompt == request.prompt and [note.key for note in notes] == ["lora.only-word"]


def test_a_word_in_several_folders_is_read_once_for_each_family(home: Home, tmp_path: Path) -> None:
    other = tmp_path / "embeddings"
    home.settings.write_text(json.dumps({"loras": [str(other)]}))
    own = write(home.loras / "styles" / "bad.safetensors", "emb_params", (2, 768))
    for name in ("bad", "again/BAD"):
        copy = write(other / f"{name}.safetensors", "emb_params", (2, 768))
    xl = write(other / "xl" / "bad.safetensors", "clip_g", (2, 1280))
    done = complete(home, PictureRequest("a bad cat"))
    assert done.loras == (Lora(own, word="bad"), Lora(xl, word="bad"))
    assert complete(home, done) == done
    asked = PictureRequest("a bad cat", loras=(Lora(copy, word="BAD"),))
    assert complete(home, asked).loras == (*asked.loras, Lora(xl, word="bad")), "what a picture was made with goes first"
    assert leave_out_words(done, catalog.BY_ID["sd15"]) == (replace(done, loras=done.loras[:1]), [])


def test_a_tag_that_names_none_is_told(home: Home) -> None:
    write(home.loras / "inkwash.safetensors", KOHYA, (1, 768))
    for name, key in (("inkwsh", "lora.unknown-near"), ("water", "lora.unknown")):
        with pytest.raises(Trouble) as told:
            complete(home, PictureRequest(f"a <lora:{name}:1>"))
        assert told.value.sentence.key == key


def test_a_weight_out_of_range_is_told(home: Home) -> None:
    write(home.loras / "ink.safetensors", KOHYA, (1, 768))
    with pytest.raises(Trouble) as told:
        complete(home, PictureRequest("a <lora:ink:99>"))
    assert told.value.sentence.key == "request.range"


def test_another_familys_is_told_before_anything_is_loaded(home: Home) -> None:
    request = PictureRequest("a", loras=(Lora(write(home.loras / "ink.safetensors", KOHYA, (1, 768))), Lora("missing")))
    check_fit(request, catalog.BY_ID["sd15"])
    with pytest.raises(Trouble) as told:
        check_fit(request, catalog.BY_ID["sdxl"])
    assert told.value.sentence.key == "lora.unfit" and "Made for SD 1.5" in str(told.value)
