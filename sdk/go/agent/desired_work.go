package agent

import (
	"encoding/hex"
	"maps"
	"slices"

	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// A node keeps no more than this of what it is told, whatever it is told.
const mostReferences = 5_000

// desiredWork is what the control plane wants of this node.
type desiredWork struct {
	// logID is the history of the record that said so; empty before the first list.
	logID      string
	generation uint64
	references []*workv1.ExecutionReference
	// partial is the parts of a whole list that have come so far.
	partial []*workv1.ExecutionReference
}

// kept is an execution that the machine has, and the history of the record that knows it.
type kept struct {
	observation *workv1.ExecutionObservation
	logID       string
}

// A workAction is what has to be done for the machine to run what is wanted: "start", "stop", "refuse", "forget" or "bind".
type workAction struct {
	kind      string
	reference *workv1.ExecutionReference
	spec      []byte
	message   string
	// isLost: it was started here before.
	isLost bool
	ids    []string
}

// apply takes over a frame of Executions. An older generation of the same history changes nothing.
func (d desiredWork) apply(frame *healthv1.Executions) desiredWork {
	isSameLog := frame.GetLogId() == d.logID
	if isSameLog && frame.GetGeneration() < d.generation {
		return d
	}
	if !frame.GetWhole() {
		// Of a history whose whole list has not come, a change says too little.
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

// castOut: the node was rejected, banned or deleted by a history. All that runs by it is to stop, and nothing more is started. What another
// history knows goes on.
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

// prune lets go of executions that are to be forgotten, and have been.
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

// bounded replaces references by id, adds the new ones, and keeps the last mostReferences.
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
	lostMessage   = "its machine has lost it: it was started before, and nothing is known of it there"
	noSpecMessage = "the record has no such spec"
)

// planWork decides what to do, and which specs are missing. What no list names goes on. A history that was restored stops nothing that runs
// by another one until it has heard of that. What was here before, as the machine (met) or the record remembers, and is not here now, was
// lost: it is never started a second time. specs holds nil for one that the record has no more.
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

// pruneMet: what the machine has lost, and no list names, is nothing that could be started again.
func pruneMet(met map[string]bool, has map[string]kept, d desiredWork) {
	maps.DeleteFunc(met, func(id string, _ bool) bool {
		_, isKept := has[id]
		return !isKept && !d.has(id)
	})
}
