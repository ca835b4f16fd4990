package rollcall

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Change is one item before and after a change. Before is nil for an added item, After for a removed one.
type Change[Item any] struct {
	Before, After Item
}

// watchView holds the items known from a watch, by their names. It does no I/O.
type watchView[Item proto.Message] struct {
	items map[string]Item
	// snapshotIds holds the ids received so far in a snapshot; nil outside a snapshot.
	snapshotIds map[string]bool
}

func newWatchView[Item proto.Message]() *watchView[Item] {
	return &watchView[Item]{items: map[string]Item{}, snapshotIds: map[string]bool{}}
}

// startSnapshot prepares for a watch that begins with everything that exists.
func (v *watchView[Item]) startSnapshot() { v.snapshotIds = map[string]bool{} }

// put adds or replaces an item, and appends the change, if any.
func (v *watchView[Item]) put(changes []Change[Item], id string, item Item) []Change[Item] {
	if v.snapshotIds != nil {
		v.snapshotIds[id] = true
	}
	before, isKnown := v.items[id]
	v.items[id] = item
	if isKnown && proto.Equal(before, item) {
		return changes
	}
	return append(changes, Change[Item]{before, item})
}

// remove removes an item, and appends the change if the item was known.
func (v *watchView[Item]) remove(changes []Change[Item], id string) []Change[Item] {
	before, isKnown := v.items[id]
	if !isKnown {
		return changes
	}
	delete(v.items, id)
	var none Item
	return append(changes, Change[Item]{before, none})
}

// completeSnapshot removes the items that the snapshot lacks.
func (v *watchView[Item]) completeSnapshot(changes []Change[Item]) []Change[Item] {
	for id := range v.items {
		if v.snapshotIds != nil && !v.snapshotIds[id] {
			changes = v.remove(changes, id)
		}
	}
	v.snapshotIds = nil
	return changes
}

// A watch says how to open one kind of stream and how to apply its messages.
type watch[Message, Item any] struct {
	open  func(context.Context) (grpc.ServerStreamingClient[Message], error)
	apply func(*Message) []Change[Item]
	// isMended reports whether the watch can be reopened after a failure that a retry alone does not fix.
	isMended func(*Error) bool
}

// all iterates over the changes. It reopens a watch that breaks or falls silent.
func (w watch[Message, Item]) all(ctx context.Context) iter.Seq2[Change[Item], error] {
	return func(yield func(Change[Item], error) bool) {
		breaks := 0
		for {
			isLeft := false
			failure := w.read(ctx, func(message *Message) bool {
				breaks = 0
				for _, change := range w.apply(message) {
					if !yield(change, nil) {
						isLeft = true
						return false
					}
				}
				return true
			})
			if isLeft {
				return
			}
			breaks++
			wait, again := 100*time.Millisecond, true
			if failure != nil && !w.isMended(failure) {
				wait, again = waitBeforeResume(failure, breaks, rand.Float64())
			}
			if ctx.Err() == nil && !again {
				yield(Change[Item]{}, failure)
				return
			}
			if cause := pause(ctx, wait); cause != nil {
				yield(Change[Item]{}, cause)
				return
			}
		}
	}
}

// read reads one stream until take returns false, the stream breaks, or it falls silent. It returns nil after a normal
// end.
func (w watch[Message, Item]) read(ctx context.Context, take func(*Message) bool) *Error {
	streaming, end := context.WithCancel(ctx)
	defer end()
	stream, err := w.open(streaming)
	if err != nil {
		return asError(err)
	}
	return readStream(end, stream.Recv, take)
}
