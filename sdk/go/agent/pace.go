package agent

import (
	"math"

	"google.golang.org/protobuf/types/known/durationpb"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

// A pace is how a session keeps time, as the server set it. In milliseconds.
type pace struct {
	HeartbeatMs float64 `json:"heartbeatMs"`
	// InfoMs is the time between reports of what the node is.
	InfoMs float64 `json:"infoMs"`
	// UnhealthyAfterMs is the silence after which the node would be declared UNHEALTHY.
	UnhealthyAfterMs float64 `json:"unhealthyAfterMs"`
}

var defaultPace = pace{HeartbeatMs: 15_000, InfoMs: 60_000, UnhealthyAfterMs: 60_000}

const (
	// Nothing that a server says makes an agent beat more often than this.
	shortestIntervalMs = 10
	longestSilenceMs   = 20_000
	// A healthy server answers a Beat within this time; a stretched interval must not be taken for silence before.
	answerTimeMs = 5_000
)

// after takes over what a server sets; what it leaves out stays.
func (p pace) after(settings *healthv1.Settings) pace {
	set := func(duration *durationpb.Duration, current float64) float64 {
		if ms := msOf(duration); ms > 0 {
			return max(shortestIntervalMs, ms)
		}
		return current
	}
	return pace{
		HeartbeatMs:      set(settings.GetHeartbeatInterval(), p.HeartbeatMs),
		InfoMs:           set(settings.GetInfoInterval(), p.InfoMs),
		UnhealthyAfterMs: set(settings.GetUnhealthyAfter(), p.UnhealthyAfterMs),
	}
}

// afterAck takes over the interval of an Ack; 0 leaves it as it is.
func (p pace) afterAck(nextIntervalMs uint32) pace {
	if nextIntervalMs != 0 {
		p.HeartbeatMs = max(shortestIntervalMs, float64(nextIntervalMs))
	}
	return p
}

// silenceLimitMs is how long the path may be silent: 20 s, and never more than a third of the time to UNHEALTHY.
func (p pace) silenceLimitMs() float64 { return min(longestSilenceMs, p.UnhealthyAfterMs/3) }

// silentAtMs is when a path counts as dead. The limit runs from the last Ack; where Beats are further apart than that, it is the missing
// answer that counts.
func (p pace) silentAtMs(lastAckAtMs, unansweredSinceMs float64) float64 {
	limit := p.silenceLimitMs()
	return max(lastAckAtMs+limit, unansweredSinceMs+min(limit, answerTimeMs))
}

func msOf(duration *durationpb.Duration) float64 {
	return float64(duration.GetSeconds())*1000 + math.Ceil(float64(duration.GetNanos())/1_000_000)
}
