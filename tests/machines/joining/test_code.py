"""Codes as people type them, proofs, versions, names: the pure parts of joining."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.machines.joining.channel import digest_transcript, is_proof, prove
from app.machines.joining.code import Code, digest_secret, draw_secret, parse_code
from app.machines.joining.register import NAME_LETTERS, Register, clean_name
from app.machines.joining.versions import COMPARED, find_difference, parse_versions


def test_a_code_survives_how_it_is_typed() -> None:
    for code in (Code("192.168.1.20", 41000, draw_secret()), Code("fe80::1", 9, draw_secret()), Code("studio.local", 65535, draw_secret())):
        assert parse_code(str(code)) == parse_code(f"  hearth://{str(code).lower()} ") == code
        secret = code.secret.replace("O", "0").replace("I", "1").replace("B", "8")
        assert parse_code(f"{str(code).rpartition('/')[0]}/{secret}") == code
    assert len({draw_secret() for _ in range(100)}) == 100


@pytest.mark.parametrize("words", ["", "abc", "host/ABCD", "host:1/ABCD-EFGH-IJKL-MNO", "host:0/ABCDEFGHIJKLMNOP", "host:65536/ABCDEFGHIJKLMNOP",
                                   "ho st:/ABCDEFGHIJKLMNOP", "host:1/ABCD-EFGH-IJKL-MN9P", "[::1]/ABCDEFGHIJKLMNOP", "a@b:1/ABCDEFGHIJKLMNOP"])  # fmt: skip
def test_what_is_no_code_is_told(words: str) -> None:
    with pytest.raises(Trouble):
        parse_code(words)


def test_a_proof_holds_for_one_side_one_secret_and_one_conversation() -> None:
    key, said = digest_secret("ABCDEFGHIJKLMNOP"), digest_transcript([b"a", b"bc"])
    proof = prove(key, "helper", said)
    assert is_proof(key, "helper", said, proof)
    assert not is_proof(key, "main", said, proof), "a proof sent back"
    assert not is_proof(digest_secret("ABCDEFGHIJKLMNOQ"), "helper", said, proof)
    assert not is_proof(key, "helper", digest_transcript([b"ab", b"c"]), proof), "the same bytes, cut elsewhere"
    for odd in (None, 3, "", "é", proof.upper()):
        assert not is_proof(key, "helper", said, odd)


def test_only_equal_versions_go_together() -> None:
    own = dict.fromkeys(COMPARED, "1.0")
    assert find_difference(own, parse_versions(own)) is None
    wrong: tuple[object, ...] = (None, [], {**own, "dask": "x" * 41}, {**own, "Python": "<b>"}, {})
    for odd in wrong:
        told = find_difference(own, parse_versions(odd))
        assert told is not None and "unknown" in str(told)


def test_a_name_from_elsewhere_is_one_short_line() -> None:
    assert clean_name("  a\nb\u202ec\0 ") == "a b c"
    assert clean_name("x" * 1000) == "x" * NAME_LETTERS and clean_name(None) == "None" and clean_name("\n") == "?"


def test_the_register_keeps_and_revokes(tmp_path: Path) -> None:
    register, id_ = Register(tmp_path / "folder"), "0" * 32
    assert register.list_machines() == [] and register.find(id_) is None
    kept = register.add(id_, "Box")
    assert Register(tmp_path / "folder").find(id_) == kept
    register.add("f" * 32, "Other")
    register.remove(id_)
    assert [each.name for each in register.list_machines()] == ["Other"]


def test_what_another_process_changes_is_seen_at_once(tmp_path: Path) -> None:
    register, other = Register(tmp_path), Register(tmp_path)
    for name in ("Box", "Fox", "Cot"):  # of one length, so the file's size says nothing
        other.add("0" * 32, name)
        assert [each.name for each in register.list_machines()] == [name]
    assert register.list_machines() == other.list_machines()
    other.remove("0" * 32)
    assert register.find("0" * 32) is None
