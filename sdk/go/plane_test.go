package rollcall

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

// A fakeRegistry handles each call with a function.
type fakeRegistry struct {
	registryv1.UnimplementedRegistryServiceServer
	get   func(context.Context) error
	watch func(grpc.ServerStreamingServer[registryv1.WatchNodesResponse]) error
}

func (f *fakeRegistry) GetNode(ctx context.Context, request *registryv1.GetNodeRequest) (*registryv1.GetNodeResponse, error) {
	return &registryv1.GetNodeResponse{Node: &nodev1.Node{Id: request.GetNode()}}, f.get(ctx)
}

func (f *fakeRegistry) WatchNodes(_ *registryv1.WatchNodesRequest, stream grpc.ServerStreamingServer[registryv1.WatchNodesResponse]) error {
	return f.watch(stream)
}

// serve starts the registry and returns its address.
func (f *fakeRegistry) serve(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	registryv1.RegisterRegistryServiceServer(server, f)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func clientOf(t *testing.T, server string, options Options) *Client {
	client, err := New(Config{Server: server, Token: "none", Options: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// within fails the test if done is not closed within a generous limit.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("timed out waiting until %s", what)
	}
}

func TestErrorsOfContexts(t *testing.T) {
	begun := make(chan struct{}, 8)
	wait := func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	registry := &fakeRegistry{get: wait, watch: func(stream grpc.ServerStreamingServer[registryv1.WatchNodesResponse]) error {
		return wait(stream.Context())
	}}
	client := clientOf(t, registry.serve(t), Options{})
	calls := map[string]func(context.Context) error{
		"a call": func(ctx context.Context) error {
			_, err := client.RegistryService.GetNode(ctx, &registryv1.GetNodeRequest{})
			return err
		},
		"a stream": func(ctx context.Context) error {
			stream, err := client.RegistryService.WatchNodes(ctx, &registryv1.WatchNodesRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	for name, call := range calls {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		err := call(ctx)
		var failure *Error
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failure) {
			t.Errorf("%s that was cancelled: %v", name, err)
		}
		short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(short); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%s that took too long: %v", name, err)
		}
		end()
		for len(begun) > 0 {
			<-begun
		}
	}
	refusing := &fakeRegistry{get: func(context.Context) error { return status.Error(codes.Canceled, "the server stops") }}
	_, err := clientOf(t, refusing.serve(t), Options{}).RegistryService.GetNode(t.Context(), &registryv1.GetNodeRequest{})
	if errors.Is(err, context.Canceled) {
		t.Errorf("the server's cancellation counts as the caller's: %v", err)
	}
}

func TestCloseNodeCacheWithinItsCallback(t *testing.T) {
	registry := &fakeRegistry{watch: func(stream grpc.ServerStreamingServer[registryv1.WatchNodesResponse]) error {
		changes := []*registryv1.NodeChange{}
		for _, id := range []string{"a", "b"} {
			changes = append(changes, &registryv1.NodeChange{Change: &registryv1.NodeChange_Upserted{Upserted: &nodev1.Node{Id: id}}})
		}
		if err := stream.Send(&registryv1.WatchNodesResponse{Changes: changes}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	}}
	client := clientOf(t, registry.serve(t), Options{})
	var calls int
	caches, closed := make(chan *NodeCache, 1), make(chan struct{})
	cache := client.NewNodeCache(t.Context(), nil, func(NodeChange) {
		calls++
		(<-caches).Close()
		close(closed)
	})
	caches <- cache
	within(t, "Close returns within the callback", closed)
	within(t, "the cache ends", cache.ended)
	if cache.Close(); calls != 1 {
		t.Errorf("%d calls of a listener that has closed its cache", calls)
	}
}

// A silentProxy forwards connections until fallSilent is called. After that, open connections stay open but carry no
// data.
type silentProxy struct {
	address  string
	accepted atomic.Int32
	lock     sync.Mutex
	silenced int32
}

func startSilentProxy(t *testing.T, target string) *silentProxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	proxy := &silentProxy{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			t.Cleanup(func() { client.Close(); upstream.Close() })
			number := proxy.accepted.Add(1)
			go proxy.carry(upstream, client, number)
			go proxy.carry(client, upstream, number)
		}
	}()
	return proxy
}

func (p *silentProxy) carry(to, from net.Conn, number int32) {
	piece := make([]byte, 1<<16)
	for {
		count, err := from.Read(piece)
		if err != nil {
			to.Close()
			return
		}
		p.lock.Lock()
		isSilent := number <= p.silenced
		p.lock.Unlock()
		if !isSilent {
			_, _ = to.Write(piece[:count])
		}
	}
}

// fallSilent stops forwarding on the connections accepted so far.
func (p *silentProxy) fallSilent() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.silenced = p.accepted.Load()
}

func TestOneConnectionForAllServices(t *testing.T) {
	registry := &fakeRegistry{get: func(context.Context) error { return nil }}
	proxy := startSilentProxy(t, registry.serve(t))
	client := clientOf(t, proxy.address, Options{})
	calls := map[string]func() error{
		"registry":  func() error { _, err := client.Nodes().Get(t.Context(), "n"); return err },
		"health":    func() error { _, err := client.HealthQueryService.GetNodeHealth(t.Context(), nil); return err },
		"admin":     func() error { _, err := client.AdminService.ListBans(t.Context(), nil); return err },
		"scheduler": func() error { _, err := client.JobService.ListJobs(t.Context(), nil); return err },
	}
	for service, call := range calls {
		// This server has only the registry.
		var failure *Error
		if err := call(); err != nil && (!errors.As(err, &failure) || failure.Code != codes.Unimplemented) {
			t.Errorf("%s: %v", service, err)
		}
	}
	if accepted := proxy.accepted.Load(); accepted != 1 {
		t.Errorf("%d connections to one address", accepted)
	}
	divided, err := New(Config{Server: proxy.address, Admin: "127.0.0.1:1", Token: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer divided.Close()
	if len(divided.connections) != 2 {
		t.Errorf("%d connections to two addresses", len(divided.connections))
	}
}

func TestServerThatIsSlow(t *testing.T) {
	// The server responds only to calls with more than 4 s left. The first attempt gets a third of the 9 s, which is too
	// little; the second attempt gets the rest.
	registry := &fakeRegistry{get: func(ctx context.Context) error {
		if deadline, _ := ctx.Deadline(); time.Until(deadline) > 4*time.Second {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	client := clientOf(t, registry.serve(t), Options{Timeout: 9 * time.Second})
	if _, err := client.RegistryService.GetNode(t.Context(), &registryv1.GetNodeRequest{Node: "n"}); err != nil {
		t.Errorf("no attempt had the remaining time: %v", err)
	}
}

func TestPathThatDiesSilently(t *testing.T) {
	registry := &fakeRegistry{get: func(context.Context) error { return nil }}
	proxy := startSilentProxy(t, registry.serve(t))
	client := clientOf(t, proxy.address, Options{Timeout: 9 * time.Second})
	get := func() error {
		_, err := client.RegistryService.GetNode(t.Context(), &registryv1.GetNodeRequest{Node: "n"})
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	proxy.fallSilent()
	var calls sync.WaitGroup
	for range 8 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			if err := get(); err != nil {
				t.Errorf("the path stays dead: %v", err)
			}
		}()
	}
	calls.Wait()
	if accepted := proxy.accepted.Load(); accepted != 2 {
		t.Errorf("%d connections, want the dead one and its replacement", accepted)
	}
	for _, used := range client.connections {
		if len(used.open) != 1 {
			t.Errorf("%d paths stay open", len(used.open))
		}
	}
	// A call that cannot be repeated fails, and the next call uses another path.
	proxy.fallSilent()
	once := clientOf(t, proxy.address, Options{Timeout: 2 * time.Second, Retry: RetryPolicy{Attempts: 1}})
	getOnce := func() error {
		_, err := once.RegistryService.GetNode(t.Context(), &registryv1.GetNodeRequest{Node: "n"})
		return err
	}
	if err := getOnce(); err != nil {
		t.Fatal(err)
	}
	proxy.fallSilent()
	if err := getOnce(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call over a dead path: %v", err)
	}
	if err := getOnce(); err != nil {
		t.Errorf("the call after it: %v", err)
	}
}
