"""Computes an agent's proofs, fingerprints, digests and addresses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf import json_format

from ..node.v1 import node_pb2
from ..work.v1 import work_pb2

HEARTBEAT_METHOD = "/rollcall.health.v1.HealthService/Heartbeat"
REGISTER_METHOD = "/rollcall.registry.v1.RegistryService/RegisterNode"
ROTATE_METHOD = "/rollcall.registry.v1.RegistryService/RotateNodeKey"
_MOST_INDEX = 2**32 - 2
_INDEX = re.compile(r"(0|[1-9][0-9]{0,9})\Z", re.ASCII)
_OWN_HOST = re.compile(r":[0-9]{1,5}\Z")
_HOST_PORT = re.compile(r"(\[[^\[\]]+\]|[^:\[\]/\s]+):([0-9]{1,5})\Z")


def proof_text(method: str, cluster_id: str, node_id: str, nonce: bytes) -> str:
    """Return the text that a node signs to prove that it holds its key.

    The text names the method and the cluster, so a proof made for one call is worthless for another.
    """
    return "\n".join(["rollcall-proof-v1", method, cluster_id, node_id, _base64url(nonce)])


def key_fingerprint(public_key: bytes) -> str:
    """Return the fingerprint of a key, as people and responses see it."""
    return f"SHA256:{_base64url(hashlib.sha256(public_key).digest())}"


def node_info_digest(info: node_pb2.NodeInfo) -> bytes:
    """Return the digest that a Hello carries so that the agent need not send an unchanged description.

    It is the SHA-256 of the description as protobuf JSON with sorted keys and without white space.
    """
    value = _sorted(json_format.MessageToDict(info))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def executions_digest(observations: Sequence[work_pb2.ExecutionObservation]) -> int:
    """Summarize all executions of a node for reports and Beats. Return 0 for a node without executions."""
    if not observations:
        return 0
    lines = sorted(f"{one.id} {one.change}\n" for one in observations)
    return int.from_bytes(hashlib.sha256("".join(lines).encode()).digest()[:8], "big")


def resolve_endpoints(endpoints: Iterable[str], registry_host: str) -> list[str]:
    """Complete health endpoints. Replace an empty host with the registry's host, and drop invalid addresses."""
    host = f"[{registry_host}]" if ":" in registry_host else registry_host
    resolved: list[str] = []
    for endpoint in endpoints:
        found = _HOST_PORT.match(f"{host}{endpoint}" if _OWN_HOST.match(endpoint) else endpoint)
        if found is None or not 0 < int(found[2]) < 65_536:
            continue
        whole = f"{found[1]}:{int(found[2])}"
        if whole not in resolved:
            resolved.append(whole)
    return resolved


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_order)}
    return value


def _order(key: str) -> tuple[int, int, bytes]:
    # Return the sort key of a JSON key. Integers come first, ordered by value. All others follow, ordered by
    # their UTF-16 code units.
    if _INDEX.match(key) and int(key) <= _MOST_INDEX:
        return 0, int(key), b""
    return 1, 0, key.encode("utf-16-be", "surrogatepass")


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
