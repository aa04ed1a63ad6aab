"""A Dask cluster that is there already, in place of paired machines: where it is, and the files by which it lets Hearth in."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.machines.joining.certificates import Identity, identity_in, write_secret
from app.machines.joining.code import PORT_MOST

PATIENCE_S: Final = 10.0
PEM_BYTES: Final = 1 << 20
_ADDRESS: Final = re.compile(r"tls://(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[\w.-]+)):(?P<port>\d{1,5})/?")
_FILE: Final = "address.txt"


@dataclass(frozen=True, slots=True)
class Cluster:
    address: str
    """It stands as Dask writes it."""
    folder: Path
    """It has copies of the cluster's files, under the names of an identity."""


def find_cluster(home: Home) -> Cluster | None:
    """Return the cluster that is used; None if there is none."""
    folder = _folder(home)
    try:
        address = (folder / _FILE).read_text()
    except OSError:
        return None
    return Cluster(address, folder) if _ADDRESS.fullmatch(address) and identity_in(folder).complete else None


def use_cluster(home: Home, address: str, authority: Path, certificate: Path, key: Path) -> Cluster:
    """Keep where a cluster is and copies of its files, in place of another one; raise Trouble unless its scheduler lets Hearth in."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) <= PORT_MOST:
        raise Trouble(
            say(
                "cluster.address",
                "{address} is no address of a Dask scheduler that Hearth uses. It looks like tls://node.example:8786; a scheduler at tcp:// takes "
                "work from anybody in its network, so start it with TLS.",
                address=address[:80],
            )
        )
    attempt = _folder(home).with_name("cluster.trying")
    shutil.rmtree(attempt, ignore_errors=True)
    try:
        attempt.mkdir(mode=0o700, parents=True)
        kept = identity_in(attempt)
        for given, target in ((authority, kept.authority), (certificate, kept.certificate), (key, kept.key)):
            _copy(given, target)
        _greet(kept, found["host"] or found["six"], int(found["port"]), address)
        atomic_write.write_text(attempt / _FILE, address)
        forget_cluster(home)
        attempt.replace(_folder(home))
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return Cluster(address, _folder(home))


def forget_cluster(home: Home) -> None:
    shutil.rmtree(_folder(home), ignore_errors=True)


def _folder(home: Home) -> Path:
    return home.root / "machines" / "cluster"


def _copy(given: Path, target: Path) -> None:
    """Copy one of Dask's files, for this account alone from the first moment on."""
    try:
        with given.expanduser().open("rb") as file:
            content = file.read(PEM_BYTES)
    except OSError as fault:
        raise Trouble(
            say(
                "cluster.file",
                "The file {file} of the cluster cannot be read: {fault}.",
                file=str(given),
                fault=fault.strerror or str(fault),
            )
        ) from fault
    write_secret(target, content)


def _greet(identity: Identity, host: str, port: int, address: str) -> None:
    """Shake hands with the scheduler, which speaks first: one that refuses the certificate closes the connection instead."""
    try:
        context = identity.client_context()
    except (ssl.SSLError, OSError) as fault:
        raise Trouble(
            say(
                "cluster.pem",
                "The files given are not an authority, a certificate and its key in the PEM format ({fault}). They are what Dask's own settings "
                "call ca-file, client cert and client key.",
                fault=str(fault),
            )
        ) from fault
    try:
        with socket.create_connection((host, port), PATIENCE_S) as plain, context.wrap_socket(plain) as connection:
            if not connection.recv(1):
                raise ConnectionError("it closed the connection")
    except OSError as fault:
        raise Trouble(
            say(
                "cluster.no-answer",
                "The Dask scheduler at {address} cannot be used ({fault}). See that it runs, that it can be reached from this computer, and that the "
                "files are the ones that its own workers use.",
                address=address,
                fault=str(fault),
            )
        ) from fault
