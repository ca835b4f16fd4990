package dev.rollcall.client;

import dev.rollcall.events.v1.Event;
import dev.rollcall.events.v1.WatchEventsRequest;
import dev.rollcall.events.v1.WatchEventsResponse;

/** What a watch of events has handed out. Pure: it is told each message and each event. */
final class EventPosition {
  private final WatchEventsRequest request;
  private volatile Bookmark bookmark;

  EventPosition(WatchEventsRequest request, Bookmark bookmark) {
    this.request = request;
    this.bookmark = bookmark;
  }

  /** After the last event that was handed out; null before the first message. */
  Bookmark bookmark() {
    return bookmark;
  }

  /** The request that goes on from here. */
  WatchEventsRequest nextRequest() {
    Bookmark from = bookmark;
    if (from == null) return request;
    WatchEventsRequest.Builder next = request.toBuilder();
    if (from.token().isEmpty()) next.setAfterRevision(from.revision());
    else next.setResumeToken(from.token());
    return next.build();
  }

  /** Whether an event was handed out before. */
  boolean isSeen(Event event) {
    Bookmark from = bookmark;
    return from != null && Long.compareUnsigned(event.getRevision(), from.revision()) <= 0;
  }

  /** The event is about to be handed out. */
  void passed(Event event) {
    Bookmark from = bookmark;
    bookmark = new Bookmark(from == null ? "" : from.token(), event.getRevision());
  }

  /** Every event of the message was handed out, and the next is asked for. */
  void completed(WatchEventsResponse message) {
    long seen = bookmark == null ? 0 : bookmark.revision();
    // The first message of a watch stands for where it begins, which may be before what was handed out.
    boolean isLater = Long.compareUnsigned(message.getRevision(), seen) > 0;
    bookmark = new Bookmark(message.getResumeToken(), isLater ? message.getRevision() : seen);
  }
}
