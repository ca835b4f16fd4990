"""Calls to the registry, and gRPC channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..node.v1 import node_pb2
from ..registry.v1 import registry_pb2
from .proof import REGISTER_METHOD, ROTATE_METHOD, proof_text
from .state_dir import public_key
from .trust import Tls, Trust

_CALL_TIMEOUT = 10.0
_CHALLENGE_METHOD = "/rollcall.registry.v1.RegistryService/CreateChallenge"
_OPTIONS: list[tuple[str, Any]] = [
    # By default, channels share connections. Use separate ones, because a channel can leave a dead path only by means
    # of a new connection.
    ("grpc.use_local_subchannel_pool", 1),
    # Disable gRPC's retries, because the agent itself decides what to do after a failure.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 1024 * 1024),
]
T = TypeVar("T")


def open_channel(address: str, tls: Tls | None) -> grpc.aio.Channel:
    """Open a channel with a separate connection."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    certificate, key = tls.certificate or (None, None)
    name = [("grpc.ssl_target_name_override", tls.server_name)] if tls.server_name else []
    return grpc.aio.secure_channel(
        address, grpc.ssl_channel_credentials(tls.ca, key, certificate), options=[*_OPTIONS, *name]
    )


class Registrar:
    """Registers the node, and rotates its key. Keeps no connection between calls.

    ``server`` is HOST:PORT or a URL. Methods raise grpc.RpcError. They raise UntrustedError if the agent does
    not know which authorities to trust.
    """

    def __init__(self, server: str, node_id: str, tls: Tls | None, state_dir: Path) -> None:
        url = urlsplit(server if "://" in server else f"//{server}")
        if not url.hostname or url.port is None:
            raise ValueError(f"cannot use {server!r} as an address: HOST:PORT or a URL is needed")
        self.host = url.hostname
        spoken = None if url.scheme == "http" else (tls or (Tls() if url.scheme == "https" else None))
        self.trust = Trust(spoken, url.hostname, url.port, state_dir)
        self._address = url.netloc
        self._node_id = node_id

    async def register(
        self, key: Ed25519PrivateKey, info: node_pb2.NodeInfo, join_token: str
    ) -> registry_pb2.RegisterNodeResponse:
        """Register the node."""

        async def call(channel: grpc.aio.Channel, challenge: Any) -> registry_pb2.RegisterNodeResponse:
            text = proof_text(REGISTER_METHOD, challenge.cluster_id, self._node_id, challenge.nonce)
            request = registry_pb2.RegisterNodeRequest(
                node_id=self._node_id,
                public_key=public_key(key),
                proof=registry_pb2.NodeProof(nonce=challenge.nonce, signature=key.sign(text.encode())),
                info=info,
                join_token=join_token,
            )
            answer: registry_pb2.RegisterNodeResponse = await _unary(
                channel, REGISTER_METHOD, request, registry_pb2.RegisterNodeResponse
            )
            return answer

        return await self._with_challenge(call)

    async def rotate_key(
        self, key: Ed25519PrivateKey, next_key: Ed25519PrivateKey
    ) -> registry_pb2.RotateNodeKeyResponse:
        """Offer the next key, with proofs by both keys."""

        async def call(channel: grpc.aio.Channel, challenge: Any) -> registry_pb2.RotateNodeKeyResponse:
            text = proof_text(ROTATE_METHOD, challenge.cluster_id, self._node_id, challenge.nonce).encode()
            request = registry_pb2.RotateNodeKeyRequest(
                node_id=self._node_id,
                proof=registry_pb2.NodeProof(nonce=challenge.nonce, signature=key.sign(text)),
                next_public_key=public_key(next_key),
                next_signature=next_key.sign(text),
            )
            answer: registry_pb2.RotateNodeKeyResponse = await _unary(
                channel, ROTATE_METHOD, request, registry_pb2.RotateNodeKeyResponse
            )
            return answer

        return await self._with_challenge(call)

    async def _with_challenge(self, call: Callable[[grpc.aio.Channel, Any], Awaitable[T]]) -> T:
        await asyncio.to_thread(self.trust.prepare)
        channel = open_channel(self._address, self.trust.for_connection())
        try:
            request = registry_pb2.CreateChallengeRequest()
            challenge = await _unary(channel, _CHALLENGE_METHOD, request, registry_pb2.CreateChallengeResponse)
            return await call(channel, challenge)
        finally:
            await channel.close(None)


async def _unary(channel: grpc.aio.Channel, method: str, request: Any, answer: Any) -> Any:
    call = channel.unary_unary(
        method, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
    )
    return await call(request, timeout=_CALL_TIMEOUT)
