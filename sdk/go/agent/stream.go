package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
)

const (
	// The maximum number of queued frames. The agent abandons a stream that exceeds it.
	mostUnsent = 512
	// The maximum time that a Hello waits for the digest of the machine's description.
	digestLimit = 2 * time.Second
	// The maximum number of outputs that are read at a time.
	mostReadings = 16
)

// stream carries out the decisions of sessionState.step for one heartbeat stream. Only the agent's loop uses it.
type stream struct {
	agent    *Agent
	endpoint string
	key      ed25519.PrivateKey
	state    sessionState
	welcome  *healthv1.Welcome
	alarm    *time.Timer
	cancel   context.CancelFunc
	ctx      context.Context
	client   healthv1.HealthServiceClient
	// chain is the certificate chain that the server presented in the handshake, starting with its own certificate; nil if
	// it was not verified.
	chain  []*x509.Certificate
	unsent chan *healthv1.HeartbeatRequest
	// isFinished reports whether the stream sends no more frames.
	isFinished bool
	sentTotals nodev1.ResourceUsage
	toldDigest uint64
	// toldBy is the store history of the received Executions; empty before the first.
	toldBy string
	// unacknowledged holds the ids of reported executions, keyed by report number.
	unacknowledged map[uint64][]string
	readings       int
}

func openStream(a *Agent, endpoint string, at pace) *stream {
	s := &stream{agent: a, endpoint: endpoint, key: a.identity.toUse(), unsent: make(chan *healthv1.HeartbeatRequest, mostUnsent), unacknowledged: map[uint64][]string{}}
	infoCheckMs := float64(a.options.InfoCheckInterval) / float64(time.Millisecond)
	s.state = beginSession(at, infoCheckMs, a.nowMs(), beginReports(true, a.nowMs()))
	s.ctx, s.cancel = context.WithCancel(a.ctx)
	go s.carry()
	s.setAlarm()
	return s
}

// carry moves frames between the connection and the loop until the stream ends. It runs outside the loop.
func (s *stream) carry() {
	isReached := false
	err := func() error {
		connection, err := dial(s.endpoint, s.agent.registrar.trust)
		if err != nil {
			return err
		}
		defer connection.Close()
		client := healthv1.NewHealthServiceClient(connection)
		call, err := client.Heartbeat(s.ctx)
		if err != nil {
			return err
		}
		go s.write(call)
		for {
			frame, err := call.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			isReached = true
			chain := verifiedChain(call.Context())
			s.agent.post(func() {
				s.client, s.chain = client, chain
				s.dispatch(sessionEvent{kind: "frame", frame: frame})
			})
		}
	}()
	s.agent.post(func() { s.dispatch(sessionEvent{kind: "stream-ended", end: endOfStatus(err, isReached)}) })
}

func verifiedChain(ctx context.Context) []*x509.Certificate {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	secured, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(secured.State.VerifiedChains) == 0 {
		return nil
	}
	return secured.State.PeerCertificates
}

func (s *stream) write(call grpc.BidiStreamingClient[healthv1.HeartbeatRequest, healthv1.HeartbeatResponse]) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case frame := <-s.unsent:
			if frame == nil {
				_ = call.CloseSend() // If this fails, the stream has ended with a status.
				return
			}
			if call.Send(frame) != nil {
				return
			}
		}
	}
}

func (s *stream) dispatch(event sessionEvent) {
	var effects []sessionEffect
	s.state, effects = s.state.step(event, s.agent.nowMs())
	for _, effect := range effects {
		s.carryOut(effect)
	}
	s.setAlarm()
}

func (s *stream) setAlarm() {
	if s.alarm != nil {
		s.alarm.Stop()
	}
	if at := s.state.nextDueMs(); at != never {
		s.alarm = s.agent.setAlarm(s.alarm, at, func() { s.dispatch(sessionEvent{kind: "due"}) })
	}
}

func (s *stream) carryOut(effect sessionEffect) {
	a := s.agent
	switch effect.kind {
	case "measure":
		s.measure()
	case "describe":
		s.describe(effect.challenge)
	case "read-info":
		isWanted := effect.isWanted
		a.readInfo(effect.refresh, func(info *nodev1.NodeInfo) {
			s.dispatch(sessionEvent{kind: "info-read", info: info, digest: NodeInfoDigest(info), isWanted: isWanted})
		})
	case "send-hello":
		s.sendHello(effect)
	case "send-beat":
		s.sendBeat(effect)
	case "send-info":
		s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_NodeInfo{NodeInfo: effect.info}})
	case "send-report":
		s.sendReport(effect)
	case "send-want-specs":
		want := &healthv1.WantSpecs{}
		for _, text := range effect.ids {
			if digest, err := hex.DecodeString(text); err == nil {
				want.Digests = append(want.Digests, digest)
			}
		}
		s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_WantSpecs{WantSpecs: want}})
	case "send-goodbye":
		goodbye := &healthv1.Goodbye{Reason: effect.reason, Kind: healthv1.GoodbyeKind_GOODBYE_KIND_STOPPING}
		if effect.leavesWork {
			goodbye.Kind = healthv1.GoodbyeKind_GOODBYE_KIND_RESTARTING
		}
		s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_Goodbye{Goodbye: goodbye}})
		s.send(nil)
	case "cancel":
		s.cancel()
	default:
		s.hear(effect)
		a.onStream(s, effect)
	}
}

