package rollcall

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
)

// A bookmark is a position in the event log: after the position of a resume token, and after the event with a revision.
// A message of the log contains several events but only one token. So the position after an event within a message
// consists of the previous message's token and the event's revision.
type bookmark struct {
	token    string
	revision uint64
}

func (b bookmark) String() string { return b.token + "@" + strconv.FormatUint(b.revision, 10) }

// parseBookmark parses the result of String, or a bare resume token.
func parseBookmark(text string) (bookmark, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return bookmark{token: text}, nil
	}
	revision, err := strconv.ParseUint(text[at+1:], 10, 64)
	if err != nil {
		return bookmark{}, fmt.Errorf("%q is not a bookmark", text)
	}
	return bookmark{text[:at], revision}, nil
}

// eventPosition tracks which events a watch has returned. It does no I/O, but receives each message and each event.
type eventPosition struct {
	request *eventsv1.WatchEventsRequest
	at      *bookmark
}

// nextRequest returns the request that resumes the watch at this position.
func (p *eventPosition) nextRequest() *eventsv1.WatchEventsRequest {
	request := proto.Clone(p.request).(*eventsv1.WatchEventsRequest)
	switch {
	case p.at == nil:
	case p.at.token != "":
		request.Start = &eventsv1.WatchEventsRequest_ResumeToken{ResumeToken: p.at.token}
	default:
		request.Start = &eventsv1.WatchEventsRequest_AfterRevision{AfterRevision: p.at.revision}
	}
	return request
}

// isSeen reports whether an event was already returned.
func (p *eventPosition) isSeen(event *eventsv1.Event) bool {
	return p.at != nil && event.GetRevision() <= p.at.revision
}

// passed records that the event is about to be returned.
func (p *eventPosition) passed(event *eventsv1.Event) {
	next := bookmark{revision: event.GetRevision()}
	if p.at != nil {
		next.token = p.at.token
	}
	p.at = &next
}

// completed records that every event of the message was returned.
func (p *eventPosition) completed(message *eventsv1.WatchEventsResponse) {
	next := bookmark{message.GetResumeToken(), message.GetRevision()}
	// The first message of a watch gives its starting point, which may be earlier than the last returned event.
	if p.at != nil {
		next.revision = max(next.revision, p.at.revision)
	}
	p.at = &next
}
