"""A helper looks for its main machine only while that is gone, and stores an address only once it has answered there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="the extra machines is not installed")

from app.machines import main_finder
from app.machines.joining import certificates
from app.machines.joining.certificates import read_authority
from app.machines.joining.join import find_membership
from app.machines.main_finder import MainFinder


def test_it_looks_while_the_main_machine_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, asked, open_ = list[Any](), list[str](), list[object]()

    class Near:
        def __init__(self) -> None:
            open_.append(self)

        def find(self, id_: str) -> list[tuple[str, int]]:
            asked.append(id_)
            return [("192.168.1.30", 4000), ("10.0.0.5", 4000)]

        def close(self) -> None:
            open_.remove(self)

    main = certificates.make_main(tmp_path / "main")
    _, own = certificates.sign_request(tmp_path / "main", certificates.make_request(tmp_path / "helper"))
    certificates.keep_membership(tmp_path / "helper", main.authority.read_text(), own)
    (tmp_path / "helper" / "lends-to.json").write_text(json.dumps({"name": "Desk", "host": "192.168.1.20", "port": 4000}))
    monkeypatch.setattr(main_finder, "Nearby", Near)
    finder = MainFinder(tmp_path / "helper", lambda op, **values: told.append((op, values)))
    finder.look(False)
    assert open_ == [], "it may start again"
    monkeypatch.setattr(main_finder, "PATIENCE_S", 0.0)
    for _ in range(3):
        finder.look(False)
    assert told == [("announced", {"addresses": ["tls://192.168.1.30:4000", "tls://10.0.0.5:4000"]})] and {*asked} == {
        read_authority(tmp_path / "main")
    }
    finder.look(True)
    assert open_ == []
    finder.note_move("tls://192.168.1.30:4001")
    found = find_membership(tmp_path / "helper")
    assert found is not None and (found[0].name, found[0].host, found[0].port) == ("Desk", "192.168.1.30", 4001)
    finder.note_move("tls://[fd00::1]:5")
    found = find_membership(tmp_path / "helper")
    assert found is not None and found[0].host == "fd00::1"
