"""The connection to one address, in the same way for threads and asyncio."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Generic, TypeVar

from .errors import ConfigurationError

Channel = TypeVar("Channel")


class Path(Generic[Channel]):
    """One channel, with the number of its running calls."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.calls = 0


class Connection(Generic[Channel]):
    """Makes calls to one address.

    A path can die silently, so after a call without a response, new calls use a new path.

    The old path is closed when its last call has ended, so that one slow call does not break the others. New calls
    also use a new path after the TLS files were replaced.
    """

    def __init__(
        self, dial: Callable[[bool], Channel], hang_up: Callable[[Channel], None], files: Sequence[FilePath] = ()
    ) -> None:
        """``dial`` reads the files. Its argument says whether the new path replaces another path and must not share its
        connection.
        """
        self._dial = dial
        self._hang_up = hang_up
        self._files = files
        self._stamp = stamp_of(files)
        self._lock = threading.Lock()
        self._current = Path(dial(False))
        self._open = {self._current}
        self._is_closed = False

    def acquire(self) -> Path[Channel]:
        """Acquire the path for one call. Call ``release`` when the call has ended."""
        stamp = stamp_of(self._files)
        former: Path[Channel] | None = None
        with self._lock:
            if stamp != self._stamp and not self._is_closed:
                former = self._renew(stamp)
            self._current.calls += 1
            path = self._current
        if former is not None:
            self._hang_up(former.channel)
        return path

    def release(self, path: Path[Channel]) -> None:
        """End a call. Close the path if it is neither current nor in use."""
        with self._lock:
            path.calls -= 1
            is_over = path is not self._current and path.calls == 0 and path in self._open
            if is_over:
                self._open.remove(path)
        if is_over:
            self._hang_up(path.channel)

    def replace(self, silent: Path[Channel]) -> None:
        """Switch new calls from a silent path to a new one. Call it before ``release``. If several calls of a path
        report silence, only the first report has an effect.
        """
        with self._lock:
            if silent is self._current and not self._is_closed:
                self._current = Path(self._dial(True))
                self._open.add(self._current)

    def _renew(self, stamp: object) -> Path[Channel] | None:
        # Create a new current path. Return the previous one if it should be closed now.
        former = self._current
        try:
            self._current = Path(self._dial(False))
        except ConfigurationError:
            # The new files may be half written, so keep the current path until they can be read.
            return None
        self._stamp = stamp
        self._open.add(self._current)
        if former.calls > 0:
            return None
        self._open.remove(former)
        return former

    def end(self) -> list[Channel]:
        """End all paths. Return the channels to close, which ends their calls."""
        with self._lock:
            self._is_closed = True
            ended = [path.channel for path in self._open]
            self._open.clear()
            return ended


def stamp_of(files: Sequence[FilePath]) -> object:
    """Return a value that changes when any of the files changes."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            found.append(None)
            continue
        found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return found
