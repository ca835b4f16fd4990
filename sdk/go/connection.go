package rollcall

import (
	"errors"
	"sync"

	"google.golang.org/grpc"
)

// A connection leads to one address. A path can die without a word: calls that are made after one got no answer use a new path. The old
// one is closed when its last call has ended, because a call that merely takes long does not end the others.
type connection struct {
	dial func() (*grpc.ClientConn, error)

	lock    sync.Mutex
	current *path
	// The current path, and those before it that still have calls.
	open     map[*path]struct{}
	isClosed bool
}

// A path is one gRPC connection and its number of calls.
type path struct {
	*grpc.ClientConn
	calls int
}

func newConnection(dial func() (*grpc.ClientConn, error)) (*connection, error) {
	first, err := dial()
	if err != nil {
		return nil, err
	}
	current := &path{ClientConn: first}
	return &connection{dial: dial, current: current, open: map[*path]struct{}{current: {}}}, nil
}

// acquire answers the path for one call; release follows when the call has ended.
func (c *connection) acquire() *path {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.current.calls++
	return c.current
}

func (c *connection) release(used *path) {
	c.lock.Lock()
	defer c.lock.Unlock()
	used.calls--
	if used != c.current && used.calls == 0 && !c.isClosed {
		delete(c.open, used)
		// It has no calls that could fail.
		_ = used.Close()
	}
}

// replace is called before the release of a path on which nothing came. Only the first of several such calls has an effect.
func (c *connection) replace(silent *path) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if silent != c.current || c.isClosed {
		return
	}
	// Keep the present path if no other can be made.
	if next, err := c.dial(); err == nil {
		c.current = &path{ClientConn: next}
		c.open[c.current] = struct{}{}
	}
}

// Close ends every call.
func (c *connection) Close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.isClosed = true
	var failures []error
	for each := range c.open {
		failures = append(failures, each.Close())
	}
	c.open = nil
	return errors.Join(failures...)
}
