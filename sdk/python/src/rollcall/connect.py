"""How connections are made, alike for threads and asyncio."""

from __future__ import annotations

import grpc

from .calls import Metadata
from .target import ConfigurationError, Target

CHANNEL_OPTIONS: list[tuple[str, object]] = [
    # A path that drops packets is noticed while a stream waits.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Pages are bounded at about 1 MiB; a page of one large item may exceed that.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    # Retries are this package's own: they know request ids and the server's reasons.
    ("grpc.enable_retries", 0),
]


class Credentials:
    """What proves to one service who calls."""

    def __init__(self, target: Target, service: str) -> None:
        address = target.addresses[service]
        allowed = target.token_addresses
        self._token = target.token
        self._file = target.token_file
        self._may_send = allowed is None or address.identity in allowed

    def metadata(self) -> Metadata:
        """The metadata of a call. A token file is read each time: it may be replaced while the program runs."""
        if not self._may_send:
            return ()
        token = self._token
        if token is None and self._file is not None:
            try:
                token = self._file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ConfigurationError(f"cannot read the access token in {self._file}: {error.strerror}") from error
        return (("authorization", f"Bearer {token.strip()}"),) if token else ()


def channel_credentials(target: Target) -> grpc.ChannelCredentials:
    """Trust and certificate of TLS. Raises ConfigurationError for files that cannot be read."""
    try:
        authority = target.ca_file.read_bytes() if target.ca_file else None
        pair = [path.read_bytes() for path in target.client_certificate or ()]
    except OSError as error:
        raise ConfigurationError(f"cannot read {error.filename}: {error.strerror}") from error
    certificate, key = pair or (None, None)
    return grpc.ssl_channel_credentials(authority, key, certificate)
