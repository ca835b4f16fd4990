package main

// State is what the operations of a history can read and change about one node.
type State struct {
	Exists     bool
	Membership string
	// Banned stays when a node is deleted: its id cannot register again.
	Banned   bool
	Cordoned bool
	// Label is the value of the one label that the history sets; empty without it.
	Label string
}

// View is the node as a response shows it.
type View struct {
	Membership string `json:"membership"`
	Banned     bool   `json:"banned"`
	Cordoned   bool   `json:"cordoned"`
	Label      string `json:"label"`
}

// Answer is the result of an operation: the reason of a refusal, or the node. A lifted ban of a deleted node has
// neither.
type Answer struct {
	Refusal string
	Node    *View
}

// initialState is the state of each node before the first operation.
var initialState = State{Exists: true, Membership: "APPROVED"}

// Apply returns the state after an operation and the answer that the caller must get. It is the specification of
// one node, written from the schema's comments.
func Apply(state State, operation, value string) (State, Answer) {
	if !state.Exists {
		return applyToAbsent(state, operation)
	}
	next := state
	switch operation {
	case "read":
	case "register":
		if state.Banned {
			return state, Answer{Refusal: "NODE_BANNED"}
		}
		if state.Membership == "REJECTED" {
			return state, Answer{Refusal: "NODE_REJECTED"}
		}
	case "approve":
		if state.Banned {
			return state, Answer{Refusal: "NODE_BANNED"}
		}
		if state.Membership == "APPROVED" {
			return state, Answer{Refusal: "NODE_ALREADY_APPROVED"}
		}
		next.Membership = "APPROVED"
	case "reject":
		if state.Membership == "REJECTED" {
			return state, Answer{Refusal: "NODE_ALREADY_REJECTED"}
		}
		next.Membership = "REJECTED"
	case "ban":
		if state.Banned {
			return state, Answer{Refusal: "NODE_ALREADY_BANNED"}
		}
		next.Membership, next.Banned = "REJECTED", true
	case "unban":
		if !state.Banned {
			return state, Answer{Refusal: "NODE_NOT_BANNED"}
		}
		next.Banned = false
	case "cordon":
		if state.Cordoned {
			return state, Answer{Refusal: "NODE_ALREADY_CORDONED"}
		}
		next.Cordoned = true
	case "uncordon":
		if !state.Cordoned {
			return state, Answer{Refusal: "NODE_NOT_CORDONED"}
		}
		next.Cordoned = false
	case "label":
		next.Label = value
	case "delete":
		// The response has the node as it was.
		return State{Banned: state.Banned}, shown(state)
	default:
		panic("unknown operation " + operation)
	}
	return next, shown(next)
}

func applyToAbsent(state State, operation string) (State, Answer) {
	switch {
	case operation == "register" && state.Banned:
		return state, Answer{Refusal: "NODE_BANNED"}
	case operation == "register":
		next := State{Exists: true, Membership: "PENDING"}
		return next, shown(next)
	case operation == "unban" && state.Banned:
		return State{}, Answer{}
	default:
		return state, Answer{Refusal: "NODE_NOT_FOUND"}
	}
}

func shown(state State) Answer {
	return Answer{Node: &View{state.Membership, state.Banned, state.Cordoned, state.Label}}
}

// everyState lists the states that a node can be in, with these values of the label.
func everyState(labels []string) []State {
	states := []State{{}, {Banned: true}}
	for _, label := range labels {
		for _, isCordoned := range []bool{false, true} {
			for _, membership := range []string{"PENDING", "APPROVED", "REJECTED"} {
				states = append(states, State{true, membership, false, isCordoned, label})
			}
			states = append(states, State{true, "REJECTED", true, isCordoned, label})
		}
	}
	return states
}
