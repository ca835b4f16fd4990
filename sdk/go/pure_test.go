package rollcall

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
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
		t.Errorf("the server's delay is not respected: %v", wait)
	}
}

func TestWaitBeforeResume(t *testing.T) {
	if _, again := waitBeforeResume(&Error{Code: codes.OutOfRange}, 1, 0.5); again {
		t.Error("a refusal is final")
	}
	expired := &Error{Code: codes.Unauthenticated, Reason: ReasonTokenExpired}
	if _, again := waitBeforeResume(expired, 1, 0.5); !again {
		t.Error("a renewed token is not used")
	}
	if _, again := waitBeforeResume(expired, 2, 0.5); again {
		t.Error("an expired token is retried forever")
	}
	if wait, again := waitBeforeResume(&Error{Code: codes.Unavailable}, 1_000, 1); !again || wait != 5*time.Second {
		t.Errorf("%v, %v", wait, again)
	}
}

func TestBookmark(t *testing.T) {
	for _, one := range []bookmark{{"t", 7}, {"", 7}, {"a@b", 0}} {
		if read, err := parseBookmark(one.String()); err != nil || read != one {
			t.Errorf("%v is parsed as %v, %v", one, read, err)
		}
	}
	if _, err := parseBookmark("token@-1"); err == nil {
		t.Error("a broken bookmark is accepted")
	}
	if read, _ := parseBookmark("token"); read != (bookmark{token: "token"}) {
		t.Error("a resume token is not accepted as a bookmark")
	}
}

func TestEventPosition(t *testing.T) {
	position := eventPosition{request: &eventsv1.WatchEventsRequest{Subject: "n"}}
	position.completed(&eventsv1.WatchEventsResponse{ResumeToken: "t0", Revision: 4})
	position.passed(&eventsv1.Event{Revision: 5})
	request := position.nextRequest()
	if request.GetResumeToken() != "t0" || request.GetSubject() != "n" {
		t.Errorf("it resumes from %v", request)
	}
	if !position.isSeen(&eventsv1.Event{Revision: 5}) || position.isSeen(&eventsv1.Event{Revision: 6}) {
		t.Error("a returned event is repeated, or another is missing")
	}
	position.completed(&eventsv1.WatchEventsResponse{ResumeToken: "t0", Revision: 4})
	if position.at.revision != 5 {
		t.Error("the first message of a watch makes it forget the returned events")
	}
	fresh := eventPosition{request: &eventsv1.WatchEventsRequest{}}
	fresh.passed(&eventsv1.Event{Revision: 3})
	if fresh.nextRequest().GetAfterRevision() != 3 {
		t.Error("it does not resume by revision before the first token")
	}
}

func upserted(id string) *registryv1.NodeChange {
	return &registryv1.NodeChange{Change: &registryv1.NodeChange_Upserted{Upserted: &nodev1.Node{Id: id}}}
}

func TestNodeView(t *testing.T) {
	view := newNodeView(nil)
	view.apply(&registryv1.WatchNodesResponse{Changes: []*registryv1.NodeChange{upserted("a")}, ResumeToken: "within"})
	if view.nextRequest().GetResumeToken() != "" {
		t.Error("a broken snapshot does not start again")
	}
	both := []*registryv1.NodeChange{upserted("b"), upserted("c")}
	changes := view.apply(&registryv1.WatchNodesResponse{Changes: both, SnapshotComplete: true, ResumeToken: "t"})
	if len(changes) != 3 || len(view.items) != 2 || !view.isSynced {
		t.Errorf("%d changes, %d nodes", len(changes), len(view.items))
	}
	if view.nextRequest().GetResumeToken() != "t" {
		t.Error("it does not resume from the token")
	}
	if !view.failed(&Error{Reason: ReasonRevisionCompacted}) || view.failed(&Error{Reason: ReasonRevisionCompacted}) {
		t.Error("a snapshot must repair a compacted log, once")
	}
}

// readVectors reads test vectors that all languages share.
func readVectors(t *testing.T, name string, into any) {
	text, err := os.ReadFile(filepath.Join("..", "vectors", name))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type retryVector struct {
	Code         string  `json:"code"`
	Reason       string  `json:"reason"`
	Repeatable   bool    `json:"repeatable"`
	Attempt      int     `json:"attempt"`
	Breaks       int     `json:"breaks"`
	Random       float64 `json:"random"`
	RetryAfterMs int     `json:"retry_after_ms"`
	WaitMs       *int    `json:"wait_ms"`
}

func (v retryVector) check(t *testing.T, wait time.Duration, again bool) {
	if again != (v.WaitMs != nil) || (again && wait.Round(time.Millisecond) != time.Duration(*v.WaitMs)*time.Millisecond) {
		t.Errorf("%+v waits %v, again is %v", v, wait, again)
	}
}

func (v retryVector) failure(t *testing.T) *Error {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + v.Code + `"`)); err != nil {
		t.Fatal(err)
	}
	return &Error{Code: code, Reason: v.Reason, RetryAfter: time.Duration(v.RetryAfterMs) * time.Millisecond}
}

