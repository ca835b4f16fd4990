package agent

// keyState holds the fingerprints of the node's keys. All of these keys are on disk.
type keyState struct {
	// phase is "settled", "prepared" (a next key exists, but the server may not have it yet) or "offered" (the server has
	// the next key or refuses the current one, so the next key is tried first).
	phase, current, next string
}

func keysOnDisk(current, next string) keyState {
	if next == "" || next == current {
		return keyState{phase: "settled", current: current}
	}
	return keyState{"prepared", current, next}
}

// toUse returns the key that signs the next proof.
func (k keyState) toUse() string {
	if k.phase == "offered" {
		return k.next
	}
	return k.current
}

// afterNewKey returns the state after a next key was written to disk. A rotation in progress continues with its own
// key.
func (k keyState) afterNewKey(next string) keyState {
	if k.phase == "settled" {
		return keyState{"prepared", k.current, next}
	}
	return k
}

// afterAnswer returns the state after the server responded to an offer. A late response to an earlier offer names other
// keys and changes nothing.
func (k keyState) afterAnswer(current, next string) keyState {
	switch {
	case k.phase == "settled":
	case current == k.next:
		return keyState{phase: "settled", current: k.next}
	case next == k.next:
		return keyState{"offered", k.current, k.next}
	}
	return k
}

// afterAccepted returns the state after the server accepted a proof by this key. If it is the next key, it becomes the
// only one.
func (k keyState) afterAccepted(used string) keyState {
	if k.phase == "settled" || used != k.next {
		return k
	}
	return keyState{phase: "settled", current: used}
}

// afterRefused returns the state after the server refused a proof by this key. The other key is tried next. A refusal
// never drops a key.
func (k keyState) afterRefused(used string) keyState {
	if k.phase == "settled" {
		return k
	}
	if used == k.current {
		k.phase = "offered"
	} else if used == k.next {
		k.phase = "prepared"
	}
	return k
}