// hear handles what the server sends about executions and authorities.
func (s *stream) hear(news sessionEffect) {
	work := s.agent.ledger
	switch news.kind {
	case "opened":
		s.welcome = news.frame.GetWelcome()
		work.opened()
	case "executions":
		s.toldBy = news.frame.GetExecutions().GetLogId()
		work.heed(news.frame.GetExecutions())
	case "spec":
		work.takeSpec(news.frame.GetSpec())
	case "report-acked":
		for number, ids := range s.unacknowledged {
			if number <= news.number {
				work.reported(ids)
				delete(s.unacknowledged, number)
			}
		}
	case "acked":
		work.seen()
	case "ended":
		work.ended(news.end, s.toldBy)
	case "authorities":
		// Accept announced authorities only over a verified connection.
		if s.chain != nil {
			s.agent.hearAuthorities(news.frame.GetAuthorities().GetCertificates(), s.chain)
		}
	case "log-request":
		if s.readings < mostReadings && s.client != nil {
			s.readings++
			go func() {
				sendOutput(s.ctx, s.client, news.frame.GetLogRequest(), s.agent.options.Executor)
				s.agent.post(func() { s.readings-- })
			}()
		}
	}
}

func (s *stream) measure() {
	a := s.agent
	if a.options.Usage == nil {
		return
	}
	go func() {
		usage := proto.CloneOf(a.options.Usage())
		a.post(func() { a.usage = usage })
	}()
}

func (s *stream) describe(challenge *healthv1.Challenge) {
	isAnswered := false
	answer := func(digest []byte) {
		if !isAnswered {
			isAnswered = true
			s.dispatch(sessionEvent{kind: "described", challenge: challenge, digest: digest})
		}
	}
	time.AfterFunc(digestLimit, func() { s.agent.post(func() { answer(nil) }) })
	s.agent.readInfo(false, func(info *nodev1.NodeInfo) { answer(NodeInfoDigest(info)) })
}

func (s *stream) sendHello(effect sessionEffect) {
	options := s.agent.options
	text := proofText(heartbeatMethod, effect.challenge.GetClusterId(), options.NodeID, effect.challenge.GetNonce())
	s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_Hello{Hello: &healthv1.Hello{
		NodeId:             options.NodeID,
		Signature:          ed25519.Sign(s.key, []byte(text)),
		AgentVersion:       options.Version,
		BootId:             s.agent.bootID,
		InstanceId:         s.agent.instanceID,
		MachineFingerprint: options.MachineFingerprint,
		NodeInfoDigest:     effect.digest,
		AgentTimeMs:        s.wallMs(effect.tellsTime),
		RunsWork:           true,
		AuthoritiesDigest:  s.agent.registrar.trust.digest(),
	}}})
}

func (s *stream) sendBeat(effect sessionEffect) {
	s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_Beat{Beat: &healthv1.Beat{
		Sequence:           effect.sequence,
		Usage:              s.withoutKnownTotals(),
		AgentTimeMs:        s.wallMs(effect.tellsTime),
		SettingsGeneration: effect.settingsGeneration,
		ExecutionsDigest:   s.toldDigest,
	}}})
}

// withoutKnownTotals returns the usage without totals that the stream's server already knows.
func (s *stream) withoutKnownTotals() *nodev1.ResourceUsage {
	if s.agent.usage == nil {
		return nil
	}
	usage, sent := proto.CloneOf(s.agent.usage), &s.sentTotals
	for _, total := range []struct{ now, known *uint32 }{{&usage.MemoryTotalMib, &sent.MemoryTotalMib}, {&usage.DiskTotalMib, &sent.DiskTotalMib}} {
		if *total.now == *total.known {
			*total.now = 0
		} else if *total.now != 0 {
			*total.known = *total.now
		}
	}
	return usage
}

func (s *stream) sendReport(effect sessionEffect) {
	observations := s.agent.ledger.observations(effect.ids, effect.isWhole)
	s.toldDigest = s.agent.ledger.digest()
	ids := make([]string, len(observations))
	for index, one := range observations {
		ids[index] = one.GetId()
	}
	s.unacknowledged[effect.number] = ids
	for _, part := range reportParts(effect.number, effect.isWhole, s.toldDigest, observations) {
		s.send(&healthv1.HeartbeatRequest{Frame: &healthv1.HeartbeatRequest_ExecutionReport{ExecutionReport: part}})
	}
}

func (s *stream) wallMs(tellsTime bool) int64 {
	if !tellsTime {
		return 0
	}
	return s.agent.options.WallClock().UnixMilli()
}

// send queues a frame; nil closes the sending side. If the queue is full, it cancels the stream, because the connection
// is dead.
func (s *stream) send(frame *healthv1.HeartbeatRequest) {
	if s.isFinished {
		return
	}
	s.isFinished = frame == nil
	select {
	case s.unsent <- frame:
	default:
		s.cancel()
	}
}
