// Package agent is a kit for writing Rollcall agents: programs that represent a machine. It does what the protocol requires of an agent
// (registration, the stream, heartbeats at the given rate, moves, key rotation, goodbyes, executions); the program describes the machine
// and runs its work.
//
//	made, err := agent.New(agent.Options{Server: "127.0.0.1:7700", NodeID: "gpu-7", StateDir: "/var/lib/my-agent", Version: "1.0"})
//	if err != nil { ... }
//	err = made.Run(ctx) // runs until ctx is done, then says goodbye
//
// All decisions are made in functions without I/O (agent_machine.go, session_machine.go, reports.go, desired_work.go, keys.go, next_step.go),
// which are tested with sdk/conformance/vectors.
package agent

import (
	"context"
	crypto "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
)

// Options configure an agent.
type Options struct {
	// Server is the registry's address: HOST:PORT, or a URL with http or https.
	Server string
	// NodeID is the node's id: 1-63 characters of [A-Za-z0-9._-].
	NodeID string
	// StateDir holds the node's key, the sentinel and the ledger of executions. Each agent on a machine needs its own.
	StateDir string
	// Version is the program's version, which is reported with the node.
	Version string
	// JoinToken is a join token, or the token of a Kubernetes service account. Empty means no token.
	JoinToken string
	// JoinTokenFile is a file that contains the join token, instead of JoinToken. It is read at each registration.
	JoinTokenFile string
	// TLS configures connections to the registry and to health replicas. If nil, connections use clear text, unless Server
	// is an https URL.
	TLS *tls.Config
	// CAFile is a PEM file with the authorities to trust. It is read for each connection. If empty, the RootCAs of TLS are
	// trusted.
	CAFile string
	// CAFingerprint is the fingerprint of the authority to trust, as `rollcall token create` prints it. The agent fetches
	// the certificate from Server. From then on it trusts the authorities that the control plane announces, and keeps them
	// in StateDir. If empty, the agent uses CAFile.
	CAFingerprint string
	// Info describes the machine. It is called when the agent starts and at least once every InfoCheckInterval. If nil,
	// only the host name is reported. The kit fills in AgentVersion, and takes Work from the Executor.
	Info func() *nodev1.NodeInfo
	// Usage reports the machine's current usage, with all totals. It is called before each heartbeat. If nil, no usage is
	// reported.
	Usage func() *nodev1.ResourceUsage
	// Executor runs executions. If nil, the node runs none and refuses those it receives.
	Executor Executor
	// MachineFingerprint distinguishes this machine from a copy of its disk. If empty, it is a hash of /etc/machine-id and
	// the hardware addresses.
	MachineFingerprint string
	// KeyRotationInterval is the age at which the agent rotates its key even if nobody requests it. 0 means never.
	KeyRotationInterval time.Duration
	// InfoCheckInterval is the longest time between two calls of Info. 0 means 1 minute.
	InfoCheckInterval time.Duration
	// Log receives messages for operators. Nil means slog.Default().
	Log *slog.Logger
	// WallClock returns the time that is reported to the control plane. It affects no decisions. Nil means time.Now.
	WallClock func() time.Time
}

// Status is the state of an agent.
type Status struct {
	// Phase is "starting", "registering", "opening", "connected", "waiting", "idle" (an operator deleted the node),
	// "closing" or "closed".
	Phase string
	// Endpoint is the health replica that holds the stream; empty without a stream.
	Endpoint string
	// SessionEpoch is the epoch of the stream's session; 0 without a stream.
	SessionEpoch uint64
	// Membership is "PENDING", "APPROVED" or "REJECTED". It is empty while the agent does not know it.
	Membership string
}

// Agent represents one machine. Call Run only once.
type Agent struct {
	options   Options
	log       *slog.Logger
	identity  *identity
	registrar registrar
	sentinel  *sentinel
	bootID    string
	// A random id of this process.
	instanceID string
	began      time.Time
	// posted holds functions that the loop will run. Only the loop uses the fields below.
	posted    chan func()
	done      chan struct{}
	state     agentState
	alarm     *time.Timer
	held      *stream
	candidate *stream
	giveUp    context.CancelFunc
	rotation  rotation
	ledger    *ledger
	lastInfo  *nodev1.NodeInfo
	usage     *nodev1.ResourceUsage
	ctx       context.Context
	cancel    context.CancelFunc

	mutex  sync.Mutex
	status Status
}

