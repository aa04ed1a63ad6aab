"""A stand-in of Gradio's share server: what its API tells, where its client dials in, and the https side that the world sees. The client is the real one.
Written after the protocol that huggingface/frp, its source, shows; TLS, login, encryption and compression are as there."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ipaddress
import json
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, Self

from cryptography import x509
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from tests.support import front, snappy
from tests.support.yamux import Session, Stream

DOMAIN = "gradio.live"
TLS_FIRST = b"\x17"
"""Sent before the TLS handshake; nothing else begins so."""
TOKEN = ""
"""Gradio's server asks for none; what is encrypted with it is encrypted for everybody."""
KEY = hashlib.pbkdf2_hmac("sha1", TOKEN.encode(), b"frp", 64, 16)
LOGIN, LOGGED_IN, PROXY, PROXIED, WANTED, WORK, START, PING, PONG, KILL = b"o1p2rwsh4k"
Message = dict[str, Any]


class Pipe(Protocol):
    async def read(self) -> bytes: ...
    async def exactly(self, count: int) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def close(self) -> None: ...


class Ciphered:
    """Each direction begins with what its key stream begins with."""

    def __init__(self, inner: Pipe) -> None:
        self._inner, self.close = inner, inner.close
        self._opens: Any = None
        self._shuts: Any = None

    async def read(self) -> bytes:
        await self._begin()
        return bytes(self._opens.update(await self._inner.read()))

    async def exactly(self, count: int) -> bytes:
        await self._begin()
        return bytes(self._opens.update(await self._inner.exactly(count)))

    async def write(self, data: bytes) -> None:
        first = b""
        if self._shuts is None:
            first = secrets.token_bytes(16)
            self._shuts = Cipher(algorithms.AES(KEY), CFB(first)).encryptor()
        await self._inner.write(first + self._shuts.update(data))

    async def _begin(self) -> None:
        if self._opens is None:
            self._opens = Cipher(algorithms.AES(KEY), CFB(await self._inner.exactly(16))).decryptor()


class Compressed:
    def __init__(self, inner: Pipe) -> None:
        self._inner, self.close, self._begun = inner, inner.close, False

    async def read(self) -> bytes:
        while True:
            try:
                head = int.from_bytes(await self._inner.exactly(4), "little")
            except asyncio.IncompleteReadError:
                return b""
            if data := snappy.unframed(head & 255, await self._inner.exactly(head >> 8)):
                return data

    async def write(self, data: bytes) -> None:
        first, self._begun = b"" if self._begun else snappy.NAME, True
        await self._inner.write(first + snappy.framed(data))


async def told(pipe: Pipe) -> tuple[int, Message]:
    head = await pipe.exactly(9)
    return head[0], json.loads(await pipe.exactly(int.from_bytes(head[1:], "big")))


async def tell(pipe: Pipe, kind: int, **message: Any) -> None:
    body = json.dumps(message).encode()
    await pipe.write(bytes([kind]) + len(body).to_bytes(8, "big") + body)


