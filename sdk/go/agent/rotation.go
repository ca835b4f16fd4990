package agent

import (
	"math/rand/v2"
	"time"

	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

const (
	rotationBackoffMaxMs = 300_000
	// The time within which a stream with the next key should be open. After that time, the agent repeats the offer
	// and signs it with the next key, which also counts as using that key.
	useWithinMs = 15_000
	// The maximum time between two checks of whether a rotation is due.
	longestWaitMs = 86_400_000
)

// rotation replaces the node's key when an operator requests it or when the key is too old. It also resumes a
// rotation that a crash interrupted.
type rotation struct {
	dueAtMs  *float64
	failures float64
	// notBeforeMs is when the next offer can be made.
	notBeforeMs float64
	isUnderWay  bool
	usedAt      time.Time
	alarm       *time.Timer
}

// heed applies the server's settings. It schedules a rotation if they request one, and otherwise cancels it.
func (r *rotation) heed(settings *healthv1.Settings, nowMs float64) {
	if settings.GetRotateKeyWithin() == nil {
		r.dueAtMs = nil
	} else if r.dueAtMs == nil {
		at := nowMs + rand.Float64()*msOf(settings.GetRotateKeyWithin())
		r.dueAtMs = &at
	}
}

// used records that the next key has become the node's key.
func (r *rotation) used(now time.Time) {
	r.dueAtMs, r.failures, r.notBeforeMs, r.usedAt = nil, 0, 0, now
}

// rotate makes an offer when one is due, and schedules the next check.
func (a *Agent) rotate() {
	r := &a.rotation
	if r.isUnderWay {
		return
	}
	nowMs := a.nowMs()
	at := nowMs
	if a.identity.state.phase == "settled" {
		at = never
		if r.dueAtMs != nil {
			at = *r.dueAtMs
		}
		if interval := a.options.KeyRotationInterval; interval > 0 {
			madeAt := a.identity.madeAt
			if r.usedAt.After(madeAt) {
				madeAt = r.usedAt
			}
			age := max(0, a.options.WallClock().Sub(madeAt))
			at = min(at, nowMs+float64(interval-age)/float64(time.Millisecond))
		}
	}
	if at == never {
		return
	}
	if at = min(max(at, r.notBeforeMs), nowMs+longestWaitMs); at > nowMs {
		r.alarm = a.setAlarm(r.alarm, at, a.rotate)
		return
	}
	a.offerKey()
}

func (a *Agent) offerKey() {
	r := &a.rotation
	key := a.identity.toUse()
	next, err := a.identity.prepareNext()
	if err != nil {
		a.offerFailed(end{Kind: unreachable, Message: err.Error()}, false)
		return
	}
	r.isUnderWay = true
	go func() {
		answer, err := a.registrar.rotateKey(a.ctx, key, next)
		a.post(func() {
			r.isUnderWay = false
			if err != nil {
				how := endOfCall(err)
				a.offerFailed(how, how.Reason == "PROOF_INVALID" && a.identity.refusedKey(key))
				return
			}
			r.failures = 0
			state := a.identity.state.afterAnswer(answer.GetKeyFingerprint(), answer.GetNextKeyFingerprint())
			a.warn("next key cannot replace the node's key", a.identity.become(state))
			if a.identity.state.phase == "settled" {
				r.used(a.options.WallClock())
			} else {
				r.notBeforeMs = a.nowMs() + useWithinMs
				a.dispatch(agentEvent{Kind: "move-asked", IsOwnWish: true})
			}
			a.rotate()
		})
	}()
}

func (a *Agent) offerFailed(how end, hasOtherKey bool) {
	r := &a.rotation
	wait := backoffBaseMs + fullJitter(r.failures, backoffBaseMs, rotationBackoffMaxMs, rand.Float64())
	// Try the other key immediately, because the server may have accepted it although its response was lost.
	if hasOtherKey && r.failures == 0 {
		wait = 0
	}
	r.failures++
	r.notBeforeMs = a.nowMs() + wait
	a.log.Warn("key cannot be rotated", "reason", how.Reason, "detail", how.Message, "retry_in_ms", wait)
	a.rotate()
}
