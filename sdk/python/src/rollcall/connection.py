"""The connection to one address, alike for threads and asyncio."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Channel = TypeVar("Channel")


class Path(Generic[Channel]):
    """One channel, and how many calls it has."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.calls = 0


class Connection(Generic[Channel]):
    """Leads to one address. A path can die without a word: calls after one that got no answer use a new path.

    The old path is closed when its last call has ended, because a call that merely takes long does not end the others.
    """

    def __init__(self, dial: Callable[[bool], Channel], hang_up: Callable[[Channel], None]) -> None:
        """``dial`` is told whether the path replaces another, and must not share its connection then."""
        self._dial = dial
        self._hang_up = hang_up
        self._lock = threading.Lock()
        self._current = Path(dial(False))
        self._open = {self._current}
        self._is_closed = False

    def acquire(self) -> Path[Channel]:
        """The path for one call; ``release`` follows when the call has ended."""
        with self._lock:
            self._current.calls += 1
            return self._current

    def release(self, path: Path[Channel]) -> None:
        """A call has ended."""
        with self._lock:
            path.calls -= 1
            is_over = path is not self._current and path.calls == 0 and path in self._open
            if is_over:
                self._open.remove(path)
        if is_over:
            self._hang_up(path.channel)

    def replace(self, silent: Path[Channel]) -> None:
        """Nothing came over this path, which is released later. Only the first of several such calls has an effect."""
        with self._lock:
            if silent is self._current and not self._is_closed:
                self._current = Path(self._dial(True))
                self._open.add(self._current)

    def end(self) -> list[Channel]:
        """The channels to close now, with their calls."""
        with self._lock:
            self._is_closed = True
            ended = [path.channel for path in self._open]
            self._open.clear()
            return ended
