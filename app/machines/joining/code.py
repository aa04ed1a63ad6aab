"""The code that the main machine shows: where it can be reached, and a secret that works once."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble

SECRET_BYTES: Final = 10
"""It has 80 bits, written as 16 letters and digits."""
_LETTERS: Final = re.compile(r"[A-Z2-7]{16}")
_ADDRESS: Final = re.compile(r"\[(?P<six>[0-9A-Fa-f:.%\w]+)\]:(?P<port6>\d{1,5})|(?P<host>[\w.-]+):(?P<port>\d{1,5})")
_ALIKE: Final = str.maketrans("018", "OIB")
"""Each digit that base32 leaves out becomes the letter that people take for it."""
PORT_MOST: Final = 65535


@dataclass(frozen=True, slots=True)
class Code:
    host: str
    port: int
    secret: str
    """It is written as 16 letters and digits."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}/{'-'.join(self.secret[start : start + 4] for start in range(0, len(self.secret), 4))}"


def draw_secret() -> str:
    return base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def digest_secret(secret: str) -> bytes:
    """Return the key that both sides prove to know; the secret itself never travels."""
    return hashlib.sha256(b"hearth pairing 1\0" + secret.encode()).digest()


def parse_code(words: str) -> Code:
    """Parse a code as a person types it: spaces, small letters, a 0 for an O; raise Trouble if it is none."""
    address, _, secret = "".join(words.split()).removeprefix("hearth://").rpartition("/")
    secret = secret.replace("-", "").upper().translate(_ALIKE)
    found = _ADDRESS.fullmatch(address)
    if found is None or not _LETTERS.fullmatch(secret) or not 0 < int(found["port"] or found["port6"]) <= PORT_MOST:
        raise Trouble(
            say(
                "machines.not-a-code",
                "{words} is not a code of Hearth's. It looks like 192.168.1.20:41000/ABCD-EFGH-IJKL-MNOP; copy it from the Machine tab of the "
                "other computer.",
                words=words[:80],
            )
        )
    return Code(found["host"] or found["six"], int(found["port"] or found["port6"]), secret)
