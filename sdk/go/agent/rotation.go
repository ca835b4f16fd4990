package agent

import (
	"math/rand/v2"
	"time"

	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

const (
	rotationBackoffMaxMs = 300_000
	// A stream with the next key should be open by then. If it is not, the offer is made again, signed with the next key: that is a use too.
	useWithinMs = 15_000
	// A timer cannot be set for months.
	longestWaitMs = 86_400_000
)

// rotation replaces the node's key when an operator wants it or its age calls for it, and goes on with one that a crash cut short.
type rotation struct {
	dueAtMs  *float64
	failures float64
	// notBeforeMs is when the next offer may be made.
	notBeforeMs float64
	isUnderWay  bool
	usedAt      time.Time
	alarm       *time.Timer
}

// heed notes what the server's settings say; they say it for as long as the rotation is wanted.
func (r *rotation) heed(settings *healthv1.Settings, nowMs float64) {
	if settings.GetRotateKeyWithin() == nil {
		r.dueAtMs = nil
	} else if r.dueAtMs == nil {
		at := nowMs + rand.Float64()*msOf(settings.GetRotateKeyWithin())
		r.dueAtMs = &at
	}
}

// used: the next key is the node's key now, however that came about.
func (r *rotation) used(now time.Time) {
	r.dueAtMs, r.failures, r.notBeforeMs, r.usedAt = nil, 0, 0, now
}

// rotate makes an offer when one is due, and looks again when the next one may be.
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
			a.warn("next key cannot take the place of the key", a.identity.become(state))
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
	// With the other key it is tried at once: the server may have taken that one before its answer was lost.
	if hasOtherKey && r.failures == 0 {
		wait = 0
	}
	r.failures++
	r.notBeforeMs = a.nowMs() + wait
	a.log.Warn("key cannot be rotated", "reason", how.Reason, "detail", how.Message, "retry_in_ms", wait)
	a.rotate()
}
