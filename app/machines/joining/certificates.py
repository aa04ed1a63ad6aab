"""Keys and certificates: the main machine's own authority, its certificate, and those that it signs for helpers."""

from __future__ import annotations

import hashlib
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.base import atomic_write

BEGINS: Final = datetime(2000, 1, 1, tzinfo=UTC)
ENDS: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""An old computer's clock may be years off, and a machine is let in until it is removed: no certificate depends on the date."""
MAIN: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
HELPER: Final = (ExtendedKeyUsageOID.CLIENT_AUTH,)
"""A helper's certificate is no server's, so that no helper can pose as the main machine."""
ID_LETTERS: Final = 32
MAIN_NAME: Final = "main"


@dataclass(frozen=True, slots=True)
class Identity:
    """The files of one side: its own certificate and key, and the authority that it believes."""

    authority: Path
    certificate: Path
    key: Path

    @property
    def complete(self) -> bool:
        return all(each.is_file() for each in (self.authority, self.certificate, self.key))

    def client_context(self) -> ssl.SSLContext:
        """For connecting to the main machine."""
        return self._finish(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def server_context(self) -> ssl.SSLContext:
        """For listening: whoever has no certificate of this authority is refused in the handshake."""
        return self._finish(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    def _finish(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # addresses change; what is believed is the authority
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cafile=str(self.authority))
        context.load_cert_chain(self.certificate, self.key)
        return context


def identity_in(folder: Path) -> Identity:
    return Identity(folder / "authority.pem", folder / "own.pem", folder / "own.key")


def make_main(folder: Path) -> Identity:
    """Make the main machine's authority and its own certificate, unless they are there."""
    made, authority_key = identity_in(folder), folder / "authority.key"
    if made.complete and authority_key.is_file():
        return made
    key, own = _make_key(), _make_key()
    name = _name_of(f"Hearth {make_id(key.public_key())}")
    authority = (
        _begin(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_secret(authority_key, _pem(key))
    write_secret(made.key, _pem(own))
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    atomic_write.write_text(made.certificate, _sign(authority, key, own.public_key(), MAIN_NAME, MAIN))
    return made


def make_request(folder: Path) -> str:
    """Make a helper's key, which never leaves it, and the request to sign it."""
    key = _make_key()
    folder.mkdir(parents=True, exist_ok=True)
    write_secret(identity_in(folder).key, _pem(key))
    request = x509.CertificateSigningRequestBuilder().subject_name(_name_of("Hearth helper")).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def sign_request(folder: Path, request: str) -> tuple[str, str]:
    """Sign a helper's request as the main machine in `folder`; return its id and certificate. Only the key is taken from it.
    Raise ValueError for a request that is none, or whose key is of another kind."""
    try:
        asked = x509.load_pem_x509_csr(request.encode())
        key = asked.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1) or not asked.is_signature_valid:
            raise ValueError("the request to sign has another kind of key, or is not signed with it")
    except (InvalidSignature, TypeError, UnicodeError) as fault:
        raise ValueError(str(fault)) from fault
    authority = x509.load_pem_x509_certificate(identity_in(folder).authority.read_bytes())
    signer = serialization.load_pem_private_key((folder / "authority.key").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    id_ = make_id(key)
    return id_, _sign(authority, signer, key, id_, HELPER)


def make_id(key: ec.EllipticCurvePublicKey) -> str:
    """Name a machine by its key."""
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).hexdigest()[:ID_LETTERS]


def keep_membership(folder: Path, authority: str, certificate: str) -> Identity:
    """Store what the main machine sent to a helper; raise ValueError if it is not for this key and from this authority."""
    kept = identity_in(folder)
    root, own = (x509.load_pem_x509_certificate(text.encode()) for text in (authority, certificate))
    key = serialization.load_pem_private_key(kept.key.read_bytes(), None)
    if own.public_key() != key.public_key():
        raise ValueError("the certificate is for another key")
    try:
        own.verify_directly_issued_by(root)
    except (InvalidSignature, TypeError) as fault:
        raise ValueError("the certificate is not from this authority") from fault
    atomic_write.write_text(kept.authority, authority)
    atomic_write.write_text(kept.certificate, certificate)
    return kept


def read_id(certificate: str) -> str:
    """Return the id of the machine that a certificate is for."""
    return str(x509.load_pem_x509_certificate(certificate.encode()).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def read_authority(folder: Path) -> str:
    """Return the id of the authority that a machine believes, the main machine's own."""
    authority = x509.load_pem_x509_certificate(identity_in(folder).authority.read_bytes())
    return hashlib.sha256(authority.public_bytes(serialization.Encoding.DER)).hexdigest()[:ID_LETTERS]


def _make_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name_of(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGINS)
        .not_valid_after(ENDS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _sign(
    authority: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePublicKey,
    name: str,
    uses: tuple[x509.ObjectIdentifier, ...],
) -> str:
    signed = (
        _begin(_name_of(name), authority.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(list(uses)), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
