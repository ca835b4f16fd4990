package dev.rollcall.client;

import dev.rollcall.events.v1.Event;
import dev.rollcall.events.v1.WatchEventsRequest;
import dev.rollcall.events.v1.WatchEventsResponse;

/**
 * Tracks which events a watch has returned. Does no I/O, but receives each message and each event.
 */
final class EventPosition {
  private final WatchEventsRequest request;
  private volatile Bookmark bookmark;

  EventPosition(WatchEventsRequest request, Bookmark bookmark) {
    this.request = request;
    this.bookmark = bookmark;
  }

  /** The position after the last returned event; null before the first message. */
  Bookmark bookmark() {
    return bookmark;
  }

  /** The request that resumes the watch at this position. */
  WatchEventsRequest nextRequest() {
    Bookmark from = bookmark;
    if (from == null) return request;
    WatchEventsRequest.Builder next = request.toBuilder();
    if (from.token().isEmpty()) next.setAfterRevision(from.revision());
    else next.setResumeToken(from.token());
    return next.build();
  }

  /** Whether an event was already returned. */
  boolean isSeen(Event event) {
    Bookmark from = bookmark;
    return from != null && Long.compareUnsigned(event.getRevision(), from.revision()) <= 0;
  }

  /** Records that the event is about to be returned. */
  void passed(Event event) {
    Bookmark from = bookmark;
    bookmark = new Bookmark(from == null ? "" : from.token(), event.getRevision());
  }

  /**
   * Records that every event of the message was returned. Called when the next message is requested.
   */
  void completed(WatchEventsResponse message) {
    long seen = bookmark == null ? 0 : bookmark.revision();
    // The first message of a watch gives its starting point, which may be earlier than the last
    // returned event.
    boolean isLater = Long.compareUnsigned(message.getRevision(), seen) > 0;
    bookmark = new Bookmark(message.getResumeToken(), isLater ? message.getRevision() : seen);
  }
}
