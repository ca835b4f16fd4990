"""Verifies the servers of the control plane."""

from __future__ import annotations

import os
import pkgutil
import re
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization

from ..authority import fetch_authority, parse_fingerprint
from ..errors import ConfigurationError, RollcallError
from ..node.v1 import node_pb2
from .authorities import MOST_ANNOUNCED, Announced, Decision, authorities_digest, decide_authorities
from .state_dir import write_atomically

_FILE = "authorities.pem"
# The first line of the file of stored authorities begins with this. It ends with the configured fingerprint, from
# which the authorities were derived.
_MARK = "# authorities that follow from "
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_CHECK_TIMEOUT = 10.0
_MOST_NAME = 253


@dataclass(frozen=True)
class Tls:
    """TLS settings for registry and health replicas."""

    ca: bytes | None = None
    """The PEM of the trusted authorities; None for the system's authorities."""
    certificate: tuple[bytes, bytes] | None = None
    """The agent's own certificate and key in PEM."""
    server_name: str | None = None
    """The name in the server's certificate, if it differs from the address."""
    ca_file: Path | None = None
    """Instead of ``ca``: a PEM file that is read for each connection."""
    ca_fingerprint: str | None = None
    """Instead of ``ca``: the authority's fingerprint, as ``rollcall token create`` prints it.

    The agent fetches the certificate from the registry. From then on it trusts the authorities that the control plane
    announces, and keeps them in its state directory.
    """


class UntrustedError(Exception):
    """Raised if the agent does not know which authorities to trust, or cannot read them."""


