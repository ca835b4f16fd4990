"""Where a watch of events goes on. Pure: one object a watch, told each message and each event that was handed out."""

from __future__ import annotations

from dataclasses import dataclass

from .events.v1 import events_pb2


@dataclass(frozen=True)
class Bookmark:
    """A place in the log: after what a resume token stands for, and after the event of a revision.

    A message of the log carries several events and one token for all of them. Within it the place is the token of the
    message before, and the revision of the last event that was handed out.
    """

    token: str
    revision: int = 0

    def __str__(self) -> str:
        return f"{self.token}@{self.revision}"

    @classmethod
    def parse(cls, text: str) -> Bookmark:
        """Read what ``str()`` wrote, or a bare resume token. Raises ValueError for what is neither."""
        token, separator, revision = text.rpartition("@")
        if not separator:
            return cls(text)
        if not (revision.isascii() and revision.isdigit()):
            raise ValueError(f"{text!r} is not a bookmark")
        return cls(token, int(revision))

    def start(self, request: events_pb2.WatchEventsRequest) -> events_pb2.WatchEventsRequest:
        """The request, beginning here."""
        copy = events_pb2.WatchEventsRequest()
        copy.CopyFrom(request)
        if self.token:
            copy.resume_token = self.token
        else:
            copy.after_revision = self.revision
        return copy


class EventPosition:
    """What a watch of events has handed out."""

    def __init__(self, request: events_pb2.WatchEventsRequest, bookmark: Bookmark | None) -> None:
        self._request = request
        self._bookmark = bookmark

    @property
    def bookmark(self) -> Bookmark | None:
        """After the last event that was handed out; None before the first message."""
        return self._bookmark

    def next_request(self) -> events_pb2.WatchEventsRequest:
        """The request that goes on from here."""
        return self._request if self._bookmark is None else self._bookmark.start(self._request)

    def unseen(self, message: events_pb2.WatchEventsResponse) -> list[events_pb2.Event]:
        """The events of a message that have not been handed out."""
        seen = 0 if self._bookmark is None else self._bookmark.revision
        return [event for event in message.events if event.revision > seen]

    def passed(self, event: events_pb2.Event) -> None:
        """The event is about to be handed out."""
        token = "" if self._bookmark is None else self._bookmark.token
        self._bookmark = Bookmark(token, event.revision)

    def completed(self, message: events_pb2.WatchEventsResponse) -> None:
        """Every event of the message was handed out, and the next is asked for."""
        seen = 0 if self._bookmark is None else self._bookmark.revision
        # The first message of a watch stands for where it begins, which may be before what was handed out.
        self._bookmark = Bookmark(message.resume_token, max(seen, message.revision))
