package dev.rollcall.client;

import dev.rollcall.client.services.EventService;
import dev.rollcall.events.v1.Event;
import dev.rollcall.events.v1.WatchEventsResponse;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/**
 * Events across restarts of the control plane. Iterating returns every event exactly once. Iterate in one
 * thread. Save {@link #bookmark()} together with the result of handling an event, and start there next time.
 */
public final class EventWatch implements Iterator<Event>, Iterable<Event>, AutoCloseable {
  /** The default of how long a watch may receive nothing before it fails. */
  public static final Duration GIVE_UP_AFTER = Duration.ofMinutes(5);

  private final EventService events;
  private final EventPosition position;
  private final Reopening reopening;
  private volatile MessageStream<WatchEventsResponse> stream;
  private volatile boolean isClosed;
  private WatchEventsResponse message;
  private Iterator<Event> rest = List.<Event>of().iterator();
  private Event next;

  /** If {@code giveUpAfter} is null, the watch waits forever. */
  EventWatch(EventService events, EventPosition position, Duration giveUpAfter) {
    this.events = events;
    this.position = position;
    this.reopening = new Reopening(giveUpAfter);
  }

  /** The position after the last returned event; null if nothing was received yet. Any thread can call it. */
  public String bookmark() {
    Bookmark bookmark = position.bookmark();
    return bookmark == null ? null : bookmark.toString();
  }

  @Override
  public Iterator<Event> iterator() {
    return this;
  }

  /** Waits for an event. Throws RollcallException for a failure that a retry cannot fix. */
  @Override
  public boolean hasNext() {
    while (next == null && !isClosed) {
      if (rest.hasNext()) {
        Event event = rest.next();
        if (!position.isSeen(event)) next = event;
        continue;
      }
      if (message != null) position.completed(message);
      message = null;
      read();
    }
    return next != null;
  }

  @Override
  public Event next() {
    if (!hasNext()) throw new NoSuchElementException();
    Event event = next;
    next = null;
    position.passed(event);
    return event;
  }

  /** Ends the watch, and with it the iteration. Any thread can call it. */
  @Override
  public void close() {
    isClosed = true;
    reopening.close();
    MessageStream<?> open = stream;
    if (open != null) open.close();
  }

  private void read() {
    try {
      if (stream == null) {
        stream = events.watchEvents(position.nextRequest(), Reopening.SILENCE);
        if (isClosed) stream.close();
      }
      if (stream.hasNext()) {
        message = stream.next();
        rest = message.getEventsList().iterator();
        reopening.heard();
        return;
      }
      end();
      reopening.ended();
    } catch (RollcallException | ConfigurationException failure) {
      end();
      if (!isClosed) reopening.failed(failure);
    }
  }

  private void end() {
    if (stream != null) stream.close();
    stream = null;
  }
}
