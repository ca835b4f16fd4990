package agent

import (
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// An Executor runs executions. The agent calls its methods one at a time, and they must return quickly.
type Executor interface {
	// Capacity returns what the machine offers to executions. The agent calls it each time it reads the machine's
	// description. Report limits and missing features accurately, because the scheduler places a job only on nodes with
	// the memory, disk and features that the job asks for. Start must still refuse an execution that cannot run.
	Capacity() *nodev1.WorkCapacity
	// Start starts an execution with an id that it has not received before. An error means that the execution could not be
	// started; users see the error. Report progress through tell: first that the execution is running, then that it has
	// ended. Do not call tell before Start returns.
	Start(execution Execution, tell func(Progress)) error
	// Adopt takes over an execution that an earlier run of the agent started or was about to start. It returns false if
	// the execution is missing; the agent then reports it as GONE and never calls Start for it.
	Adopt(execution Execution, tell func(Progress)) bool
	// Stop asks an execution to end in the way its spec requires. Report the end through tell, like any other end.
	Stop(execution Execution)
	// Forget removes what an ended execution left behind.
	Forget(id string)
	// ReadOutput reads at most limit bytes of output.
	ReadOutput(id string, stream OutputStream, from OutputPlace, limit int) (OutputPiece, error)
}

// An Execution is what an Executor starts.
type Execution struct {
	// ID is unique forever and has at most 64 characters. It can contain any characters, so hash it before you use it as a
	// file name.
	ID string
	// NodeID is the node that runs the execution.
	NodeID string
	// Index is the execution's number within its job, from 0.
	Index uint32
	// Ports are the ports granted to the execution, keyed by label.
	Ports map[string]uint32
	// GPUs are the UUIDs of the GPUs granted to the execution.
	GPUs []string
	// Spec says what to run.
	Spec *workv1.ExecutionSpec
}

// Progress reports a change to an execution.
type Progress struct {
	// HasEnded reports whether the execution has ended; otherwise it is running.
	HasEnded bool
	// Reason says why the execution ended: EXITED, OOM, START_FAILED, CHECK_FAILED, DEADLINE_EXCEEDED, CONTROL_PLANE_LOST
	// or GONE. After Stop, the agent always reports STOPPED.
	Reason workv1.EndReason
	// ExitCode is the execution's exit code; nil if it did not exit.
	ExitCode *int32
	// Signal is the name of the signal that ended the execution, such as "SIGKILL".
	Signal string
	// Message is for users.
	Message string
}

// An OutputStream is 1 for standard output, 2 for standard error.
type OutputStream uint32

// An OutputPlace says where to start reading an output.
type OutputPlace struct {
	// Offset is the position in bytes since the execution started.
	Offset uint64
	// Tail starts this many bytes before the end. 0 means that Offset applies.
	Tail uint64
}

// An OutputPiece is a part of an execution's output.
type OutputPiece struct {
	// Offset is where the piece begins.
	Offset uint64
	Data   []byte
	// IsEnd reports whether the execution has ended and this piece is the last.
	IsEnd bool
}
