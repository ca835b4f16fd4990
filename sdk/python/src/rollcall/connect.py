"""How connections are made, alike for threads and asyncio."""

from __future__ import annotations

from collections.abc import Callable

import grpc

from .authority import fetch_authority
from .calls import Metadata
from .errors import ConfigurationError
from .target import Address, Target

CHANNEL_OPTIONS: list[tuple[str, object]] = [
    # A path that drops packets is noticed while a stream waits.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Despite its name this bounds one attempt to connect, TLS included.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Pages are bounded at about 1 MiB; a page of one large item may exceed that.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    # Retries are this package's own: they know request ids and the server's reasons.
    ("grpc.enable_retries", 0),
]


def metadata_source(target: Target, service: str) -> Callable[[], Metadata]:
    """What makes the metadata of a call. It may wait for an issuer that renews a login."""
    credential = target.credentials[service]

    def metadata() -> Metadata:
        token = credential.token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    return metadata


class TlsTrust:
    """Trust and certificate of TLS, read once for each address."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Address, grpc.ChannelCredentials] = {}

    def credentials(self, address: Address) -> grpc.ChannelCredentials:
        """What a channel is made with. With a fingerprint, the authority is fetched now.

        Raises ConfigurationError for files that cannot be read and for another authority, and UnreachableError.
        """
        if address not in self._known:
            self._known[address] = self._read(address)
        return self._known[address]

    def _read(self, address: Address) -> grpc.ChannelCredentials:
        target = self._target
        ca_file, server_name = target.trust_for(address)
        try:
            authority = ca_file.read_bytes() if ca_file else None
            pair = [path.read_bytes() for path in target.client_certificate or ()]
        except OSError as error:
            raise ConfigurationError(f"cannot read {error.filename}: {error.strerror}") from error
        if target.ca_fingerprint:
            authority = fetch_authority(address.host, address.port, server_name, target.ca_fingerprint)
        certificate, key = pair or (None, None)
        return grpc.ssl_channel_credentials(authority, key, certificate)


def channel_options(target: Target, address: Address, is_replacing: bool) -> list[tuple[str, object]]:
    """The options of a channel to an address; one that replaces another does not share its connection."""
    _, server_name = target.trust_for(address)
    named = [("grpc.ssl_target_name_override", server_name)] if address.is_tls and server_name else []
    apart: list[tuple[str, object]] = [("grpc.use_local_subchannel_pool", 1)] if is_replacing else []
    return CHANNEL_OPTIONS + named + apart
