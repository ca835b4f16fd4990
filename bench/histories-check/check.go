package main

import (
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is one line of a history.
type Operation struct {
	Node      string `json:"node"`
	Client    int    `json:"client"`
	Operation string `json:"operation"`
	// Value is the label's value to set.
	Value  string `json:"value,omitempty"`
	CallUs int64  `json:"callUs"`
	// ReturnUs is null if the outcome is unknown: the operation took effect at any time after the call, or never.
	ReturnUs *int64 `json:"returnUs"`
	Refusal  string `json:"refusal,omitempty"`
	Seen     *View  `json:"seen,omitempty"`
	// isEarlier says that the operation was called before the window that is checked, and may have taken effect
	// before it.
	isEarlier bool
}

// checkLimit is the time that the check of one node may take. Each open operation can double the work.
const checkLimit = 2 * time.Minute

// check decides whether the operations of one node are linearizable from one of these states.
func check(operations []Operation, from []State) porcupine.CheckResult {
	model := porcupine.NondeterministicModel{
		Init: func() []any {
			states := make([]any, len(from))
			for i, state := range from {
				states[i] = state
			}
			return states
		},
		Step:  step,
		Equal: func(a, b any) bool { return a == b },
	}
	history := make([]porcupine.Operation, len(operations))
	for i, operation := range operations {
		end := int64(math.MaxInt64)
		if operation.ReturnUs != nil {
			end = *operation.ReturnUs
		}
		history[i] = porcupine.Operation{
			ClientId: operation.Client, Input: operation, Output: operation, Call: operation.CallUs, Return: end,
		}
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), history, checkLimit)
}

// step returns the possible states after an operation; none if its answer is wrong in this state.
func step(before, input, _ any) []any {
	state, operation := before.(State), input.(Operation)
	next, answer := Apply(state, operation.Operation, operation.Value)
	isRight := operation.ReturnUs == nil || matches(answer, operation)
	switch {
	case operation.isEarlier && isRight:
		return []any{state, next}
	case operation.isEarlier:
		return []any{state}
	case isRight:
		// An open operation that never took effect has its place at the end of the history.
		return []any{next}
	default:
		return nil
	}
}

func matches(answer Answer, operation Operation) bool {
	if answer.Refusal != operation.Refusal {
		return false
	}
	if answer.Node == nil || operation.Seen == nil {
		return answer.Node == nil && operation.Seen == nil
	}
	return *answer.Node == *operation.Seen
}

// shrink returns the operations of a short window that is not linearizable. A window begins in any state, so it
// convicts the history without the operations before it. Only operations without an effect are left out of it: without
// a change, the answers that depend on it would be wrong.
func shrink(operations []Operation) []Operation {
	ends := []int64{}
	for _, operation := range operations {
		if operation.ReturnUs != nil {
			ends = append(ends, *operation.ReturnUs)
		}
	}
	slices.Sort(ends)
	initial := []State{initialState}
	isIllegal := func(window []Operation, from []State) bool { return check(window, from) == porcupine.Illegal }
	end := ends[firstTrue(len(ends), func(i int) bool { return isIllegal(until(operations, ends[i]), initial) })]
	prefix := until(operations, end)
	starts := make([]int64, len(prefix))
	for i, operation := range prefix {
		starts[i] = operation.CallUs
	}
	slices.Sort(starts)
	// The first start whose window can be explained. The windows of all starts before it cannot.
	legal := firstTrue(len(starts), func(i int) bool {
		window := since(prefix, starts[i])
		return !isIllegal(window, everyState(labelsOf(window)))
	})
	if legal == 0 {
		return thin(prefix, func(window []Operation) bool { return isIllegal(window, initial) })
	}
	// The latest window is not always the one with the fewest operations.
	best := []Operation(nil)
	for i := legal - 1; i >= max(0, legal-startsToTry); i-- {
		window := since(prefix, starts[i])
		from := everyState(labelsOf(window))
		window = thin(window, func(window []Operation) bool { return isIllegal(window, from) })
		if best == nil || len(window) < len(best) {
			best = window
		}
	}
	return best
}

// startsToTry is the number of windows to compare.
const startsToTry = 8

// thin removes operations without an effect while the rest stays illegal.
func thin(window []Operation, isIllegal func([]Operation) bool) []Operation {
	for i := 0; i < len(window); {
		without := slices.Delete(slices.Clone(window), i, i+1)
		if hasNoEffect(window[i]) && isIllegal(without) {
			window = without
		} else {
			i++
		}
	}
	return window
}

// firstTrue returns the first index in [0, count) for which a monotonic condition holds; count if there is none.
func firstTrue(count int, isSo func(int) bool) int {
	low, high := 0, count
	for low < high {
		if middle := (low + high) / 2; isSo(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// until returns the history as it was known at this time: later returns are unknown.
func until(operations []Operation, endUs int64) []Operation {
	part := []Operation{}
	for _, operation := range operations {
		if operation.CallUs > endUs {
			continue
		}
		if operation.ReturnUs != nil && *operation.ReturnUs > endUs {
			operation.ReturnUs, operation.Refusal, operation.Seen = nil, "", nil
		}
		part = append(part, operation)
	}
	return part
}

// since returns the operations that did not return before this time.
func since(operations []Operation, startUs int64) []Operation {
	part := []Operation{}
	for _, operation := range operations {
		if operation.ReturnUs != nil && *operation.ReturnUs < startUs {
			continue
		}
		operation.isEarlier = operation.CallUs < startUs
		part = append(part, operation)
	}
	return part
}

func hasNoEffect(operation Operation) bool {
	return operation.Operation == "read" || operation.Refusal != ""
}

// labelsOf returns the label values that operations name, and one that none of them names.
func labelsOf(operations []Operation) []string {
	labels := []string{"", "(another value)"}
	for _, operation := range operations {
		labels = append(labels, operation.Value)
		if operation.Seen != nil {
			labels = append(labels, operation.Seen.Label)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}
