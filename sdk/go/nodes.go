package rollcall

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

// NodeChange is one node before and after a change. Before is nil for an added node, After for a removed one.
type NodeChange = Change[*nodev1.Node]

// nodeView holds the nodes known from a watch. It does no I/O, but receives every message and every failure.
type nodeView struct {
	*watchView[*nodev1.Node]
	request  *registryv1.WatchNodesRequest
	token    string
	isSynced bool
}

func newNodeView(request *registryv1.WatchNodesRequest) *nodeView {
	filters := &registryv1.WatchNodesRequest{}
	if request != nil {
		filters = proto.Clone(request).(*registryv1.WatchNodesRequest)
	}
	filters.Start = nil
	return &nodeView{watchView: newWatchView[*nodev1.Node](), request: filters}
}

// nextRequest returns a request that resumes the watch, or starts with a snapshot.
func (v *nodeView) nextRequest() *registryv1.WatchNodesRequest {
	request := proto.Clone(v.request).(*registryv1.WatchNodesRequest)
	if v.token == "" {
		v.startSnapshot()
		return request
	}
	request.Start = &registryv1.WatchNodesRequest_ResumeToken{ResumeToken: v.token}
	return request
}

// apply applies a message and returns what changed.
func (v *nodeView) apply(message *registryv1.WatchNodesResponse) []NodeChange {
	var changes []NodeChange
	for _, change := range message.GetChanges() {
		if id := change.GetRemovedId(); id != "" {
			changes = v.remove(changes, id)
			continue
		}
		node := change.GetUpserted()
		changes = v.put(changes, node.GetId(), node)
	}
	if message.GetSnapshotComplete() {
		changes = v.completeSnapshot(changes)
		v.isSynced = true
	}
	// Ignore a token from within a snapshot, because resuming there would start the snapshot again and repeat the nodes
	// already sent.
	if v.snapshotIds == nil {
		v.token = message.GetResumeToken()
	}
	return changes
}

// failed handles a failure of the watch, and reports whether a new snapshot repairs it.
func (v *nodeView) failed(failure *Error) bool {
	isMended := failure.Reason == ReasonRevisionCompacted || failure.Reason == ReasonInvalidResumeToken
	if v.token == "" || !isMended {
		return false
	}
	v.token = ""
	return true
}

// NodeCache keeps the nodes that match a request in memory and up to date. It lists them, then watches for changes. It
// survives restarts of the control plane.
type NodeCache struct {
	client   *Client
	onChange func(NodeChange)
	end      context.CancelFunc
	ended    chan struct{}
	synced   chan struct{}

	lock    sync.RWMutex
	view    *nodeView
	failure error
	// isClosed reports whether Close was called; after that, onChange is not called. isCalling reports whether onChange is
	// running.
	isClosed, isCalling bool
}

// NewNodeCache creates a cache and starts to follow the nodes. onChange, which can be nil, is called for every change,
// one at a time. The cache ends when it is closed or the context is done.
func (c *Client) NewNodeCache(ctx context.Context, request *registryv1.WatchNodesRequest, onChange func(NodeChange)) *NodeCache {
	following, end := context.WithCancel(ctx)
	cache := &NodeCache{
		client:   c,
		onChange: onChange,
		end:      end,
		ended:    make(chan struct{}),
		synced:   make(chan struct{}),
		view:     newNodeView(request),
	}
	go cache.run(following)
	return cache
}

// WaitUntilSynced waits until every node is known. It fails if the context is done first, or after a failure that a
// retry cannot fix.
func (n *NodeCache) WaitUntilSynced(ctx context.Context) error {
	select {
	case <-n.synced:
		return nil
	case <-n.ended:
		return n.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get returns the node with this id, or nil.
func (n *NodeCache) Get(id string) *nodev1.Node {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return n.view.items[id]
}

// List returns all nodes, in no particular order.
func (n *NodeCache) List() []*nodev1.Node {
	n.lock.RLock()
	defer n.lock.RUnlock()
	nodes := make([]*nodev1.Node, 0, len(n.view.items))
	for _, node := range n.view.items {
		nodes = append(nodes, node)
	}
	return nodes
}

// Err returns the failure that ended the cache; nil while it follows the nodes.
func (n *NodeCache) Err() error {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return n.failure
}

// Close stops following. onChange is not called again. Close waits until everything has ended, except for a running
// call of onChange, because onChange may be what calls Close.
func (n *NodeCache) Close() {
	n.end()
	n.lock.Lock()
	n.isClosed = true
	isCalling := n.isCalling
	n.lock.Unlock()
	if !isCalling {
		<-n.ended
	}
}

func (n *NodeCache) run(ctx context.Context) {
	defer close(n.ended)
	defer n.end()
	for breaks := 1; ; breaks++ {
		failure := n.follow(ctx, func() { breaks = 0 })
		if ctx.Err() != nil {
			n.fail(ctx.Err())
			return
		}
		wait, again := 100*time.Millisecond, true
		if failure != nil && !n.restarts(failure) {
			wait, again = waitBeforeResume(failure, max(breaks, 1), rand.Float64())
		}
		if !again {
			n.fail(failure)
			return
		}
		if pause(ctx, wait) != nil {
			n.fail(ctx.Err())
			return
		}
	}
}

func (n *NodeCache) follow(ctx context.Context, onMessage func()) *Error {
	streaming, end := context.WithCancel(ctx)
	defer end()
	n.lock.Lock()
	request := n.view.nextRequest()
	n.lock.Unlock()
	stream, err := n.client.RegistryService.WatchNodes(streaming, request)
	if err != nil {
		return asError(err)
	}
	return readStream(end, stream.Recv, func(message *registryv1.WatchNodesResponse) bool {
		onMessage()
		n.take(message)
		return true
	})
}

func (n *NodeCache) take(message *registryv1.WatchNodesResponse) {
	n.lock.Lock()
	wasSynced := n.view.isSynced
	changes := n.view.apply(message)
	if !wasSynced && n.view.isSynced {
		close(n.synced)
	}
	n.lock.Unlock()
	if n.onChange == nil {
		return
	}
	for _, change := range changes {
		if !n.notify(change) {
			return
		}
	}
}

// notify calls onChange, unless the cache is closed. It reports whether it called onChange.
func (n *NodeCache) notify(change NodeChange) bool {
	n.lock.Lock()
	isClosed := n.isClosed
	n.isCalling = !isClosed
	n.lock.Unlock()
	if isClosed {
		return false
	}
	defer func() {
		n.lock.Lock()
		n.isCalling = false
		n.lock.Unlock()
	}()
	n.onChange(change)
	return true
}

func (n *NodeCache) restarts(failure *Error) bool {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.view.failed(failure)
}

func (n *NodeCache) fail(err error) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.failure = err
}
