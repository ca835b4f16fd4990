package rollcall

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
	schedulerv1 "rollcall.dev/go/gen/rollcall/scheduler/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
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
		_, err := client.RegistryService.GetClusterSummary(p.t.Context(), &registryv1.GetClusterSummaryRequest{})
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

// TestMain skips the examples, which need a control plane. TestClient runs them in another process.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("ROLLCALL_EXAMPLES") == "" {
		flag.Set("test.skip", "^Example")
	}
	os.Exit(m.Run())
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
		for it, err := range client.Nodes().List(t.Context(), &registryv1.ListNodesRequest{PageSize: 1}) {
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
		answer, err := client.AdminService.SetNodeLabels(ctx, &adminv1.SetNodeLabelsRequest{Node: node, Set: map[string]string{"sdk": value}, RequestId: requestID})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}

	t.Run("reports the reason of a refusal", func(t *testing.T) {
		_, err := client.RegistryService.GetNode(t.Context(), &registryv1.GetNodeRequest{Node: "nowhere"})
		if ReasonOf(err) != ReasonNodeNotFound {
			t.Error(err)
		}
		_, err = client.RegistryService.ListNodes(t.Context(), &registryv1.ListNodesRequest{PageSize: 100_000})
		var failure *Error
		if !errors.As(err, &failure) || len(failure.Violations) != 1 || failure.Violations[0].Field != "page_size" {
			t.Error(err)
		}
		unknown, err := New(Config{Server: plane.server, Token: "wrong"})
		if err != nil {
			t.Fatal(err)
		}
		defer unknown.Close()
		_, err = unknown.RegistryService.ListNodes(t.Context(), &registryv1.ListNodesRequest{})
		if ReasonOf(err) != ReasonTokenInvalid {
			t.Error(err)
		}
	})

	t.Run("runs the examples", func(t *testing.T) {
		examples := exec.Command(os.Args[0], "-test.run=^Example", "-test.v")
		examples.Env = append(os.Environ(), "ROLLCALL_EXAMPLES=1", "ROLLCALL_SERVER="+plane.server,
			"ROLLCALL_TOKEN_FILE="+filepath.Join(plane.directory, "admin-token"))
		output, err := examples.CombinedOutput()
		if err != nil || strings.Count(string(output), "--- PASS: Example") != 6 {
			t.Errorf("%v\n%s", err, output)
		}
	})

	t.Run("watches a node across a crash", func(t *testing.T) {
		setLabel("watched", "")
		isCrashed := false
		for change, err := range client.Nodes().Watch(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			label := func(value string) bool {
				return slices.ContainsFunc(change.After.GetLabels(), func(label *nodev1.Label) bool { return label.GetValue() == value })
			}
			if !isCrashed && label("watched") {
				plane.crash()
				setLabel("watched-again", "")
				isCrashed = true
			}
			if label("watched-again") {
				break
			}
		}
	})

	t.Run("watches a job and its execution", func(t *testing.T) {
		spec := &workv1.JobSpec{Name: "watched", Type: workv1.JobType_JOB_TYPE_BATCH,
			// After a crash, the node offers its executor only when its keeper has reconnected.
			QueueTimeout: durationpb.New(time.Hour),
			Task:         &workv1.JobSpec_Process{Process: &workv1.ProcessTask{Command: []string{"true"}}}}
		if _, err := client.JobService.SubmitJob(t.Context(), &schedulerv1.SubmitJobRequest{Spec: spec}); err != nil {
			t.Fatal(err)
		}
		for change, err := range client.Executions().Watch(t.Context(), &schedulerv1.WatchExecutionsRequest{Job: "watched"}) {
			if err != nil || change.After.GetJob() != "watched" {
				t.Fatal(change, err)
			}
			break
		}
		for change, err := range client.Jobs().Watch(t.Context(), nil) {
			if err != nil || change.Before != nil || change.After.GetSpec().GetName() != "watched" {
				t.Fatal(change, err)
			}
			break
		}
		if job, err := client.Jobs().Get(t.Context(), "watched"); err != nil || job.GetSpec().GetName() != "watched" {
			t.Error(job, err)
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
		watch, err := client.Events().Watch(&eventsv1.WatchEventsRequest{Types: []string{labelsChanged}}, "")
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
