package rollcall

import (
	"errors"
	"os"
	"slices"
	"sync"

	"google.golang.org/grpc"
)

// A connection makes calls to one address over its current path. A path can die silently, so after a call without a
// response, new calls use a new path. The old path is closed when its last call has ended, so that one slow call does
// not break the others. New calls also use a new path after the TLS files were replaced.
type connection struct {
	dial func() (*grpc.ClientConn, error)
	// files are the files that dial reads. stamp is their state before dial reads them.
	files []string
	stamp []fileState

	lock    sync.Mutex
	current *path
	// The current path, and earlier paths that still have calls.
	open     map[*path]struct{}
	isClosed bool
}

// A path is one gRPC connection, with the number of its running calls.
type path struct {
	*grpc.ClientConn
	calls int
}

func newConnection(dial func() (*grpc.ClientConn, error), files ...string) (*connection, error) {
	stamp := stampOf(files)
	first, err := dial()
	if err != nil {
		return nil, err
	}
	current := &path{ClientConn: first}
	return &connection{dial: dial, files: files, stamp: stamp, current: current, open: map[*path]struct{}{current: {}}}, nil
}

// acquire returns the path for one call. Call release when the call has ended.
func (c *connection) acquire() *path {
	c.lock.Lock()
	defer c.lock.Unlock()
	if stamp := stampOf(c.files); !isSameStamp(stamp, c.stamp) && !c.isClosed {
		// The new files may be half written. If they are unreadable, keep the current path until they can be read.
		if former := c.current; c.renew() {
			c.stamp = stamp
			c.end(former)
		}
	}
	c.current.calls++
	return c.current
}

func (c *connection) release(used *path) {
	c.lock.Lock()
	defer c.lock.Unlock()
	used.calls--
	c.end(used)
}

// end closes a path that is neither current nor in use.
func (c *connection) end(former *path) {
	if former != c.current && former.calls == 0 && !c.isClosed {
		delete(c.open, former)
		// Ignore the error. The path has no calls that could fail.
		_ = former.Close()
	}
}

// replace switches new calls from a silent path to a new one. Call it before release. If several calls of a path report
// silence, only the first report has an effect.
func (c *connection) replace(silent *path) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if silent != c.current || c.isClosed {
		return
	}
	c.renew()
}

// renew creates a new current path. If that fails, it returns false and keeps the current path.
func (c *connection) renew() bool {
	next, err := c.dial()
	if err != nil {
		return false
	}
	c.current = &path{ClientConn: next}
	c.open[c.current] = struct{}{}
	return true
}

// A fileState changes when its file is changed, replaced or removed. The info is nil for a missing file.
type fileState struct{ info os.FileInfo }

func (s fileState) equals(other fileState) bool {
	if s.info == nil || other.info == nil {
		return s.info == other.info
	}
	// SameFile compares inodes, because a file and its replacement can have the same size and time.
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// stampOf returns the states of the files, for comparison with a later stamp.
func stampOf(files []string) []fileState {
	stamp := make([]fileState, len(files))
	for at, file := range files {
		if found, err := os.Stat(file); err == nil {
			stamp[at].info = found
		}
	}
	return stamp
}

func isSameStamp(left, right []fileState) bool {
	return slices.EqualFunc(left, right, fileState.equals)
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