func TestRetryVectors(t *testing.T) {
	var vectors struct {
		Retries  []retryVector `json:"retries"`
		Resumes  []retryVector `json:"resumes"`
		Attempts []struct {
			TimeoutMs  int64 `json:"timeout_ms"`
			Attempt    int
			Repeatable bool
			LimitMs    *int64 `json:"limit_ms"`
		} `json:"attempts"`
		Bookmarks []struct {
			Text, Revision string
			Token          *string
		} `json:"bookmarks"`
		Revisions []revisionVector `json:"revisions"`
	}
	readVectors(t, "retries.json", &vectors)
	for _, one := range vectors.Retries {
		wait, again := DefaultRetry.waitBeforeRetry(one.failure(t), one.Attempt, one.Repeatable, one.Random)
		one.check(t, wait, again)
	}
	for _, one := range vectors.Resumes {
		wait, again := waitBeforeResume(one.failure(t), one.Breaks, one.Random)
		one.check(t, wait, again)
	}
	for _, one := range vectors.Attempts {
		limit := DefaultRetry.attemptLimit(time.Duration(one.TimeoutMs)*time.Millisecond, one.Attempt, one.Repeatable)
		if (limit == 0) != (one.LimitMs == nil) || (one.LimitMs != nil && limit.Milliseconds() != *one.LimitMs) {
			t.Errorf("%v is limited to %v", one, limit)
		}
	}
	for _, one := range vectors.Bookmarks {
		read, err := parseBookmark(one.Text)
		if (err != nil) != (one.Token == nil) {
			t.Errorf("%s: %v", one.Text, err)
		}
		if err == nil && (read.token != *one.Token || strconv.FormatUint(read.revision, 10) != one.Revision) {
			t.Errorf("%s is read as %v", one.Text, read)
		}
	}
	for _, one := range vectors.Revisions {
		one.check(t)
	}
}

type revisionVector struct {
	Name  string
	Steps []struct{ Answer, Message, Failure string }
	Sends *string
}

func (v revisionVector) check(t *testing.T) {
	seen := &seenRevision{}
	for _, step := range v.Steps {
		revision, _ := strconv.ParseUint(step.Message, 10, 64)
		seen.heard(revision)
		seen.answered(metadata.Pairs(revisionHeader, step.Answer))
		seen.failed(&Error{Reason: step.Failure})
	}
	sent, _ := metadata.FromOutgoingContext(seen.attach(t.Context()))
	want := []string{}
	if v.Sends != nil {
		want = append(want, *v.Sends)
	}
	if !slices.Equal(sent.Get(minRevisionHeader), want) {
		t.Errorf("%s: sends %v", v.Name, sent)
	}
}

type targetVector struct {
	Name, Error  string
	Files        map[string]string
	Options, Env map[string]string
	Addresses    map[string]string
	Tokens       map[string]*string
	CAFile       string `json:"ca_file"`
	ServerName   string `json:"server_name"`
}

func TestTargetVectors(t *testing.T) {
	var vectors []targetVector
	readVectors(t, "targets.json", &vectors)
	for _, one := range vectors {
		t.Run(one.Name, func(t *testing.T) { one.check(t) })
	}
}

func (v targetVector) check(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home")
	files := map[string]string{"home/.rollcall/keep": "", "cwd/keep": ""}
	maps.Copy(files, v.Files)
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	config := Config{
		Server: v.Options["server"], Health: v.Options["health"], Admin: v.Options["admin"], Scheduler: v.Options["scheduler"],
		Token: v.Options["token"], TokenFile: strings.ReplaceAll(v.Options["token_file"], "HOME", home),
		CAFingerprint: v.Options["ca_fingerprint"], Context: v.Options["context"],
	}
	at := surroundings{func(name string) string { return v.Env[name] }, home, filepath.Join(root, "cwd"), os.Geteuid()}
	found, err := resolve(config, at)
	if v.Error != "" {
		if err == nil || !strings.Contains(err.Error(), v.Error) {
			t.Errorf("%v does not say %q", err, v.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range v.Addresses {
		address := found.addresses[service]
		if url := map[bool]string{true: "https://", false: "http://"}[address.isTLS] + address.authority; url != want {
			t.Errorf("%s is at %s, not %s", service, url, want)
		}
	}
	for service, want := range v.Tokens {
		token, err := found.credentials[service](t.Context())
		if err != nil || (want == nil) != (token == "") || (want != nil && token != *want) {
			t.Errorf("%s gets %q, %v", service, token, err)
		}
	}
	if caFile, serverName := found.trustFor(found.addresses["registry"]); caFile != v.CAFile || serverName != v.ServerName {
		t.Errorf("it trusts %q for %q", caFile, serverName)
	}
}

func TestParseAddress(t *testing.T) {
	var vectors []struct {
		Text, URL, Refused string
		TLS                bool
	}
	readVectors(t, "addresses.json", &vectors)
	for _, one := range vectors {
		read, err := parseAddress(one.Text, one.TLS)
		if one.Refused != "" {
			if err == nil || !strings.Contains(err.Error(), one.Refused) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q is refused with %v", one.Text, err)
			}
		} else if url := map[bool]string{true: "https://", false: "http://"}[read.isTLS] + read.authority; err != nil || url != one.URL {
			t.Errorf("%q is read as %s, %v", one.Text, url, err)
		}
	}
	if ipv6, err := parseAddress("[::1]:7700", false); err != nil || !ipv6.isLoopback() {
		t.Errorf("%v, %v", ipv6, err)
	}
}