class Trust:
    """Verifies servers. The trusted authorities change only if a fingerprint is configured; otherwise the operator
    decides. Raises ValueError.
    """

    def __init__(self, tls: Tls | None, host: str, port: int, state_dir: Path) -> None:
        self.tls = tls
        """The TLS settings; None for clear text."""
        self._host, self._port = host, port
        self._file = state_dir / _FILE
        self._announced: list[x509.Certificate] = []
        self._fingerprint: str | None = None
        if tls is None:
            return
        if sum(it is not None for it in (tls.ca, tls.ca_file, tls.ca_fingerprint)) > 1:
            raise ValueError("ca, ca_file and ca_fingerprint cannot be combined")
        if tls.ca_fingerprint is not None:
            try:
                self._fingerprint = parse_fingerprint(tls.ca_fingerprint)
            except ConfigurationError as error:
                raise ValueError(str(error)) from error
        elif tls.ca_file is not None and not _certificates(tls.ca_file.read_bytes()):
            raise ValueError(f"{tls.ca_file} contains no PEM certificate")

    def for_connection(self) -> Tls | None:
        """Return the TLS settings of a new connection. Raises UntrustedError."""
        if self.tls is None or (self._fingerprint is None and self.tls.ca_file is None):
            return self.tls
        found = self._kept() if self._fingerprint else _certificates(self._read_ca_file())
        if not found:
            what = f"{self.tls.ca_file} contains no PEM certificate"
            fetched = "the servers' authority has not been fetched yet; registration fetches it"
            raise UntrustedError(fetched if self._fingerprint else what)
        return replace(self.tls, ca=_pem(found))

    def prepare(self) -> None:
        """Fetch the authority with the fingerprint, unless it was fetched before. Blocks. Raises UntrustedError and
        OSError.
        """
        if self.tls is None or self._fingerprint is None or self._kept():
            return
        try:
            pem = fetch_authority(self._host, self._port, self.tls.server_name, self._fingerprint)
        except (ConfigurationError, RollcallError) as error:
            raise UntrustedError(str(error)) from error
        self._keep(_certificates(pem))

    def hear(self, announced: Sequence[bytes], endpoint: str) -> Decision:
        """Handle announced authorities, each in DER, from a connection to an endpoint. Blocks.

        gRPC does not expose the server's certificate, so a handshake tests whether the authorities verify the
        endpoint. Raises OSError if the handshake cannot be made now, and ValueError for an invalid certificate.
        """
        certificates = [x509.load_der_x509_certificate(der) for der in announced]
        decision = Decision("same")
        if self._fingerprint is not None:
            now = time.time()
            present = [it for it in certificates if _is_root(it) and _ms(it)[0] <= now * 1000 < _ms(it)[1]]
            is_verified = bool(present) and self._verifies(endpoint, _pem(present))
            facts = [Announced(_fingerprint(it), _is_root(it), *_ms(it), is_verified) for it in certificates]
            decision = decide_authorities(facts, map(_fingerprint, self._kept()), now * 1000)
            if decision.kind == "replace":
                by_name = {_fingerprint(it): it for it in certificates}
                self._keep([by_name[wanted] for wanted in decision.fingerprints])
        if decision.kind != "refuse":
            self._announced = certificates
        return decision

    @property
    def digest(self) -> bytes:
        """Return the authorities_digest of a Hello."""
        return b"" if self.tls is None else authorities_digest(map(_fingerprint, self._announced))

    def describe(self) -> node_pb2.NodeTrust:
        """Return the trust settings for a report."""
        tls = self.tls
        if tls is None:
            return node_pb2.NodeTrust(source=node_pb2.TRUST_SOURCE_NONE)
        source = node_pb2.TRUST_SOURCE_FILE
        if self._fingerprint is not None:
            source = node_pb2.TRUST_SOURCE_ANNOUNCED
        elif tls.ca is None and tls.ca_file is None:
            source = node_pb2.TRUST_SOURCE_SYSTEM
        announced = list(map(_fingerprint, self._announced))
        trusted = self._trusted()
        # If there are too many authorities, announced authorities take precedence.
        first = sorted(set(trusted), key=lambda it: (it not in announced, it))[:MOST_ANNOUNCED]
        name = (tls.server_name or self._host)[:_MOST_NAME]
        return node_pb2.NodeTrust(source=source, authorities=sorted(first), server_name=name)

    def _trusted(self) -> list[str]:
        # Report only those of the system's authorities that the control plane announced.
        now = time.time() * 1000
        try:
            if self._fingerprint is not None:
                return list(map(_fingerprint, self._kept())) or [self._fingerprint]
            pem = self.tls.ca if self.tls else None
            if self.tls is not None and self.tls.ca_file is not None:
                pem = self._read_ca_file()
            if pem is None:
                roots = {ssl.PEM_cert_to_DER_cert(block) for block in _BLOCK.findall(_system_roots())}
                return [_fingerprint(it) for it in self._announced if _der(it) in roots]
            return [_fingerprint(it) for it in _certificates(pem) if _ms(it)[1] > now]
        except (OSError, ValueError, UntrustedError):
            # If the authorities are unreadable, nothing is trusted. The next connection then fails with the reason.
            return []

    def _kept(self) -> list[x509.Certificate]:
        try:
            text = self._file.read_text(encoding="utf-8")
            found = _certificates(text.encode())
        except FileNotFoundError:
            return []
        except ValueError:
            # The file is damaged, so fetch the authority again.
            return []
        if text.startswith(f"{_MARK}{self._fingerprint}\n"):
            return found
        # The file belongs to another fingerprint, so ignore earlier announcements.
        return [it for it in found if _fingerprint(it) == self._fingerprint]

    def _keep(self, certificates: Sequence[x509.Certificate]) -> None:
        write_atomically(self._file, f"{_MARK}{self._fingerprint}\n".encode() + _pem(certificates))

    def _read_ca_file(self) -> bytes:
        assert self.tls is not None and self.tls.ca_file is not None
        try:
            return self.tls.ca_file.read_bytes()
        except OSError as error:
            raise UntrustedError(f"cannot read {self.tls.ca_file}: {error.strerror}") from error

    def _verifies(self, endpoint: str, pem: bytes) -> bool:
        host, _, port = endpoint.rpartition(":")
        host = host.strip("[]")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=pem.decode())
        context.set_alpn_protocols(["h2"])
        name = (self.tls.server_name if self.tls else None) or host
        try:
            with (
                socket.create_connection((host, int(port)), _CHECK_TIMEOUT) as raw,
                context.wrap_socket(raw, server_hostname=name),
            ):
                return True
        except ssl.SSLCertVerificationError:
            return False


def _certificates(pem: bytes) -> list[x509.Certificate]:
    # The file may also contain text other than certificates.
    blocks = _BLOCK.findall(pem.decode("utf-8", "replace"))
    return [x509.load_pem_x509_certificate(block.encode()) for block in blocks]


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(it.public_bytes(serialization.Encoding.PEM) for it in certificates)


def _fingerprint(certificate: x509.Certificate) -> str:
    return f"sha256:{certificate.fingerprint(hashes.SHA256()).hex()}"


def _ms(certificate: x509.Certificate) -> tuple[float, float]:
    return certificate.not_valid_before_utc.timestamp() * 1000, certificate.not_valid_after_utc.timestamp() * 1000


def _is_root(certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _system_roots() -> str:
    # Use gRPC's own set of authorities.
    named = os.environ.get("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
    found = Path(named).read_bytes() if named else pkgutil.get_data("grpc._cython", "_credentials/roots.pem")
    return (found or b"").decode("utf-8", "replace")
