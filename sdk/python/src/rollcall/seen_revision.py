"""The highest log revision that a client has seen."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

from .reasons import Reason

MIN_REVISION_HEADER = "rollcall-min-revision"
REVISION_HEADER = "rollcall-revision"

_DECIMAL = re.compile(r"[0-9]{1,19}", re.ASCII)
_LARGEST = 2**63 - 1


class SeenRevision:
    """The highest revision received from the services of one control plane. No service may respond from an earlier
    state.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._revision = 0

    @property
    def header(self) -> str | None:
        """The value of the request header; None if no revision was seen yet."""
        revision = self._revision
        return None if revision == 0 else str(revision)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call."""
        header = self.header
        return () if header is None else ((MIN_REVISION_HEADER, header),)

    def answered(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
        """Record the revision in a response's metadata."""
        for key, value in metadata or ():
            if key == REVISION_HEADER and isinstance(value, str) and _DECIMAL.fullmatch(value):
                self.heard(int(value))

    def heard(self, revision: int) -> None:
        """Record the revision of a stream's message; 0 means none."""
        with self._lock:
            if self._revision < revision <= _LARGEST:
                self._revision = revision

    def failed(self, reason: str) -> None:
        """Handle a failed call. Forget the revision if it is ahead of the log, for example after a restore."""
        if reason == Reason.MIN_REVISION_AHEAD:
            with self._lock:
                self._revision = 0
