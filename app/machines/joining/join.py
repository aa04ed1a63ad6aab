"""The helper's side of pairing: connect by a code, prove to know its secret, and keep a certificate of one's own key."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.sentence import Sentence, say
from app.base.stored_json import read_stored
from app.base.trouble import Trouble
from app.machines.joining import certificates
from app.machines.joining.certificates import Identity
from app.machines.joining.channel import NONCE_BYTES, PATIENCE_S, Broken, Channel, digest_transcript, is_proof, prove
from app.machines.joining.code import PORT_MOST, Code, digest_secret
from app.machines.joining.register import clean_name
from app.machines.joining.versions import find_difference, parse_versions, read_versions

_FILE: Final = "lends-to.json"
REFUSALS: Final[Mapping[str, Sentence]] = {
    "secret": say(
        "machines.wrong-code", "This is not the code that the other computer shows now. Check its letters, or make a new one there."
    ),
    "over": say("machines.code-used", "This code was already used, or its ten minutes are over. Make a new one on the other computer."),
}


class _File(TypedDict, total=False):
    name: str
    host: str
    port: int


_SCHEMA: Final = TypeAdapter(_File)


@dataclass(frozen=True, slots=True)
class Membership:
    """The main machine that this one helps."""

    name: str
    host: str
    port: int


def join(code: Code, folder: Path, name: str) -> Membership:
    """Pair with the main machine that showed the code; raise Trouble for whatever prevents it. `folder` is the helper's own;
    what it held before stays until the new pairing is proven."""
    attempt = folder.with_name(f"{folder.name}.joining")
    shutil.rmtree(attempt, ignore_errors=True)
    try:
        membership = _talk(code, attempt, name)
        shutil.rmtree(folder, ignore_errors=True)
        _keep(attempt, membership)
        attempt.replace(folder)
        return membership
    except ConnectionRefusedError as fault:
        raise Trouble(
            say(
                "machines.nobody-there",
                "Nobody takes a code at {host}:{port} now: this one was already used, its ten minutes are over, or Hearth was closed there. "
                "Make a new one on the other computer.",
                host=code.host,
                port=code.port,
            )
        ) from fault
    except (Broken, OSError, ValueError) as fault:
        raise Trouble(
            say(
                "machines.no-answer",
                "The other computer could not be reached at {host}:{port} ({fault}). See that its Machine tab still shows the code, that both "
                "are in one network, and that its firewall lets Hearth in.",
                host=code.host,
                port=code.port,
                fault=str(fault),
            )
        ) from fault
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _talk(code: Code, folder: Path, name: str) -> Membership:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # who this is, its proof shows
    with socket.create_connection((code.host, code.port), PATIENCE_S) as plain, context.wrap_socket(plain) as connection:
        channel, own = Channel(connection, time.monotonic() + PATIENCE_S), read_versions()
        channel.send({"hello": 1, "nonce": secrets.token_hex(NONCE_BYTES), "name": name, "versions": own})
        answer = channel.receive()
        request, key = certificates.make_request(folder), digest_secret(code.secret)
        seen = (connection.getpeercert(binary_form=True) or b"", *channel.said, request.encode())
        channel.send({"request": request, "proof": prove(key, "helper", digest_transcript(seen))})
        end = channel.receive()
    if "refused" in end:
        raise Trouble(_describe_refusal(str(end["refused"]), find_difference(parse_versions(answer.get("versions")), own)))
    certificate, port = str(end.get("certificate")), answer.get("port")
    if not is_proof(key, "main", digest_transcript((*seen, certificate.encode())), end.get("proof")):
        raise Trouble(
            say(
                "machines.not-the-main",
                "What answers at {host}:{port} is not the computer that showed the code, so nothing was set up. Somebody in this network may be "
                "posing as it.",
                host=code.host,
                port=code.port,
            )
        )
    _check(port)
    certificates.keep_membership(folder, str(answer.get("authority")), certificate)
    return Membership(clean_name(answer.get("name")), code.host, int(port))  # type: ignore[arg-type]


def _check(port: Any) -> None:
    if not isinstance(port, int) or not 0 < port <= PORT_MOST:
        raise ValueError(f"port {port}")


def _describe_refusal(reason: str, difference: Sentence | None) -> Sentence:
    if reason == "versions" and difference is not None:
        return difference
    return REFUSALS.get(reason, REFUSALS["over"])


def find_membership(folder: Path) -> tuple[Membership, Identity] | None:
    """Return whom this machine helps, and as who; None if nobody."""
    identity = certificates.identity_in(folder)
    kept = read_stored(folder / _FILE, _SCHEMA)
    if not identity.complete or not {"name", "host", "port"} <= kept.keys():
        return None
    return Membership(kept["name"], kept["host"], kept["port"]), identity


def name_url(host: str, port: int) -> str:
    return f"tls://[{host}]:{port}" if ":" in host else f"tls://{host}:{port}"


def move(folder: Path, host: str, port: int) -> None:
    """Note that the main machine is elsewhere now."""
    if (found := find_membership(folder)) is not None:
        _keep(folder, replace(found[0], host=host, port=port))


def _keep(folder: Path, membership: Membership) -> None:
    atomic_write.write_text(folder / _FILE, json.dumps(asdict(membership), ensure_ascii=False))


def leave(folder: Path) -> None:
    """Forget the main machine, and the key that it knows."""
    shutil.rmtree(folder, ignore_errors=True)
