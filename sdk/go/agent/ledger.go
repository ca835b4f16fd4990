package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// The change number of an execution that ends without ever starting.
const changeOfRefused = 2

// The time between checks for executions that should be running but are not.
const planEvery = 15 * time.Second

// ledger keeps the machine's durable list of executions, and carries out planned actions. It writes an execution to
// disk before it reports anything about it. Only the agent's loop uses it.
type ledger struct {
	options   Options
	log       *slog.Logger
	directory string
	post      func(func())
	tell      func(ids, wantedSpecs []string)

	kept    map[string]kept
	entries map[string]*ledgerEntry
	met     map[string]bool
	specs   map[string][]byte
	desired desiredWork
	wanted  []string
	// sessionLogID is the store history of the current session; empty until the session receives Executions.
	sessionLogID string
	toBind       []string
	plannedAt    time.Time
}

// ledgerEntry is one execution in its format on disk.
type ledgerEntry struct {
	LogID       string          `json:"logId"`
	IsStopping  bool            `json:"isStopping"`
	Reference   json.RawMessage `json:"reference"`
	Spec        []byte          `json:"spec"`
	Observation json.RawMessage `json:"observation"`

	execution Execution
}

func openLedger(options Options, log *slog.Logger, post func(func()), tell func(ids, wantedSpecs []string)) (*ledger, error) {
	l := &ledger{
		options: options, log: log, directory: filepath.Join(options.StateDir, "executions"), post: post, tell: tell,
		kept: map[string]kept{}, entries: map[string]*ledgerEntry{}, met: map[string]bool{}, specs: map[string][]byte{},
	}
	if err := os.MkdirAll(l.directory, 0o700); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(l.directory, "*.json"))
	for _, file := range files {
		// Treat the execution of an unreadable file as lost, because the store knows that it was reported.
		if err := l.read(file); err != nil {
			log.Error("an execution's file cannot be read", "file", file, "err", err)
		}
	}
	return l, err
}

func (l *ledger) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	entry, observation, reference := &ledgerEntry{}, &workv1.ExecutionObservation{}, &workv1.ExecutionReference{}
	if err := json.Unmarshal(text, entry); err != nil {
		return err
	}
	spec := &workv1.ExecutionSpec{}
	if err := errors.Join(protojson.Unmarshal(entry.Observation, observation), protojson.Unmarshal(entry.Reference, reference), proto.Unmarshal(entry.Spec, spec)); err != nil {
		return err
	}
	entry.execution = l.executionOf(reference, spec)
	id := observation.GetId()
	l.kept[id], l.entries[id], l.met[id] = kept{observation, entry.LogID}, entry, true
	return nil
}

func (l *ledger) executionOf(reference *workv1.ExecutionReference, spec *workv1.ExecutionSpec) Execution {
	return Execution{reference.GetId(), l.options.NodeID, reference.GetIndex(), reference.GetPorts(), reference.GetGpuUuids(), spec}
}

// recover adopts the executions that an earlier run of the agent left running.
func (l *ledger) recover() {
	for id, entry := range l.entries {
		if l.kept[id].observation.GetState() == workv1.ObservedState_OBSERVED_STATE_ENDED {
			continue
		}
		if l.options.Executor == nil || !l.options.Executor.Adopt(entry.execution, l.listener(id)) {
			l.onProgress(id, Progress{HasEnded: true, Reason: workv1.EndReason_END_REASON_GONE, Message: "it was gone when the agent restarted"})
		} else if entry.IsStopping {
			l.options.Executor.Stop(entry.execution)
		}
	}
}

func (l *ledger) capacity() *nodev1.WorkCapacity {
	if l.options.Executor == nil {
		return nil
	}
	return l.options.Executor.Capacity()
}

func (l *ledger) isRunning() bool {
	for _, one := range l.kept {
		if one.observation.GetState() != workv1.ObservedState_OBSERVED_STATE_ENDED {
			return true
		}
	}
	return false
}

// observations returns the observations of these executions, or of all executions if isWhole. It skips unknown ids.
func (l *ledger) observations(ids []string, isWhole bool) []*workv1.ExecutionObservation {
	if isWhole {
		ids = nil
		for id := range l.kept {
			ids = append(ids, id)
		}
		slices.Sort(ids)
	}
	var found []*workv1.ExecutionObservation
	for _, id := range ids {
		if one, isKept := l.kept[id]; isKept {
			found = append(found, one.observation)
		}
	}
	return found
}

func (l *ledger) digest() uint64 { return executionsDigest(l.observations(nil, true)) }

