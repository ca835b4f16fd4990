package agent

// keyState is the keys that a node has, as fingerprints. All of them are on the disk.
type keyState struct {
	// phase is "settled", "prepared" (there is a next key, which the server may not have yet) or "offered" (the server has the next key, or
	// refuses the current one: the next one is tried first).
	phase, current, next string
}

func keysOnDisk(current, next string) keyState {
	if next == "" || next == current {
		return keyState{phase: "settled", current: current}
	}
	return keyState{"prepared", current, next}
}

// toUse is the key with which to sign the next proof.
func (k keyState) toUse() string {
	if k.phase == "offered" {
		return k.next
	}
	return k.current
}

// afterNewKey: a next key is on the disk. A rotation that is under way goes on with the key that it has.
func (k keyState) afterNewKey(next string) keyState {
	if k.phase == "settled" {
		return keyState{"prepared", k.current, next}
	}
	return k
}

// afterAnswer: the server answered an offer. Late answers to earlier offers name other keys, and change nothing.
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

// afterAccepted: the server took a proof by this key. If it is the next one, it is the only one that counts from now on.
func (k keyState) afterAccepted(used string) keyState {
	if k.phase == "settled" || used != k.next {
		return k
	}
	return keyState{phase: "settled", current: used}
}

// afterRefused: the server refused a proof by this key, so the other one is tried next. No key is given up for a refusal.
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
