package agent

import (
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// An Executor runs executions. Its methods are called one at a time, and must return soon.
type Executor interface {
	// Capacity is what the machine offers to executions; asked once, when the agent is made. Its limits and what it lacks have to be true: a
	// job is not placed where memory or disk that it asks for are not offered, nor where what it needs is lacking. Start refuses what comes
	// all the same.
	Capacity() *nodev1.WorkCapacity
	// Start starts an execution, whose id it has never been given before. An error means that it could not be started, and is shown to
	// people. What becomes of the execution is told later, never before Start returns: Progress with Running, then one with Ended.
	Start(execution Execution, tell func(Progress)) error
	// Adopt goes on with an execution that an earlier run of the agent started, or was about to. False: it is not there, how it ended is not
	// known, and Start is not called for it.
	Adopt(execution Execution, tell func(Progress)) bool
	// Stop asks an execution to end, as its spec says. Its end is told like any other.
	Stop(execution Execution)
	// Forget removes what is left of an execution that has ended.
	Forget(id string)
	// ReadOutput reads a piece of output, at most limit bytes.
	ReadOutput(id string, stream OutputStream, from OutputPlace, limit int) (OutputPiece, error)
}

// An Execution is what an Executor runs.
type Execution struct {
	// ID is unique for ever, 64 characters at most. It may hold any characters: hash it before it becomes a file's name.
	ID string
	// NodeID is the node that runs it.
	NodeID string
	// Index is its number within its job, from 0.
	Index uint32
	// Ports are granted to it, by label.
	Ports map[string]uint32
	// GPUs are the UUIDs of those that are granted to it.
	GPUs []string
	// Spec says what runs.
	Spec *workv1.ExecutionSpec
}

// Progress is what becomes of an execution.
type Progress struct {
	// HasEnded, or it runs.
	HasEnded bool
	// Reason of an end: EXITED, OOM, START_FAILED, CHECK_FAILED, DEADLINE_EXCEEDED, CONTROL_PLANE_LOST or GONE. An end after Stop is told as
	// STOPPED whatever is here.
	Reason workv1.EndReason
	// ExitCode where it exited.
	ExitCode *int32
	// Signal that ended it, for example "SIGKILL".
	Signal string
	// Message for people.
	Message string
}

// An OutputStream is 1 for standard output, 2 for standard error.
type OutputStream uint32

// An OutputPlace is where to begin to read.
type OutputPlace struct {
	// Offset in bytes since the execution started.
	Offset uint64
	// Tail, in place of an offset: only so many bytes from the end. 0: from the offset.
	Tail uint64
}

// An OutputPiece is a part of what an execution wrote.
type OutputPiece struct {
	// Offset is where it begins.
	Offset uint64
	Data   []byte
	// IsEnd: nothing follows, and the execution has ended.
	IsEnd bool
}
