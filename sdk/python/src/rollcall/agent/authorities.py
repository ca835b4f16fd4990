"""Decides what an agent trusts after an announcement of authorities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_ANNOUNCED = 16
"""The maximum number of authorities in an announcement."""


@dataclass(frozen=True)
class Announced:
    """One authority announced by the control plane. Times are milliseconds since 1970."""

    fingerprint: str
    is_root: bool
    """Whether the certificate is self-signed. TLS trusts no other certificate as an authority."""
    not_before_ms: float
    not_after_ms: float
    is_verifying: bool
    """Whether the authority verifies the server that announced it."""


@dataclass(frozen=True)
class Decision:
    """``kind`` is "replace" (trust the authorities with these fingerprints), "same" (keep the authorities), or "refuse"
    (because of the problem).
    """

    kind: str
    fingerprints: tuple[str, ...] = ()
    problem: str = ""


def decide_authorities(announced: Sequence[Announced], kept: Iterable[str], wall_ms: float) -> Decision:
    """Decide what to trust.

    Never accept authorities that would lock the agent out of the server that announces them.
    """
    if len(announced) > MOST_ANNOUNCED:
        return Decision("refuse", problem=f"more than {MOST_ANNOUNCED} authorities")
    usable = [it for it in announced if it.is_root and it.not_after_ms > wall_ms]
    if not usable:
        return Decision("refuse", problem="no root authority that is valid today")
    # Keep an authority that is not valid yet, but do not count it as verifying.
    if not any(it.is_verifying and it.not_before_ms <= wall_ms for it in usable):
        return Decision("refuse", problem="no authority that verifies the server's own certificate")
    fingerprints = tuple(sorted({it.fingerprint for it in usable}))
    return Decision("same") if fingerprints == tuple(sorted(set(kept))) else Decision("replace", fingerprints)


def authorities_digest(fingerprints: Iterable[str]) -> bytes:
    """Return the authorities_digest of a Hello."""
    parts = [bytes.fromhex(one.removeprefix("sha256:")) for one in sorted(fingerprints)]
    return hashlib.sha256(b"".join(parts)).digest()
