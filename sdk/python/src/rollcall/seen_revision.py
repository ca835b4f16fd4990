"""The highest revision of the log that a client has seen."""

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
    """What the services of one control plane have told a client: none of them answers it from an earlier state."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._revision = 0

    @property
    def header(self) -> str | None:
        """The value to send; None before anything was seen."""
        revision = self._revision
        return None if revision == 0 else str(revision)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call."""
        header = self.header
        return () if header is None else ((MIN_REVISION_HEADER, header),)

    def answered(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
        """An answer came, with this metadata."""
        for key, value in metadata or ():
            if key == REVISION_HEADER and isinstance(value, str) and _DECIMAL.fullmatch(value):
                self.heard(int(value))

    def heard(self, revision: int) -> None:
        """The message of a stream came, with this revision; 0 for none."""
        with self._lock:
            if self._revision < revision <= _LARGEST:
                self._revision = revision

    def failed(self, reason: str) -> None:
        """A call failed. After a restore the log may end before what was seen."""
        if reason == Reason.MIN_REVISION_AHEAD:
            with self._lock:
                self._revision = 0
