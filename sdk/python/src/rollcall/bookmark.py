"""Decides where a watch of events resumes. Does no I/O. Each watch has one object, which receives each message and
each returned event.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events.v1 import events_pb2


@dataclass(frozen=True)
class Bookmark:
    """A position in the event log: after the position of a resume token, and after the event with a revision.

    A message of the log contains several events but only one token. So the position after an event within a message
    consists of the previous message's token and the event's revision.
    """

    token: str
    revision: int = 0

    def __str__(self) -> str:
        return f"{self.token}@{self.revision}"

    @classmethod
    def parse(cls, text: str) -> Bookmark:
        """Parse the result of ``str()``, or a bare resume token. Raises ValueError for anything else."""
        token, separator, revision = text.rpartition("@")
        if not separator:
            return cls(text)
        if not (revision.isascii() and revision.isdigit()):
            raise ValueError(f"{text!r} is not a bookmark")
        return cls(token, int(revision))

    def start(self, request: events_pb2.WatchEventsRequest) -> events_pb2.WatchEventsRequest:
        """The request that starts at this position."""
        copy = events_pb2.WatchEventsRequest()
        copy.CopyFrom(request)
        if self.token:
            copy.resume_token = self.token
        else:
            copy.after_revision = self.revision
        return copy


class EventPosition:
    """Tracks which events a watch has returned."""

    def __init__(self, request: events_pb2.WatchEventsRequest, bookmark: Bookmark | None) -> None:
        self._request = request
        self._bookmark = bookmark

    @property
    def bookmark(self) -> Bookmark | None:
        """The position after the last returned event; None before the first message."""
        return self._bookmark

    def next_request(self) -> events_pb2.WatchEventsRequest:
        """The request that resumes the watch at this position."""
        return self._request if self._bookmark is None else self._bookmark.start(self._request)

    def unseen(self, message: events_pb2.WatchEventsResponse) -> list[events_pb2.Event]:
        """The events of a message that were not returned yet."""
        seen = 0 if self._bookmark is None else self._bookmark.revision
        return [event for event in message.events if event.revision > seen]

    def passed(self, event: events_pb2.Event) -> None:
        """Record that the event is about to be returned."""
        token = "" if self._bookmark is None else self._bookmark.token
        self._bookmark = Bookmark(token, event.revision)

    def completed(self, message: events_pb2.WatchEventsResponse) -> None:
        """Record that every event of the message was returned. Called when the next message is requested."""
        seen = 0 if self._bookmark is None else self._bookmark.revision
        # The first message of a watch gives its starting point, which may be earlier than the last returned event.
        self._bookmark = Bookmark(message.resume_token, max(seen, message.revision))
