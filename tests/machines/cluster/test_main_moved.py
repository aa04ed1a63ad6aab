"""A helper looks for its main machine only while that is gone, and stores an address only once it has answered there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines.cluster import helper_process
from app.machines.joining import certificates
from app.machines.joining.certificates import read_authority
from app.machines.joining.join import find_membership


def test_it_looks_while_the_main_machine_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, open_, greeted, there = list[str](), list[object](), list[str](), ["tls://192.168.1.20:4000"]

    class Near:
        def __init__(self) -> None:
            open_.append(self)

        def find(self, id_: str) -> list[tuple[str, int]]:
            asked.append(id_)
            return [("10.0.0.5", 4000), ("192.168.1.30", 4001), ("fd00::1", 5)]

        def close(self) -> None:
            open_.remove(self)

    async def greet(address: str) -> bool:
        greeted.append(address)
        if address not in there:
            raise ConnectionError
        return True

    main = certificates.make_main(tmp_path / "main")
    _, own = certificates.sign_request(tmp_path / "main", certificates.make_request(tmp_path / "helper"))
    certificates.keep_membership(tmp_path / "helper", main.authority.read_text(), own)
    (tmp_path / "helper" / "lends-to.json").write_text(json.dumps({"name": "Desk", "host": "192.168.1.20", "port": 4000}))
    monkeypatch.setattr(helper_process, "Nearby", Near)

    def find_host() -> Any:
        found = find_membership(tmp_path / "helper")
        return found and (found[0].name, found[0].host, found[0].port)

    async def look() -> None:
        arguments = {"folder": str(tmp_path / "helper"), "scratch": str(tmp_path), "main": "tls://192.168.1.20:4000"}
        pipe: Any = SimpleNamespace(tell=lambda op, **values: None)
        helper: Any = helper_process.Helper(pipe, arguments)
        helper._greet = greet
        assert await helper._find_main() and open_ == [] and greeted == ["tls://192.168.1.20:4000"], "it is where it was"
        there.clear()
        for _ in range(2):
            with pytest.raises(OSError):
                await helper._find_main()
        assert len(open_) == 1 and {*asked} == {read_authority(tmp_path / "main")}
        assert find_host() == ("Desk", "192.168.1.20", 4000), "nobody there has its certificate"
        there.append("tls://192.168.1.30:4001")
        assert await helper._find_main() and find_host() == ("Desk", "192.168.1.30", 4001)
        there[:] = ["tls://[fd00::1]:5"]
        assert await helper._find_main() and find_host() == ("Desk", "fd00::1", 5) and greeted[-1] == "tls://[fd00::1]:5"
        await helper._look_no_more()
        assert open_ == []

    asyncio.run(look())
