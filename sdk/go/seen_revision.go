package rollcall

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc/metadata"
)

const (
	minRevisionHeader = "rollcall-min-revision"
	revisionHeader    = "rollcall-revision"
)

// seenRevision is the highest log revision that a client has seen. No service may serve the client from an earlier
// state. It is safe for concurrent use.
type seenRevision struct{ revision atomic.Uint64 }

// attach adds the header to a call, unless the caller has set one.
func (s *seenRevision) attach(ctx context.Context) context.Context {
	revision := s.revision.Load()
	sent, _ := metadata.FromOutgoingContext(ctx)
	if revision == 0 || len(sent.Get(minRevisionHeader)) > 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, minRevisionHeader, strconv.FormatUint(revision, 10))
}

// answered records the revision in the header of a response.
func (s *seenRevision) answered(header metadata.MD) {
	for _, text := range header.Get(revisionHeader) {
		// Revisions are signed 64-bit numbers, so larger numbers are invalid.
		if revision, err := strconv.ParseUint(text, 10, 63); err == nil {
			s.heard(revision)
		}
	}
}

// heard records the revision in a stream's message; 0 means none.
func (s *seenRevision) heard(revision uint64) {
	for {
		before := s.revision.Load()
		if revision <= before || s.revision.CompareAndSwap(before, revision) {
			return
		}
	}
}

// failed forgets the revision if it is ahead of the log, for example after a restore.
func (s *seenRevision) failed(err error) {
	if ReasonOf(err) == ReasonMinRevisionAhead {
		s.revision.Store(0)
	}
}
