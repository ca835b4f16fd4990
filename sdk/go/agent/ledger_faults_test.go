package agent

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

const (
	run  = workv1.DesiredState_DESIRED_STATE_RUN
	stop = workv1.DesiredState_DESIRED_STATE_STOP
)

// fakeProgram is an execution on a fakeMachine.
type fakeProgram struct {
	starts, signals int
	isRunning       bool
}

// fakeMachine is an Executor without processes. Its program survives the agent, and ends at the first signal. Before and
// after each call, it copies the agent's disk and itself: an agent that is stopped there leaves exactly this.
type fakeMachine struct {
	program fakeProgram
	disk    string
	tell    func(Progress)
	copies  []machineCopy
	t       *testing.T
}

type machineCopy struct {
	name    string
	program fakeProgram
	disk    string
}

func (m *fakeMachine) call(name string, perform func()) {
	m.copy("before " + name)
	perform()
	m.copy("after " + name)
}

func (m *fakeMachine) copy(name string) {
	disk := filepath.Join(m.t.TempDir(), "state")
	if err := os.CopyFS(disk, os.DirFS(m.disk)); err != nil {
		m.t.Fatal(err)
	}
	m.copies = append(m.copies, machineCopy{name, m.program, disk})
}

func (m *fakeMachine) Capacity() *nodev1.WorkCapacity { return &nodev1.WorkCapacity{} }

func (m *fakeMachine) Start(_ Execution, tell func(Progress)) error {
	m.call("Start", func() { m.program.starts, m.program.isRunning, m.tell = m.program.starts+1, true, tell })
	return nil
}

func (m *fakeMachine) Adopt(_ Execution, tell func(Progress)) bool {
	m.tell = tell
	return m.program.starts > 0
}

func (m *fakeMachine) Stop(Execution) {
	m.call("Stop", func() { m.program.signals, m.program.isRunning = m.program.signals+1, false })
}

func (m *fakeMachine) Forget(string) {}

func (m *fakeMachine) ReadOutput(string, OutputStream, OutputPlace, int) (OutputPiece, error) {
	return OutputPiece{}, io.EOF
}

// report reports the state of the program, as its watcher does.
func (m *fakeMachine) report() {
	if m.tell == nil {
		return
	}
	if m.program.isRunning {
		m.tell(Progress{})
	} else if m.program.starts > 0 {
		m.tell(Progress{HasEnded: true, Reason: workv1.EndReason_END_REASON_EXITED, Signal: "SIGTERM"})
	}
}

// testLedger is a ledger whose posted functions run at once.
func testLedger(t *testing.T, machine *fakeMachine) *ledger {
	t.Helper()
	options := Options{NodeID: "node-1", StateDir: machine.disk, Executor: machine, WallClock: func() time.Time { return time.Unix(1, 0) }}
	log := slog.New(slog.DiscardHandler)
	found, err := openLedger(options, log, func(act func()) { act() }, func(_, _ []string) {})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// desire tells the ledger what should happen to the execution, as the control plane does with each new session.
func desire(t *testing.T, l *ledger, generation uint64, desired workv1.DesiredState) {
	t.Helper()
	spec, err := proto.Marshal(&workv1.ExecutionSpec{Job: "job-1"})
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(spec)
	reference := &workv1.ExecutionReference{Id: "e1", Desired: desired, SpecDigest: digest[:]}
	l.opened()
	l.heed(&healthv1.Executions{LogId: "log-1", Generation: generation, Whole: true, References: []*workv1.ExecutionReference{reference}})
	l.takeSpec(&healthv1.SpecFrame{Digest: digest[:], Spec: spec})
}

func TestStartsAgainAfterOneFailedWrite(t *testing.T) {
	machine := &fakeMachine{t: t, disk: t.TempDir()}
	l := testLedger(t, machine)
	directory := l.directory
	l.directory = filepath.Join(machine.disk, "missing")
	desire(t, l, 1, run)
	same(t, "starts without a disk", machine.program.starts, 0)
	l.directory = directory
	l.plannedAt = time.Time{}
	l.seen()
	same(t, "starts", machine.program.starts, 1)
}

func TestFinishesAStopAfterTheAgentWasStopped(t *testing.T) {
	machine := &fakeMachine{t: t, disk: t.TempDir()}
	l := testLedger(t, machine)
	desire(t, l, 1, run)
	machine.report()
	desire(t, l, 2, stop)
	machine.report()
	same(t, "copies", len(machine.copies), 4)
	for index, one := range machine.copies {
		t.Run(one.name, func(t *testing.T) {
			next := &fakeMachine{t: t, program: one.program, disk: one.disk}
			l := testLedger(t, next)
			l.recover()
			// An agent that had accepted the stop finishes it although it has no session yet.
			wasAsked := index >= 2
			if !wasAsked {
				next.report()
				desire(t, l, 2, stop)
			}
			next.report()
			same(t, "runs", next.program.isRunning, false)
			if next.program.starts > 1 {
				t.Errorf("it was started %d times", next.program.starts)
			}
			if next.program.starts == 1 && next.program.signals == 0 {
				t.Error("it was never asked to end")
			}
			observation := l.kept["e1"].observation
			same(t, "state", observation.GetState(), workv1.ObservedState_OBSERVED_STATE_ENDED)
			want := workv1.EndReason_END_REASON_STOPPED
			if one.program.starts == 0 {
				want = workv1.EndReason_END_REASON_GONE // It is unknown whether it was started.
			}
			same(t, fmt.Sprintf("reason after %s", one.name), observation.GetEndReason(), want)
		})
	}
}
