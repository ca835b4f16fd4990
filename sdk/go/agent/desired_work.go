package agent

import (
	"encoding/hex"
	"maps"
	"slices"

	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// The maximum number of references that a node keeps, regardless of how many it receives.
const mostReferences = 5_000

// desiredWork is what should run on this node, according to the control plane.
type desiredWork struct {
	// logID identifies the store history that sent the list; empty before the first list.
	logID      string
	generation uint64
	references []*workv1.ExecutionReference
	// partial holds the parts of a complete list received so far.
	partial []*workv1.ExecutionReference
}

// kept is an execution on this machine, with the store history that knows it.
type kept struct {
	observation *workv1.ExecutionObservation
	logID       string
}

// A workAction is a step towards the desired state: "start", "stop", "refuse", "forget" or "bind".
type workAction struct {
	kind      string
	reference *workv1.ExecutionReference
	spec      []byte
	message   string
	// isLost belongs to "refuse". It reports whether the execution was started here before.
	isLost bool
	ids    []string
}

// apply applies a frame of Executions. It ignores an older generation of the same history.
func (d desiredWork) apply(frame *healthv1.Executions) desiredWork {
	isSameLog := frame.GetLogId() == d.logID
	if isSameLog && frame.GetGeneration() < d.generation {
		return d
	}
	if !frame.GetWhole() {
		// A change is meaningless without the complete list of the same history.
		if !isSameLog {
			return d
		}
		d.references = bounded(d.references, frame.GetReferences())
		if !frame.GetMore() {
			d.generation = frame.GetGeneration()
		}
		return d
	}
	partial := bounded(d.partial, frame.GetReferences())
	if frame.GetMore() {
		d.partial = partial
		return d
	}
	return desiredWork{logID: frame.GetLogId(), generation: frame.GetGeneration(), references: partial}
}

// castOut returns the desired work after a store history (by) has rejected, banned or deleted the node. All executions
// of that history stop, and nothing new starts. Executions of other histories continue.
func (d desiredWork) castOut(has map[string]kept, by string) desiredWork {
	after := desiredWork{logID: by}
	if by == d.logID {
		after.generation = d.generation
	}
	for _, id := range slices.Sorted(maps.Keys(has)) {
		if has[id].logID == by {
			after.references = append(after.references, &workv1.ExecutionReference{Id: id, Desired: workv1.DesiredState_DESIRED_STATE_STOP})
		}
	}
	return after
}

// prune drops references that ask to forget an execution that is already gone.
func (d desiredWork) prune(has map[string]kept) desiredWork {
	d.references = slices.DeleteFunc(slices.Clone(d.references), func(one *workv1.ExecutionReference) bool {
		_, isKept := has[one.GetId()]
		return one.GetDesired() == workv1.DesiredState_DESIRED_STATE_FORGET && !isKept
	})
	return d
}

func (d desiredWork) has(id string) bool {
	return slices.ContainsFunc(d.references, func(one *workv1.ExecutionReference) bool { return one.GetId() == id })
}

func (d desiredWork) usesSpec(digest string) bool {
	return slices.ContainsFunc(d.references, func(one *workv1.ExecutionReference) bool {
		return hex.EncodeToString(one.GetSpecDigest()) == digest
	})
}

// bounded replaces references with known ids, appends new references, and keeps the last mostReferences.
func bounded(known, named []*workv1.ExecutionReference) []*workv1.ExecutionReference {
	all := slices.Clone(known)
	at := make(map[string]int, len(all))
	for index, one := range all {
		at[one.GetId()] = index
	}
	for _, one := range named {
		if index, isKnown := at[one.GetId()]; isKnown {
			all[index] = one
		} else {
			at[one.GetId()] = len(all)
			all = append(all, one)
		}
	}
	return all[max(0, len(all)-mostReferences):]
}

const (
	lostMessage   = "the execution is lost: it was started before, but its machine no longer knows it"
	noSpecMessage = "the store has no such spec"
)

// planWork returns the actions to take and the digests of missing specs. Executions that no list names continue. A list
// stops only executions of the same store history, so after a restore an execution must first be bound to the restored
// history. An execution that the machine (met) or the store remembers, but that no longer exists, was lost and never
// starts a second time. specs holds nil for a spec that the store no longer has.
func planWork(d desiredWork, has map[string]kept, met map[string]bool, specs map[string][]byte) ([]workAction, []string) {
	var actions []workAction
	var forget, bind, wanted []string
	for _, reference := range d.references {
		id := reference.GetId()
		one, isKept := has[id]
		isEnded := one.observation.GetState() == workv1.ObservedState_OBSERVED_STATE_ENDED
		desired := reference.GetDesired()
		if !isKept && desired != workv1.DesiredState_DESIRED_STATE_FORGET && (reference.GetReported() || met[id]) {
			actions = append(actions, workAction{kind: "refuse", reference: reference, message: lostMessage, isLost: true})
			continue
		}
		switch desired {
		case workv1.DesiredState_DESIRED_STATE_RUN:
			digest := hex.EncodeToString(reference.GetSpecDigest())
			spec, isKnown := specs[digest]
			switch {
			case isKept && one.logID != d.logID:
				bind = append(bind, id)
			case isKept:
			case !isKnown:
				wanted = union(wanted, []string{digest})
			case spec == nil:
				actions = append(actions, workAction{kind: "refuse", reference: reference, message: noSpecMessage})
			default:
				actions = append(actions, workAction{kind: "start", reference: reference, spec: spec})
			}
		case workv1.DesiredState_DESIRED_STATE_STOP:
			if !isKept || (!isEnded && one.logID == d.logID) {
				actions = append(actions, workAction{kind: "stop", reference: reference})
			}
		case workv1.DesiredState_DESIRED_STATE_FORGET:
			if isEnded && one.logID == d.logID {
				forget = append(forget, id)
			}
		}
	}
	if len(forget) > 0 {
		actions = append(actions, workAction{kind: "forget", ids: forget})
	}
	if len(bind) > 0 {
		actions = append(actions, workAction{kind: "bind", ids: bind})
	}
	return actions, slices.DeleteFunc(wanted, func(digest string) bool { return len(digest) != 64 })
}

// pruneMet removes executions that neither the machine nor the desired list contains. They cannot start again.
func pruneMet(met map[string]bool, has map[string]kept, d desiredWork) {
	maps.DeleteFunc(met, func(id string, _ bool) bool {
		_, isKept := has[id]
		return !isKept && !d.has(id)
	})
}