// New creates an agent and opens its state directory. It fails if a person must fix something: if the directory is
// unusable, another agent uses it, or the key is damaged.
func New(options Options) (*Agent, error) {
	if options.NodeID == "" || options.StateDir == "" {
		return nil, errors.New("NodeID and StateDir are required")
	}
	found, err := openRegistrar(options)
	if err != nil {
		return nil, err
	}
	keys, err := openIdentity(options.StateDir)
	if err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	if options.WallClock == nil {
		options.WallClock = time.Now
	}
	if options.InfoCheckInterval == 0 {
		options.InfoCheckInterval = time.Minute
	}
	if options.MachineFingerprint == "" {
		options.MachineFingerprint = machineFingerprint()
	}
	a := &Agent{
		options: options, log: options.Log.With("node_id", options.NodeID), identity: keys, registrar: found, bootID: bootID(), instanceID: crypto.Text(),
		began: time.Now(), posted: make(chan func(), 256), done: make(chan struct{}), giveUp: func() {},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if a.ledger, err = openLedger(options, a.log, a.post, a.onWorkChanged); err != nil {
		return nil, errors.Join(err, keys.release())
	}
	a.state = beginAgent(rand.Float64())
	return a, nil
}

// Status is safe for concurrent use.
func (a *Agent) Status() Status {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.status
}

// Run runs the agent until the context is done. It then says goodbye, which takes at most 5 s, and returns. Running
// executions continue.
func (a *Agent) Run(ctx context.Context) error {
	defer a.cancel()
	defer close(a.done)
	defer func() { a.warn("state directory cannot be released", a.identity.release()) }()
	found := a.identity.readSentinel()
	if found != nil && found.NodeID == a.options.NodeID && a.identity.pairs[found.KeyFingerprint] != nil {
		a.sentinel = found
	}
	a.ledger.recover()
	var endpoints []string
	if a.sentinel != nil {
		endpoints = a.sentinel.HealthEndpoints
	}
	a.dispatch(agentEvent{Kind: "loaded", IsRegistered: a.sentinel != nil, Endpoints: endpoints})
	a.rotate()
	stop := ctx.Done()
	for a.state.stage != closed {
		select {
		case run := <-a.posted:
			run()
		case <-stop:
			stop = nil
			a.dispatch(agentEvent{Kind: "close"})
		}
	}
	return nil
}

// post runs a function on the loop. It does nothing after the loop has ended.
func (a *Agent) post(run func()) {
	select {
	case a.posted <- run:
	case <-a.done:
	}
}

func (a *Agent) nowMs() float64 { return float64(time.Since(a.began)) / float64(time.Millisecond) }

func (a *Agent) dispatch(event agentEvent) {
	var effects []agentEffect
	a.state, effects = a.state.step(event, a.nowMs(), rand.Float64())
	for _, effect := range effects {
		a.carryOut(effect)
	}
	if at, isSet := a.state.dueAtMs(); isSet {
		a.alarm = a.setAlarm(a.alarm, at, func() { a.dispatch(agentEvent{Kind: "due"}) })
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.status = Status{Phase: a.state.stage, Membership: a.state.membership}
	if a.state.held != nil {
		a.status.Endpoint, a.status.SessionEpoch = a.state.held.endpoint, a.state.held.epoch
	}
}

// setAlarm runs a function on the loop at the given time, and replaces the previous alarm.
func (a *Agent) setAlarm(before *time.Timer, atMs float64, run func()) *time.Timer {
	if before != nil {
		before.Stop()
	}
	wait := time.Duration(max(0, atMs-a.nowMs())*float64(time.Millisecond)) + 1
	return time.AfterFunc(wait, func() { a.post(run) })
}

func (a *Agent) carryOut(effect agentEffect) {
	switch effect.kind {
	case "register":
		a.register()
	case "open":
		at := a.state.pace
		if a.held != nil {
			at = a.held.state.pace
		}
		a.candidate = openStream(a, effect.endpoint, at)
	case "hold":
		a.hold()
	case "drop":
		if a.held != nil {
			dropped := a.held
			a.held = nil
			dropped.dispatch(sessionEvent{kind: "drop"})
		}
	case "give-up":
		a.giveUp()
		if a.candidate != nil {
			dropped := a.candidate
			a.candidate = nil
			dropped.dispatch(sessionEvent{kind: "drop"})
		}
	case "goodbye":
		a.held.dispatch(sessionEvent{kind: "goodbye", reason: "the agent was stopped", leavesWork: a.ledger.isRunning()})
	case "forget":
		a.sentinel = nil
		a.warn("sentinel cannot be removed", a.identity.removeSentinel())
	case "log-end":
		a.logEnd(effect.end, effect.next)
	}
}

func (a *Agent) logEnd(how end, next nextStep) {
	level := slog.LevelWarn
	if how.isDecision() {
		level = slog.LevelError
	}
	a.log.Log(context.Background(), level, "not connected", "how", how.Kind, "reason", how.Reason, "detail", how.Message,
		"idle", next.isIdle, "retry_in_ms", next.delayMs, "must_register", next.mustRegister)
}

func (a *Agent) warn(message string, err error) {
	if err != nil {
		a.log.Warn(message, "err", err)
	}
}

// readInfo reads the machine's description if refresh is set or if it was never read, and passes it to then on the
// loop.
func (a *Agent) readInfo(refresh bool, then func(*nodev1.NodeInfo)) {
	if a.lastInfo != nil && !refresh {
		then(a.lastInfo)
		return
	}
	capacity := a.ledger.capacity()
	go func() {
		info := &nodev1.NodeInfo{}
		if a.options.Info != nil {
			info = proto.CloneOf(a.options.Info())
		} else if hostname, err := os.Hostname(); err == nil {
			info.Hostname = hostname
		}
		info.AgentVersion, info.Work = a.options.Version, capacity
		a.post(func() {
			info.Trust = a.registrar.trust.describe(time.Now())
			a.lastInfo = info
			then(info)
		})
	}()
}

// hold makes the candidate the current stream and drops the previous one.
func (a *Agent) hold() {
	next := a.candidate
	if next == nil || next.welcome == nil {
		return
	}
	a.candidate = nil
	a.carryOut(agentEffect{kind: "drop"})
	a.held = next
	a.log.Info("connected", "endpoint", next.endpoint, "epoch", next.welcome.GetSessionEpoch())
	a.accepted(next.key)
	a.remember(next.welcome.GetClusterId(), a.state.endpoints)
	a.rotate()
}

// onStream handles an effect of a stream. It ignores effects of dropped streams.
func (a *Agent) onStream(from *stream, news sessionEffect) {
	switch {
	case from == a.candidate && news.kind == "opened":
		welcome := from.welcome
		endpoints := resolveEndpoints(welcome.GetHealthEndpoints(), a.registrar.host)
		a.dispatch(agentEvent{
			Kind:        "opened",
			Epoch:       welcome.GetSessionEpoch(),
			Membership:  membershipName(welcome.GetMembership()),
			Endpoints:   endpoints,
			HasNewerKey: !from.key.Equal(a.identity.toUse()),
		})
	case from == a.candidate && news.kind == "ended":
		a.candidate = nil
		isKeyRefused := news.end.Kind == refused && news.end.Reason == "PROOF_INVALID"
		a.dispatch(agentEvent{Kind: "not-opened", End: news.end, HasOtherKey: isKeyRefused && a.identity.refusedKey(from.key)})
	case from == a.held && news.kind == "ended":
		a.held = nil
		a.dispatch(agentEvent{Kind: "session-ended", End: news.end, Pace: from.state.pace})
	case from == a.held || from == a.candidate:
		a.onNews(news)
	}
}

func (a *Agent) onNews(news sessionEffect) {
	switch news.kind {
	case "acked":
		a.dispatch(agentEvent{Kind: "acked"})
	case "settings":
		a.rotation.heed(news.settings, a.nowMs())
		a.rotate()
	case "membership":
		state := membershipName(news.frame.GetMembership())
		a.log.Info("membership changed", "membership", state, "detail", news.frame.GetMembership().GetMessage())
		a.dispatch(agentEvent{Kind: "membership", Membership: state})
	case "move-asked":
		goAway := news.frame.GetGoAway()
		a.dispatch(agentEvent{Kind: "move-asked", RetryAfterMs: msOf(goAway.GetRetryAfter()), Endpoints: resolveEndpoints(goAway.GetEndpoints(), a.registrar.host)})
	}
}

// hearAuthorities handles authorities that the control plane announced over a connection with this verified certificate
// chain, and reports the current trust settings.
func (a *Agent) hearAuthorities(announced [][]byte, chain []*x509.Certificate) {
	replaced, err := a.registrar.trust.hear(announced, chain, time.Now())
	a.warn("announced authorities rejected, trusted authorities unchanged", err)
	if replaced != nil {
		a.log.Info("trusted authorities replaced by those that the control plane announced", "trusted", replaced)
	}
	if a.lastInfo == nil {
		return
	}
	a.lastInfo = proto.CloneOf(a.lastInfo)
	a.lastInfo.Trust = a.registrar.trust.describe(time.Now())
	for _, each := range []*stream{a.held, a.candidate} {
		if each != nil {
			each.dispatch(sessionEvent{kind: "look"})
		}
	}
}

// onWorkChanged notifies the streams that these executions have changed or that these specs are missing.
func (a *Agent) onWorkChanged(ids, wantedSpecs []string) {
	for _, each := range []*stream{a.held, a.candidate} {
		if each != nil {
			each.dispatch(sessionEvent{kind: "work-changed", ids: ids, wantedSpecs: wantedSpecs})
		}
	}
}

// membershipName returns the state without its prefix, or "" for a state that a newer server added.
func membershipName(membership *nodev1.Membership) string {
	name := strings.TrimPrefix(membership.GetState().String(), "MEMBERSHIP_STATE_")
	if name == "PENDING" || name == "APPROVED" || name == "REJECTED" {
		return name
	}
	return ""
}
