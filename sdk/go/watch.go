package rollcall

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
)

const (
	// silence is how long a stream may be silent before it counts as broken. The server sends a message every 10 s.
	silence = 30 * time.Second
	// DefaultGiveUpAfter is how long a watch may receive nothing before it fails, unless GiveUpAfter is set.
	DefaultGiveUpAfter = 5 * time.Minute
)

// EventWatch follows the event log across restarts of the control plane. It returns every event exactly once.
type EventWatch struct {
	// GiveUpAfter is how long the watch may receive nothing before it fails. A negative value means forever.
	GiveUpAfter time.Duration

	client   *Client
	lock     sync.Mutex
	position eventPosition
}

// Watch follows events that match the request. It starts at the bookmark or, if the bookmark is empty, where the
// request says. It fails for an invalid bookmark. All returns errors from the server, such as for a bookmark that is
// too old (REVISION_COMPACTED).
func (e Events) Watch(request *eventsv1.WatchEventsRequest, from string) (*EventWatch, error) {
	if request == nil {
		request = &eventsv1.WatchEventsRequest{}
	}
	watch := &EventWatch{GiveUpAfter: DefaultGiveUpAfter, client: e.client, position: eventPosition{request: request}}
	if from != "" {
		at, err := parseBookmark(from)
		if err != nil {
			return nil, err
		}
		watch.position.at = &at
	}
	return watch, nil
}

// Bookmark returns the position after the last returned event; empty if nothing was received yet. Save it together with
// the result of handling the event, and pass it to Watch next time.
func (w *EventWatch) Bookmark() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.position.at == nil {
		return ""
	}
	return w.position.at.String()
}

// All iterates over the events until the context is done or until a failure that a retry cannot fix.
func (w *EventWatch) All(ctx context.Context) iter.Seq2[*eventsv1.Event, error] {
	return func(yield func(*eventsv1.Event, error) bool) {
		heard, breaks := time.Now(), 0
		for {
			request := w.locked(func(at *eventPosition) *eventsv1.WatchEventsRequest { return at.nextRequest() })
			isLeft := false
			err := w.client.follow(ctx, request, func(message *eventsv1.WatchEventsResponse) bool {
				breaks = 0
				for _, event := range message.GetEvents() {
					if w.isNew(event) && !yield(event, nil) {
						isLeft = true
						return false
					}
				}
				w.completed(message)
				heard = time.Now()
				return true
			})
			if isLeft {
				return
			}
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			breaks++
			wait, again := 100*time.Millisecond, true
			if err != nil {
				wait, again = waitBeforeResume(err, breaks, rand.Float64())
				again = again && (w.GiveUpAfter < 0 || time.Since(heard) < w.GiveUpAfter)
			}
			if !again {
				yield(nil, err)
				return
			}
			if cause := pause(ctx, wait); cause != nil {
				yield(nil, cause)
				return
			}
		}
	}
}

func (w *EventWatch) locked(read func(*eventPosition) *eventsv1.WatchEventsRequest) *eventsv1.WatchEventsRequest {
	w.lock.Lock()
	defer w.lock.Unlock()
	return read(&w.position)
}

func (w *EventWatch) isNew(event *eventsv1.Event) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.position.isSeen(event) {
		return false
	}
	w.position.passed(event)
	return true
}

func (w *EventWatch) completed(message *eventsv1.WatchEventsResponse) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.position.completed(message)
}

// follow reads one stream until take returns false, the stream breaks, or it falls silent. It returns nil after a
// normal end.
func (c *Client) follow(ctx context.Context, request *eventsv1.WatchEventsRequest, take func(*eventsv1.WatchEventsResponse) bool) *Error {
	streaming, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.EventService.WatchEvents(streaming, request)
	if err != nil {
		return asError(err)
	}
	return readStream(end, stream.Recv, take)
}

// readStream reads messages until take returns false. If the stream falls silent, it calls end, which cancels the
// stream.
func readStream[Message any](end context.CancelFunc, receive func() (Message, error), take func(Message) bool) *Error {
	for {
		watchdog := time.AfterFunc(silence, end)
		message, err := receive()
		isSilent := !watchdog.Stop()
		switch {
		case err == nil:
			if !take(message) {
				return nil
			}
		case errors.Is(err, io.EOF):
			return nil
		case isSilent:
			return asError(status.Error(codes.Unavailable, "the stream received nothing for too long"))
		default:
			return asError(err)
		}
	}
}

func asError(err error) *Error {
	var failure *Error
	if errors.As(errorOf(err), &failure) {
		return failure
	}
	return nil
}
