"""Machines mean the same model by the same name: the revisions of its repositories, or the hash of its files."""

from __future__ import annotations

from pathlib import Path

from app.engine.models.catalog import BY_ID
from app.engine.models.on_disk import Located
from app.machines.tasks.portable_models import has_model, has_other_revision, name_model, read_id


def test_another_revision_has_another_name() -> None:
    model = BY_ID["sd15"]
    one = Located(Path("x/snapshots/aaa"), {"few-steps": Path("y/snapshots/bbb")})
    same = Located(Path("elsewhere/snapshots/aaa"), {"few-steps": Path("z/bbb")})
    others = (Located(Path("x/ccc"), one.companions), Located(one.folder, {"few-steps": Path("ccc")}), Located(one.folder))
    assert name_model(model, one) == name_model(model, same) and read_id(name_model(model, one)) == "sd15"
    assert all(name_model(model, each) != name_model(model, one) for each in others)
    assert name_model(model, None) == "sd15"
    starter = BY_ID["starter-painter"]
    assert name_model(starter, Located(Path(starter.path))) == "starter-painter"


def test_which_machine_has_a_model() -> None:
    there = {"sd15@aaa", "starter-painter", "files:1"}
    assert has_model(there, "sd15@aaa") and not has_model(there, "sd15@bbb") and has_model(there, "sd15")
    assert has_model(there, "files:1") and not has_model(there, "files:2") and not has_model(there, "sdxl")
    assert has_other_revision(there, "sd15@bbb")
    assert not any(has_other_revision(there, name) for name in ("sd15@aaa", "sdxl@aaa", "files:2", "../sd15"))
    assert read_id("no-such@aaa") == read_id("files:1") == read_id("/etc/passwd") == ""
