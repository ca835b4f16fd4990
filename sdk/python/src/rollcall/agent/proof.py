"""What an agent computes: proofs, fingerprints, digests and addresses."""

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
    """What a node signs to prove that it holds its key: a proof made for one call is worth nothing at another."""
    return "\n".join(["rollcall-proof-v1", method, cluster_id, node_id, _base64url(nonce)])


def key_fingerprint(public_key: bytes) -> str:
    """How a key is named to people and in answers."""
    return f"SHA256:{_base64url(hashlib.sha256(public_key).digest())}"


def node_info_digest(info: node_pb2.NodeInfo) -> bytes:
    """What a Hello carries, so that what has not changed is not sent: SHA-256 of protobuf JSON with sorted keys."""
    value = _sorted(json_format.MessageToDict(info))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def executions_digest(observations: Sequence[work_pb2.ExecutionObservation]) -> int:
    """What reports and Beats carry of all that a node has; 0 for a node that has nothing."""
    if not observations:
        return 0
    lines = sorted(f"{one.id} {one.change}\n" for one in observations)
    return int.from_bytes(hashlib.sha256("".join(lines).encode()).digest()[:8], "big")


def resolve_endpoints(endpoints: Iterable[str], registry_host: str) -> list[str]:
    """Complete health endpoints: an empty host is that of the registry. What is no address is left out."""
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
    # Whole numbers come first, by value; then the rest by their UTF-16 code units.
    if _INDEX.match(key) and int(key) <= _MOST_INDEX:
        return 0, int(key), b""
    return 1, 0, key.encode("utf-16-be", "surrogatepass")


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