// opened handles a new session. It discards partial lists of an earlier session.
func (l *ledger) opened() {
	l.desired.partial, l.sessionLogID, l.toBind = nil, "", nil
}

func (l *ledger) heed(frame *healthv1.Executions) {
	l.desired = l.desired.apply(frame)
	l.sessionLogID = frame.GetLogId()
	l.bindReported()
	l.plan()
}

// ended handles the end of a stream or a registration. If the node was rejected, banned or deleted, it stops the
// executions of the store history that excluded the node. If the server does not name that history, it is toldBy: the
// history of the Executions that the stream received.
func (l *ledger) ended(how end, toldBy string) {
	if !how.isCastOut() {
		return
	}
	by := how.CastOutBy
	if by == "" {
		by = toldBy
	}
	if by == "" {
		return
	}
	l.desired = l.desired.castOut(l.kept, by)
	l.log.Warn("node was rejected, banned or deleted, stopping its executions", "executions", len(l.desired.references))
	l.plan()
}

func (l *ledger) takeSpec(frame *healthv1.SpecFrame) {
	digest := hex.EncodeToString(frame.GetDigest())
	if !l.desired.usesSpec(digest) {
		return
	}
	sum := sha256.Sum256(frame.GetSpec())
	switch {
	case len(frame.GetSpec()) == 0:
		l.specs[digest] = nil
	case bytes.Equal(sum[:], frame.GetDigest()):
		l.specs[digest] = frame.GetSpec()
	default:
		l.log.Error("spec does not have the requested digest, ignoring it", "digest", digest)
		return
	}
	l.plan()
}

// reported records that the store has received the reports about these executions.
func (l *ledger) reported(ids []string) {
	l.toBind = union(l.toBind, ids)
	l.bindReported()
}

// seen handles a response from the control plane: it retries what failed.
func (l *ledger) seen() {
	if time.Since(l.plannedAt) >= planEvery {
		l.plan()
	}
}

// bindReported binds the reported executions to the store history of this session, because the store now knows them.
func (l *ledger) bindReported() {
	if l.sessionLogID == "" {
		return
	}
	l.bind(l.toBind, l.sessionLogID)
	l.toBind = nil
}

func (l *ledger) bind(ids []string, logID string) {
	for _, id := range ids {
		if one, isKept := l.kept[id]; isKept && one.logID != logID {
			l.entries[id].LogID = logID
			if l.write(id, one.observation) {
				l.kept[id] = kept{one.observation, logID}
			}
		}
	}
}

// plan starts and stops executions to reach the desired state.
func (l *ledger) plan() {
	l.plannedAt = time.Now()
	l.desired = l.desired.prune(l.kept)
	pruneMet(l.met, l.kept, l.desired)
	for digest := range l.specs {
		if !l.desired.usesSpec(digest) {
			delete(l.specs, digest)
		}
	}
	actions, wanted := planWork(l.desired, l.kept, l.met, l.specs)
	if len(wanted) > 0 || len(l.wanted) > 0 {
		l.wanted = wanted
		l.tell(nil, wanted)
	}
	for _, action := range actions {
		l.carryOut(action)
	}
}

func (l *ledger) carryOut(action workAction) {
	switch action.kind {
	case "start":
		l.start(action.reference, action.spec)
	case "stop":
		l.stop(action.reference)
	case "refuse":
		reason := workv1.EndReason_END_REASON_START_FAILED
		if action.isLost {
			reason = workv1.EndReason_END_REASON_GONE
		}
		l.end(action.reference, reason, action.message)
	case "forget":
		l.forget(action.ids)
	case "bind":
		l.bind(action.ids, l.desired.logID)
	}
}

func (l *ledger) start(reference *workv1.ExecutionReference, bytesOfSpec []byte) {
	spec := &workv1.ExecutionSpec{}
	if err := proto.Unmarshal(bytesOfSpec, spec); err != nil || l.options.Executor == nil {
		l.end(reference, workv1.EndReason_END_REASON_START_FAILED, "this machine runs no work")
		return
	}
	id := reference.GetId()
	entry := &ledgerEntry{LogID: l.desired.logID, Reference: protoText(reference), Spec: bytesOfSpec, execution: l.executionOf(reference, spec)}
	observation := observationOf(reference, spec.GetJob())
	observation.State, observation.Change = workv1.ObservedState_OBSERVED_STATE_STARTING, 1
	// Write to disk before starting, so that an execution that may have been started is never started a second time.
	l.entries[id] = entry
	if !l.write(id, observation) {
		delete(l.entries, id)
		return
	}
	l.kept[id], l.met[id] = kept{observation, entry.LogID}, true
	l.tell([]string{id}, l.wanted)
	if err := l.options.Executor.Start(entry.execution, l.listener(id)); err != nil {
		l.onProgress(id, Progress{HasEnded: true, Reason: workv1.EndReason_END_REASON_START_FAILED, Message: err.Error()})
	}
}

