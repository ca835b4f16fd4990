package rollcall

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

func TestWaitBeforeRetry(t *testing.T) {
	for _, one := range []struct {
		failure      Error
		isRepeatable bool
		again        bool
	}{
		{Error{Code: codes.Unavailable}, true, true},
		{Error{Code: codes.Unavailable}, false, false},
		{Error{Code: codes.Aborted}, true, false},
		{Error{Code: codes.ResourceExhausted, RetryAfter: time.Second}, false, true},
		{Error{Code: codes.ResourceExhausted}, true, false},
		{Error{Code: codes.NotFound}, true, false},
		{Error{Code: codes.DeadlineExceeded}, true, false},
	} {
		if _, again := DefaultRetry.waitBeforeRetry(&one.failure, 1, one.isRepeatable, 0.5); again != one.again {
			t.Errorf("%v, repeatable %v: again is %v", one.failure.Code, one.isRepeatable, again)
		}
	}
	policy := RetryPolicy{Attempts: 5, FirstWait: time.Second, LongestWait: 4 * time.Second}
	failure := &Error{Code: codes.Unavailable}
	for attempt, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, 0} {
		if wait, _ := policy.waitBeforeRetry(failure, attempt+1, true, 1); wait != want {
			t.Errorf("attempt %d waits %v, not %v", attempt+1, wait, want)
		}
	}
	failure.RetryAfter = time.Minute
	if wait, _ := policy.waitBeforeRetry(failure, 1, true, 0); wait != time.Minute {
		t.Errorf("the server's word is not kept: %v", wait)
	}
}

func TestWaitBeforeResume(t *testing.T) {
	if _, again := waitBeforeResume(&Error{Code: codes.OutOfRange}, 1, 0.5); again {
		t.Error("a refusal is final")
	}
	expired := &Error{Code: codes.Unauthenticated, Reason: ReasonTokenExpired}
	if _, again := waitBeforeResume(expired, 1, 0.5); !again {
		t.Error("a renewed token is not tried")
	}
	if _, again := waitBeforeResume(expired, 2, 0.5); again {
		t.Error("a token that has ended is tried for ever")
	}
	if wait, again := waitBeforeResume(&Error{Code: codes.Unavailable}, 1_000, 1); !again || wait != 5*time.Second {
		t.Errorf("%v, %v", wait, again)
	}
}

func TestBookmark(t *testing.T) {
	for _, one := range []bookmark{{"t", 7}, {"", 7}, {"a@b", 0}} {
		if read, err := parseBookmark(one.String()); err != nil || read != one {
			t.Errorf("%v is read as %v, %v", one, read, err)
		}
	}
	if _, err := parseBookmark("token@-1"); err == nil {
		t.Error("a broken bookmark is read")
	}
	if read, _ := parseBookmark("token"); read != (bookmark{token: "token"}) {
		t.Error("a resume token is no bookmark")
	}
}

func TestEventPosition(t *testing.T) {
	position := eventPosition{request: &eventsv1.WatchEventsRequest{Subject: "n"}}
	position.completed(&eventsv1.WatchEventsResponse{ResumeToken: "t0", Revision: 4})
	position.passed(&eventsv1.Event{Revision: 5})
	request := position.nextRequest()
	if request.GetResumeToken() != "t0" || request.GetSubject() != "n" {
		t.Errorf("it goes on from %v", request)
	}
	if !position.isSeen(&eventsv1.Event{Revision: 5}) || position.isSeen(&eventsv1.Event{Revision: 6}) {
		t.Error("what was handed out comes again, or what was not does not")
	}
	fresh := eventPosition{request: &eventsv1.WatchEventsRequest{}}
	fresh.passed(&eventsv1.Event{Revision: 3})
	if fresh.nextRequest().GetAfterRevision() != 3 {
		t.Error("before the first token it goes on by revision")
	}
}

func upserted(id string) *registryv1.NodeChange {
	return &registryv1.NodeChange{Change: &registryv1.NodeChange_Upserted{Upserted: &nodev1.Node{Id: id}}}
}

func TestNodeView(t *testing.T) {
	view := newNodeView(nil)
	view.apply(&registryv1.WatchNodesResponse{Changes: []*registryv1.NodeChange{upserted("a")}, ResumeToken: "within"})
	if view.nextRequest().GetResumeToken() != "" {
		t.Error("a broken snapshot does not begin again")
	}
	both := []*registryv1.NodeChange{upserted("b"), upserted("c")}
	changes := view.apply(&registryv1.WatchNodesResponse{Changes: both, SnapshotComplete: true, ResumeToken: "t"})
	if len(changes) != 3 || len(view.nodes) != 2 || !view.isSynced {
		t.Errorf("%d changes, %d nodes", len(changes), len(view.nodes))
	}
	if view.nextRequest().GetResumeToken() != "t" {
		t.Error("it does not go on from the token")
	}
	if !view.failed(&Error{Reason: ReasonRevisionCompacted}) || view.failed(&Error{Reason: ReasonRevisionCompacted}) {
		t.Error("a snapshot mends a compacted log, once")
	}
}

func TestResolve(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"ROLLCALL_DATA_DIR": filepath.Join(home, "none")}
	at := surroundings{func(name string) string { return env[name] }, home, home, 1}
	target, err := resolve(Config{}, at)
	if err != nil || target.addresses["admin"].authority != "127.0.0.1:7700" {
		t.Fatalf("%v, %v", target, err)
	}
	env["ROLLCALL_SERVER"], env["ROLLCALL_TOKEN"] = "c:3", "t"
	target, err = resolve(Config{Server: "a:1", Admin: "b:2"}, at)
	if err != nil || target.addresses["registry"].authority != "a:1" || target.addresses["admin"].authority != "b:2" || target.token != "t" {
		t.Fatalf("%v, %v", target, err)
	}
	delete(env, "ROLLCALL_SERVER")
	delete(env, "ROLLCALL_TOKEN")
	file := filepath.Join(home, ".config", "rollcall", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "current_context: prod\ncontexts: {prod: {server: 'https://r.example:7700', token: secret}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err = resolve(Config{}, at)
	if err != nil || !target.addresses["admin"].isTLS || target.token != "secret" {
		t.Fatalf("%v, %v", target, err)
	}
	for _, elsewhere := range []string{"evil:1", "r.example:7700"} {
		target, err = resolve(Config{Server: elsewhere}, at)
		if err != nil {
			t.Fatal(err)
		}
		if token, _ := target.tokenSource("admin")(); token != "" {
			t.Errorf("a context's token goes to %s, in clear text", elsewhere)
		}
	}
	if _, err := resolve(Config{Context: "x"}, at); err == nil {
		t.Error("a context that is missing is not told")
	}
	for _, text := range []string{"host", "http://u:p@host:1", "host:1?x", "host:port", "ftp://host:1"} {
		if _, err := parseAddress(text, false); err == nil {
			t.Errorf("%q is taken for an address", text)
		}
	}
	if ipv6, err := parseAddress("[::1]:7700", false); err != nil || ipv6.authority != "[::1]:7700" || !ipv6.isLoopback() {
		t.Errorf("%v, %v", ipv6, err)
	}
}
