"""Certificates of this machine, for tests."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_NOW = datetime.datetime.now(datetime.timezone.utc)
_HOUR = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Made:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        private = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def fingerprint(self) -> str:
        return f"sha256:{self.certificate.fingerprint(hashes.SHA256()).hex()}"


def make(name: str, signer: Made | None = None, is_authority: bool = True) -> Made:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - _HOUR)
        .not_valid_after(_NOW + _HOUR)
        .add_extension(x509.BasicConstraints(is_authority, None), True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
    )
    return Made(builder.sign(signer.key if signer else key, hashes.SHA256()), key)