func (l *ledger) stop(reference *workv1.ExecutionReference) {
	id := reference.GetId()
	entry, isKept := l.entries[id]
	if !isKept {
		l.end(reference, workv1.EndReason_END_REASON_STOPPED, "it was not on this machine")
	} else if !entry.IsStopping {
		entry.IsStopping = true
		l.write(id, l.kept[id].observation)
		l.options.Executor.Stop(entry.execution)
	}
}

// end records that an execution ended without running here.
func (l *ledger) end(reference *workv1.ExecutionReference, reason workv1.EndReason, message string) {
	id := reference.GetId()
	observation := observationOf(reference, "")
	observation.State, observation.Change = workv1.ObservedState_OBSERVED_STATE_ENDED, changeOfRefused
	observation.EndReason, observation.Message = reason, cut(message, 512)
	observation.EndTime = timestamppb.New(l.options.WallClock())
	l.entries[id] = &ledgerEntry{LogID: l.desired.logID, Reference: protoText(reference), execution: l.executionOf(reference, nil)}
	if !l.write(id, observation) {
		delete(l.entries, id)
		return
	}
	l.kept[id], l.met[id] = kept{observation, l.desired.logID}, true
	l.tell([]string{id}, l.wanted)
}

func (l *ledger) forget(ids []string) {
	for _, id := range ids {
		if err := os.Remove(l.pathOf(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.log.Warn("an execution's file cannot be removed", "err", err)
			continue
		}
		if l.options.Executor != nil {
			l.options.Executor.Forget(id)
		}
		delete(l.kept, id)
		delete(l.entries, id)
		delete(l.met, id)
	}
	l.desired = l.desired.prune(l.kept)
	l.tell(ids, l.wanted)
}

func (l *ledger) listener(id string) func(Progress) {
	return func(progress Progress) { l.post(func() { l.onProgress(id, progress) }) }
}

func (l *ledger) onProgress(id string, progress Progress) {
	one, isKept := l.kept[id]
	if !isKept || one.observation.GetState() == workv1.ObservedState_OBSERVED_STATE_ENDED {
		return
	}
	next := proto.CloneOf(one.observation)
	next.Change++
	now := timestamppb.New(l.options.WallClock())
	if next.StartTime == nil && progress.Reason != workv1.EndReason_END_REASON_START_FAILED {
		next.StartTime = now
	}
	next.State = workv1.ObservedState_OBSERVED_STATE_READY
	next.Message = cut(progress.Message, 512)
	if progress.HasEnded {
		next.State, next.EndTime, next.EndReason = workv1.ObservedState_OBSERVED_STATE_ENDED, now, progress.Reason
		next.ExitCode, next.Signal = progress.ExitCode, progress.Signal
		if l.entries[id].IsStopping {
			next.EndReason = workv1.EndReason_END_REASON_STOPPED
		}
	}
	// Report the change even if the disk write fails, because otherwise the control plane would wait for the execution to
	// end.
	l.write(id, next)
	l.kept[id] = kept{next, one.logID}
	l.tell([]string{id}, l.wanted)
}

// write stores an execution on disk, and reports whether that succeeded.
func (l *ledger) write(id string, observation *workv1.ExecutionObservation) bool {
	entry := l.entries[id]
	entry.Observation = protoText(observation)
	text, err := json.Marshal(entry)
	if err == nil {
		err = writeAtomically(l.pathOf(id), text)
	}
	if err != nil {
		l.log.Error("an execution's file cannot be written", "execution_id", id, "err", err)
	}
	return err == nil
}

func (l *ledger) pathOf(id string) string {
	return filepath.Join(l.directory, fileNameOf(id)+".json")
}

// fileNameOf returns a safe file name for any id.
func fileNameOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func observationOf(reference *workv1.ExecutionReference, job string) *workv1.ExecutionObservation {
	return &workv1.ExecutionObservation{
		Id: reference.GetId(), Job: job, SpecDigest: reference.GetSpecDigest(), Ports: reference.GetPorts(), GpuUuids: reference.GetGpuUuids(),
	}
}

func protoText(message proto.Message) json.RawMessage {
	text, err := protojson.Marshal(message)
	if err != nil {
		return json.RawMessage("{}") // Every message decoded from the wire can be encoded.
	}
	return text
}