class Client:
    """One frpc that has logged in."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.proxies = pipe, dict[str, Message]()
        self.works: asyncio.Queue[Stream] = asyncio.Queue()

    async def reach(self, name: str) -> front.Line:
        """A connection to what is shared."""
        await tell(self.pipe, WANTED)
        stream = await asyncio.wait_for(self.works.get(), 10)
        await tell(stream, START, proxy_name=name)
        asked = self.proxies[name]
        inner: Pipe = Ciphered(stream) if asked.get("use_encryption") else stream
        pipe = Compressed(inner) if asked.get("use_compression") else inner
        return front.Line(pipe.read, pipe.write, pipe.close, lambda: stream.over)


class Frps:
    """Runs in a thread of its own while it is entered. `refusal` is what who logs in is told, `taken` who wants a link;
    by `aliases` other names lead to a link, too, as anybody's own domain could."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder, self.program = folder, program
        self.refusal = self.taken = ""
        self.aliases: dict[str, str] = {}
        self.logins: list[Message] = []
        self.wanted: list[Message] = []
        self.root_ca = certificate(folder, "server")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="frps")
        self._clients: dict[str, Client] = {}
        self._sessions: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)

    def __enter__(self) -> Self:
        self._thread.start()
        self.does(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.does(self._close)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def does(self, what: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(what(), self._loop).result(30)

    def cut(self) -> None:
        """Every connection, in the middle of whatever it was carrying."""

        async def cut() -> None:
            for each in self._sessions:
                each.transport.abort()

        self.does(cut)

    def kill(self) -> None:
        """What the server sends after three days: the client is to end."""

        async def kill() -> None:
            for each in self._clients.values():
                await tell(each.pipe, KILL)

        self.does(kill)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    async def _open(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        self._accepting = asyncio.create_task(self._accept(context))
        self._front = front.Front(self._route)
        self._public = await asyncio.start_server(self._front.visited, "127.0.0.1", 0, ssl=context)
        self._plain = await asyncio.start_server(self._asked, "127.0.0.1", 0)
        self.public, plain = (each.sockets[0].getsockname()[1] for each in (self._public, self._plain))
        self.api, self.source = f"http://127.0.0.1:{plain}/v3/tunnel-request", f"http://127.0.0.1:{plain}/frpc"

    async def _close(self) -> None:
        for server in (self._public, self._plain):
            server.close()
        others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._socket.close()

    async def _accept(self, context: ssl.SSLContext) -> None:
        while True:
            connection, _ = await self._loop.sock_accept(self._socket)
            if await self._loop.sock_recv(connection, 1) != TLS_FIRST:
                connection.close()
                continue
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader, self._dialled)
            try:
                await self._loop.connect_accepted_socket(lambda made=protocol: made, connection, ssl=context)  # type: ignore[misc]
            except (OSError, ssl.SSLError):
                connection.close()  # The client did not believe the certificate.

    async def _dialled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions[writer] = task
        try:
            await Session(reader, writer, self._opened).run()
        finally:
            del self._sessions[writer]
            writer.close()

    async def _opened(self, stream: Stream) -> None:
        try:
            kind, message = await told(stream)
            if kind == WORK:
                await self._clients[message["run_id"]].works.put(stream)
            elif kind == LOGIN:
                await self._logged_in(stream, message)
        except (OSError, asyncio.IncompleteReadError):
            await stream.close()  # The connection is gone, or the client ended.

    async def _logged_in(self, stream: Stream, login: Message) -> None:
        self.logins.append(login)
        assert login["privilege_key"] == hashlib.md5(f"{TOKEN}{login['timestamp']}".encode()).hexdigest()
        if self.refusal:
            await tell(stream, LOGGED_IN, version="0.44.0", error=self.refusal)
            await stream.close()
            return
        id_ = login.get("run_id") or secrets.token_hex(8)
        await tell(stream, LOGGED_IN, version="0.44.0", run_id=id_)
        client = self._clients[id_] = Client(Ciphered(stream))
        try:
            while True:
                kind, message = await told(client.pipe)
                if kind == PING:
                    await tell(client.pipe, PONG)
                elif kind == PROXY:
                    await self._proxy(client, message)
        finally:
            if self._clients.get(id_) is client:
                del self._clients[id_]

    async def _proxy(self, client: Client, message: Message) -> None:
        """The link is named after the digest of what the client calls itself: who knows the link cannot take it over."""
        self.wanted.append(message)
        name = hashlib.sha256(message["proxy_name"].encode()).hexdigest()[:18]
        if self.taken:
            await tell(client.pipe, PROXIED, proxy_name=name, error=self.taken)
            return
        client.proxies[name] = message
        await tell(client.pipe, PROXIED, proxy_name=name, remote_addr=f"https://{name}.{DOMAIN}")

    async def _route(self, host: str) -> front.Line | None:
        name, _, domain = self.aliases.get(host, host).partition(".")
        for client in self._clients.values():
            if domain == DOMAIN and name in client.proxies:
                return await client.reach(name)
        return None

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Gradio's API, and where its program is fetched from."""
        head = await reader.readuntil(b"\r\n\r\n")
        answer = [{"host": "127.0.0.1", "port": str(self.port), "root_ca": self.root_ca}]
        body = self.program.read_bytes() if head.startswith(b"GET /frpc ") else json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()


def certificate(folder: Path, name: str) -> str:
    """A fresh one that vouches for itself, with its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(f"*.{DOMAIN}")]
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / f"{name}.pem").write_bytes(pem)
    (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
    return pem.decode()
