//go:build unix

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

func TestExpand(t *testing.T) {
	type vector struct{ Word, Expanded string }
	for _, it := range vectors[[]vector](t, "expansions") {
		same(t, it.Word, expand([]string{it.Word}, []string{"a=1"}), []string{it.Expanded})
	}
}

func newTestExecutor(t *testing.T) *ProcessExecutor {
	t.Helper()
	executor, err := NewProcessExecutor(ProcessExecutorOptions{Directory: t.TempDir(), MayBeOwnUser: true})
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

// What a malicious execution can use to replace a file in its folder: a link to another user's file, or a pipe without
// a writer.
var replacements = map[string]func(secret, path string) error{
	"link": os.Symlink,
	"pipe": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
}

func TestReadsNothingThatAnExecutionPutInPlace(t *testing.T) {
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			executor := newTestExecutor(t)
			home := executor.home("e")
			secret := filepath.Join(t.TempDir(), "secret")
			err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(secret, []byte("7"), 0o600))
			for _, file := range []string{"1", "2", "exit", "pid"} {
				err = errors.Join(err, replace(secret, filepath.Join(home, file)))
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, stream := range []OutputStream{1, 2} {
				if piece, err := executor.ReadOutput("e", stream, OutputPlace{}, 100); err == nil {
					t.Errorf("read %q", piece.Data)
				}
			}
			if executor.Adopt(Execution{ID: "e"}, func(Progress) {}) {
				t.Error("adopted an execution without a pid")
			}
			same(t, "end", executor.endOf("e", workv1.EndReason_END_REASON_EXITED).Signal, "SIGKILL")
		})
	}
}

func TestCountsRunTimeWithoutTheWallClock(t *testing.T) {
	executor := newTestExecutor(t)
	process := &workv1.ProcessTask{Command: []string{"/bin/sh", "-c", "sleep 60"}}
	execution := Execution{ID: "e", Spec: &workv1.ExecutionSpec{Task: &workv1.ExecutionSpec_Process{Process: process}}}
	told := make(chan Progress, 9)
	if err := executor.Start(execution, func(progress Progress) { told <- progress }); err != nil {
		t.Fatal(err)
	}
	<-told
	path := filepath.Join(executor.home("e"), "pid")
	pid, err := readNumber(path)
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		pid, err = readNumber(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Make the file an hour old, as it would appear after a clock change.
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	age, err := ageOf(pid)
	if err != nil || age > time.Minute {
		t.Errorf("it is %v old: %v", age, err)
	}
	executor.Stop(execution)
	<-told
}

func TestEndsTheOutputOfWhatWasKilled(t *testing.T) {
	executor := newTestExecutor(t)
	told := make(chan Progress, 9)
	process := &workv1.ProcessTask{Command: []string{"/bin/sh", "-c", "trap '' TERM; echo out; sleep 60; sleep 60"}}
	process.Stop = &workv1.StopPolicy{Grace: durationpb.New(10 * time.Millisecond)}
	spec := &workv1.ExecutionSpec{MaxRunTime: durationpb.New(500 * time.Millisecond)}
	spec.Task = &workv1.ExecutionSpec_Process{Process: process}
	if err := executor.Start(Execution{ID: "e", Spec: spec}, func(it Progress) { told <- it }); err != nil {
		t.Fatal(err)
	}
	<-told
	end := <-told
	same(t, "end", []any{end.Reason, end.Signal}, []any{workv1.EndReason_END_REASON_DEADLINE_EXCEEDED, "SIGKILL"})
	piece, err := executor.ReadOutput("e", 1, OutputPlace{}, 100)
	same(t, "output", []any{string(piece.Data), piece.IsEnd, err}, []any{"out\n", true, nil})
}

func TestTellsWhatItLacksAndRefusesIt(t *testing.T) {
	executor := newTestExecutor(t)
	same(t, "lacks", executor.Capacity().GetLacks(), []string{"checks", "secrets", "stop-on-agent-after"})
	same(t, "limits", len(executor.Capacity().GetLimits()), 0)
	task := func(secrets map[string]string) *workv1.ExecutionSpec_Process {
		return &workv1.ExecutionSpec_Process{Process: &workv1.ProcessTask{Command: []string{"/bin/true"}, SecretEnv: secrets}}
	}
	for _, spec := range []*workv1.ExecutionSpec{
		{Task: task(nil), Check: &workv1.Check{}},
		{Task: task(map[string]string{"A": "a"})},
		{Task: task(nil), StopOnAgentAfter: durationpb.New(time.Minute)},
	} {
		if err := executor.Start(Execution{ID: "e", Spec: spec}, func(Progress) {}); err == nil {
			t.Errorf("started %v", spec)
		}
	}
}
