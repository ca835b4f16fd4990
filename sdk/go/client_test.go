package rollcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

const labelsChanged = "node.labels.changed"

// A controlPlane is a running `rollcall up`. It keeps its ports when it restarts.
type controlPlane struct {
	t         *testing.T
	directory string
	server    string
	flags     []string
	process   *exec.Cmd
}

func startControlPlane(t *testing.T) *controlPlane {
	root, err := os.MkdirTemp("", "rollcall-go-")
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(root, "data")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	plane := &controlPlane{t: t, directory: directory}
	for index, flag := range []string{"port", "agent-port", "probe-port", "internal-port"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		plane.flags = append(plane.flags, fmt.Sprintf("--%s=%d", flag, port))
		if index == 0 {
			plane.server = fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Cleanup(func() {
		plane.end(syscall.SIGTERM)
		// The agent and the keeper end a little later, and write files until they do.
		plane.eventually("the files are removed", func() bool { return os.RemoveAll(root) == nil })
	})
	return plane
}

func (p *controlPlane) start() {
	bin := os.Getenv("ROLLCALL_BIN")
	if bin == "" {
		bin = "../../bin/rollcall"
	}
	p.process = exec.Command(bin, append([]string{"up", "--data-dir=" + p.directory}, p.flags...)...)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(p.directory), "up.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		p.t.Fatal(err)
	}
	log.Close()
	p.eventually("the control plane answers", func() bool {
		client := p.client()
		defer client.Close()
		_, err := client.Registry.GetClusterSummary(p.t.Context(), &registryv1.GetClusterSummaryRequest{})
		return err == nil
	})
}

func (p *controlPlane) end(how syscall.Signal) {
	if p.process == nil {
		return
	}
	p.process.Process.Signal(how)
	p.process.Wait()
	p.process = nil
}

func (p *controlPlane) crash() {
	p.end(syscall.SIGKILL)
	p.start()
}

func (p *controlPlane) client() *Client {
	client, err := New(Config{Server: p.server, TokenFile: filepath.Join(p.directory, "admin-token")})
	if err != nil {
		p.t.Fatal(err)
	}
	return client
}

func (p *controlPlane) eventually(what string, isSo func() bool) {
	for end := time.Now().Add(3 * time.Minute); !isSo(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(filepath.Dir(p.directory), "up.log"))
			p.t.Fatalf("timed out waiting until %s\n%s", what, log)
		}
	}
}

func TestClient(t *testing.T) {
	plane := startControlPlane(t)
	plane.start()
	client := plane.client()
	defer client.Close()
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ids := func() (found []string) {
		list := Each(t.Context(), client.Registry.ListNodes, &registryv1.ListNodesRequest{PageSize: 1}, (*registryv1.ListNodesResponse).GetNodes)
		for it, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, it.GetId())
		}
		return found
	}
	plane.eventually("this machine is listed", func() bool { return slices.Contains(ids(), node) })
	setLabel := func(value, requestID string) *adminv1.SetNodeLabelsResponse {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		answer, err := client.Admin.SetNodeLabels(ctx, &adminv1.SetNodeLabelsRequest{Node: node, Set: map[string]string{"sdk": value}, RequestId: requestID})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}

	t.Run("reports the reason of a refusal", func(t *testing.T) {
		_, err := client.Registry.GetNode(t.Context(), &registryv1.GetNodeRequest{Node: "nowhere"})
		if ReasonOf(err) != ReasonNodeNotFound {
			t.Error(err)
		}
		_, err = client.Registry.ListNodes(t.Context(), &registryv1.ListNodesRequest{PageSize: 100_000})
		var failure *Error
		if !errors.As(err, &failure) || len(failure.Violations) != 1 || failure.Violations[0].Field != "page_size" {
			t.Error(err)
		}
		unknown, err := New(Config{Server: plane.server, Token: "wrong"})
		if err != nil {
			t.Fatal(err)
		}
		defer unknown.Close()
		_, err = unknown.Registry.ListNodes(t.Context(), &registryv1.ListNodesRequest{})
		if ReasonOf(err) != ReasonTokenInvalid {
			t.Error(err)
		}
	})

	t.Run("has one effect for one request id", func(t *testing.T) {
		first, second := setLabel("once", "the-same"), setLabel("once", "the-same")
		if first.String() != second.String() {
			t.Errorf("%v, then %v", first, second)
		}
	})

	t.Run("neither loses nor repeats events across crashes", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		watch, err := client.WatchEvents(&eventsv1.WatchEventsRequest{Types: []string{labelsChanged}}, "")
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan string, 1_000)
		go func() {
			for event, err := range watch.All(ctx) {
				if err != nil {
					seen <- err.Error()
					return
				}
				seen <- event.GetAfter().AsMap()["labels"].(map[string]any)["sdk"].(string)
			}
		}()
		plane.eventually("it follows", func() bool { return watch.Bookmark() != "" })
		for crash := range 2 {
			for number := range 20 {
				setLabel(fmt.Sprintf("crash-%d-%d", crash, number), "")
			}
			plane.crash()
		}
		setLabel("the-end", "")
		for crash := range 2 {
			for number := range 20 {
				if value := <-seen; value != fmt.Sprintf("crash-%d-%d", crash, number) {
					t.Fatalf("after crash %d, at %d: %s", crash, number, value)
				}
			}
		}
		if value := <-seen; value != "the-end" {
			t.Fatal(value)
		}
	})

	t.Run("keeps every node across a crash", func(t *testing.T) {
		cache := client.NewNodeCache(t.Context(), nil, nil)
		defer cache.Close()
		if err := cache.WaitUntilSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		plane.crash()
		setLabel("after-the-crash", "")
		plane.eventually("the label has arrived", func() bool {
			return slices.ContainsFunc(cache.Get(node).GetLabels(), func(label *nodev1.Label) bool { return label.GetValue() == "after-the-crash" })
		})
		if len(cache.List()) != len(ids()) {
			t.Errorf("%d nodes, %d listed", len(cache.List()), len(ids()))
		}
	})
}
