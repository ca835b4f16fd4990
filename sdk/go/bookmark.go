package rollcall

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
)

// A bookmark is a place in the log: after what a resume token stands for, and after the event of a revision. A message of the log has
// several events and one token for all of them; within it the place is the token of the message before, and the revision of the last
// event that was handed out.
type bookmark struct {
	token    string
	revision uint64
}

func (b bookmark) String() string { return b.token + "@" + strconv.FormatUint(b.revision, 10) }

// parseBookmark reads what String wrote, or a bare resume token.
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

// eventPosition is what a watch of events has handed out. Pure: it is told each message and each event.
type eventPosition struct {
	request *eventsv1.WatchEventsRequest
	at      *bookmark
}

// nextRequest goes on from here.
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

// isSeen says whether an event was handed out before.
func (p *eventPosition) isSeen(event *eventsv1.Event) bool {
	return p.at != nil && event.GetRevision() <= p.at.revision
}

// passed says that the event is about to be handed out.
func (p *eventPosition) passed(event *eventsv1.Event) {
	next := bookmark{revision: event.GetRevision()}
	if p.at != nil {
		next.token = p.at.token
	}
	p.at = &next
}

// completed says that every event of the message was handed out.
func (p *eventPosition) completed(message *eventsv1.WatchEventsResponse) {
	next := bookmark{message.GetResumeToken(), message.GetRevision()}
	// The first message of a watch stands for where it begins, which may be before what was handed out.
	if p.at != nil {
		next.revision = max(next.revision, p.at.revision)
	}
	p.at = &next
}
