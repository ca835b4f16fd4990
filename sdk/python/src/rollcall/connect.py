"""Creates connections, in the same way for threads and asyncio."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import grpc

from .authority import fetch_authority
from .calls import Metadata
from .connection import stamp_of
from .errors import ConfigurationError
from .target import Address, Target

# The maximum number of attempts to read a certificate and its key while they are being replaced.
_MOST_READS = 5

CHANNEL_OPTIONS: list[tuple[str, object]] = [
    # Detect a connection that drops packets while a stream waits.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # The time limit of one attempt to connect, including TLS, despite the name of this option.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # The maximum size of a message. Pages are limited to about 1 MiB, but a page of one large item can exceed that.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    # The client retries calls itself, because it knows request ids and the server's reasons.
    ("grpc.enable_retries", 0),
]


def metadata_source(target: Target, service: str) -> Callable[[], Metadata]:
    """Create a function that returns the metadata of a call. That function may wait for an issuer that renews a
    login.
    """
    credential = target.credentials[service]

    def metadata() -> Metadata:
        token = credential.token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    return metadata


class TlsTrust:
    """Loads trusted authorities and certificates for TLS. With a fingerprint, it fetches the authority once per
    address.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        # The known credentials, keyed by address. Channels with the same credentials share a connection.
        self._known: dict[Address, tuple[object, grpc.ChannelCredentials]] = {}

    def files(self, address: Address) -> list[Path]:
        """The TLS files to check for changes."""
        target = self._target
        if not address.is_tls or target.ca_fingerprint:
            return []
        ca_file, _ = target.trust_for(address)
        return [file for file in (ca_file, *(target.client_certificate or ())) if file]

    def credentials(self, address: Address) -> grpc.ChannelCredentials:
        """Return the credentials for a channel. With a fingerprint, fetch the authority now.

        Raises ConfigurationError for unreadable files and for a different authority, and UnreachableError if the
        server does not respond.
        """
        stamp = stamp_of(self.files(address))
        known = self._known.get(address)
        if known is None or known[0] != stamp:
            known = self._known[address] = (stamp, self._read(address))
        return known[1]

    def _read(self, address: Address) -> grpc.ChannelCredentials:
        target = self._target
        ca_file, server_name = target.trust_for(address)
        try:
            authority = ca_file.read_bytes() if ca_file else None
            pair = _read_pair(*target.client_certificate) if target.client_certificate else None
        except OSError as error:
            raise ConfigurationError(f"cannot read {error.filename}: {error.strerror}") from error
        if target.ca_fingerprint:
            authority = fetch_authority(address.host, address.port, server_name, target.ca_fingerprint)
        if ca_file and authority is not None and b"-----END CERTIFICATE-----" not in authority:
            raise ConfigurationError(f"{ca_file} contains no certificate")
        certificate, key = pair or (None, None)
        return grpc.ssl_channel_credentials(authority, key, certificate)


def _read_pair(certificate: Path, key: Path) -> tuple[bytes, bytes]:
    """Read a certificate and its key. Raises ConfigurationError if they do not match, for example while the pair is
    half replaced.
    """
    pair = certificate.read_bytes(), key.read_bytes()
    for _ in range(_MOST_READS):
        try:
            # Check the pair. gRPC would accept a pair that does not match, and then fail at each handshake. The empty
            # password prevents a prompt for one.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password=lambda: "")
        except ssl.SSLError as error:
            raise ConfigurationError(f"{certificate} and {key} are not a certificate and its key") from error
        # OpenSSL reads the files a second time, so its check covers this pair only if the files have not changed.
        checked = pair
        pair = certificate.read_bytes(), key.read_bytes()
        if pair == checked:
            return pair
    raise ConfigurationError(f"{certificate} and {key} change too often to be read")


def channel_options(target: Target, address: Address, is_replacing: bool) -> list[tuple[str, object]]:
    """Return the options of a channel to an address. A channel that replaces another does not share its connection."""
    _, server_name = target.trust_for(address)
    named = [("grpc.ssl_target_name_override", server_name)] if address.is_tls and server_name else []
    apart: list[tuple[str, object]] = [("grpc.use_local_subchannel_pool", 1)] if is_replacing else []
    return CHANNEL_OPTIONS + named + apart
