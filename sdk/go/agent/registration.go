package agent

import (
	"context"
	"crypto/ed25519"
	"os"
	"strings"

	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

func (a *Agent) register() {
	ctx, stop := context.WithCancel(a.ctx)
	a.giveUp = stop
	a.readInfo(false, func(info *nodev1.NodeInfo) { a.registerWith(ctx, a.identity.toUse(), info, true) })
}

func (a *Agent) registerWith(ctx context.Context, key ed25519.PrivateKey, info *nodev1.NodeInfo, mayTryOther bool) {
	isKnown := a.sentinel != nil
	go func() {
		var answer *registryv1.RegisterNodeResponse
		token, err := a.joinToken(isKnown)
		if err == nil {
			answer, err = a.registrar.register(ctx, key, info, token)
		}
		a.post(func() {
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				a.registered(key, answer)
				return
			}
			how := endOfCall(err)
			// During a rotation, the server may have accepted the other key although its response was lost.
			if how.Reason == "NODE_KEY_MISMATCH" && a.identity.refusedKey(key) && mayTryOther {
				a.registerWith(ctx, a.identity.toUse(), info, false)
				return
			}
			a.ledger.ended(how, "")
			a.dispatch(agentEvent{Kind: "not-registered", End: how})
		})
	}()
}

// joinToken reads the token each time, because a mounted secret can be replaced. A known machine needs no token.
func (a *Agent) joinToken(isKnown bool) (string, error) {
	if a.options.JoinTokenFile == "" {
		return strings.TrimSpace(a.options.JoinToken), nil
	}
	text, err := os.ReadFile(a.options.JoinTokenFile)
	if err != nil && isKnown {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

func (a *Agent) registered(key ed25519.PrivateKey, answer *registryv1.RegisterNodeResponse) {
	a.accepted(key)
	endpoints := resolveEndpoints(answer.GetHealthEndpoints(), a.registrar.host)
	known := endpoints
	// A control plane without health replicas returns no endpoints. In that case, keep the previous ones.
	if len(known) == 0 && a.sentinel != nil {
		known = a.sentinel.HealthEndpoints
	}
	a.remember(answer.GetClusterId(), known)
	membership := membershipName(answer.GetNode().GetMembership())
	a.log.Info("registered", "cluster_id", answer.GetClusterId(), "membership", membership, "created", answer.GetCreated())
	a.dispatch(agentEvent{Kind: "registered", Membership: membership, Endpoints: endpoints})
}

// accepted records that the server has accepted a proof by this key.
func (a *Agent) accepted(key ed25519.PrivateKey) {
	before := a.identity.state.phase
	a.warn("next key cannot replace the node's key", a.identity.become(a.identity.state.afterAccepted(keyFingerprint(publicKey(key)))))
	if before != "settled" && a.identity.state.phase == "settled" {
		a.rotation.used(a.options.WallClock())
	}
}

func (a *Agent) remember(clusterID string, endpoints []string) {
	next := sentinel{a.options.NodeID, a.identity.state.current, clusterID, endpoints}
	a.sentinel = &next
	if len(endpoints) > 0 {
		a.warn("sentinel cannot be written", a.identity.writeSentinel(next))
	}
}
