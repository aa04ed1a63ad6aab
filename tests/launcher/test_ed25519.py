"""Ed25519 by the vectors of RFC 8032 and against another implementation, also with every byte of a signature changed."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.launcher.ed25519 import ORDER, P, verify

VECTORS = {
    "empty": (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    "one byte": (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    "two bytes": (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    "a hash": (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
}  # fmt: skip
"""Section 7.1 has these keys, messages and signatures."""


@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_of_the_rfc(name: str) -> None:
    key, message, signature = map(bytes.fromhex, VECTORS[name])
    assert verify(key, message, signature)
    assert not verify(key, message + b"x", signature) and not verify(
        bytes.fromhex(VECTORS["empty" if name != "empty" else "a hash"][0]), message, signature
    )


def test_it_agrees_with_another_implementation_and_takes_no_changed_byte() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    key, message = private.public_key().public_bytes_raw(), b"0.2.0" * 20
    signature = private.sign(message)
    assert verify(key, message, signature)
    for place in range(64):
        changed = bytearray(signature)
        changed[place] ^= 1 << place % 8
        assert not verify(key, message, bytes(changed)), place


def test_what_is_malformed_is_no_signature() -> None:
    key, message, signature = map(bytes.fromhex, VECTORS["one byte"])
    scalar = int.from_bytes(signature[32:], "little")
    for wrong in (
        b"",
        signature[:-1],
        signature + b"\0",
        bytes(64),
        b"\xff" * 64,
        signature[:32] + (scalar + ORDER).to_bytes(32, "little"),
    ):
        assert not verify(key, message, wrong), "also a second writing of the same number"
    for wrong in (b"", key[:-1], b"\xff" * 32, (2).to_bytes(32, "little")):
        assert not verify(wrong, message, signature)


def test_a_point_has_one_writing() -> None:
    """Of the neutral element, whose signature of anything is R = sB; read by hand, as no library makes it."""
    base = (4 * pow(5, -1, P) % P).to_bytes(32, "little")
    signature = base + (1).to_bytes(32, "little")
    assert verify((1).to_bytes(32, "little"), b"anything", signature)
    for wrong in (P + 1, 1 | 1 << 255):
        assert not verify(wrong.to_bytes(32, "little"), b"anything", signature), hex(wrong)
