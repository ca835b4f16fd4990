package agent

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

func vectors[T any](t *testing.T, name string) T {
	t.Helper()
	var found T
	text, err := os.ReadFile(filepath.Join("../../conformance/vectors", name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	if value := reflect.ValueOf(found); value.Kind() == reflect.Slice && value.Len() == 0 {
		t.Fatalf("%s has no vectors", name)
	}
	return found
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	found, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestProofs(t *testing.T) {
	type vector struct {
		PrivateKeySeed, PublicKey, Fingerprint, Method, ClusterID, NodeID, Nonce, Text, Signature string
	}
	for _, it := range vectors[[]vector](t, "proofs") {
		key := ed25519.NewKeyFromSeed(bytesOf(t, it.PrivateKeySeed))
		same(t, "public key", hex.EncodeToString(publicKey(key)), it.PublicKey)
		same(t, "fingerprint", keyFingerprint(publicKey(key)), it.Fingerprint)
		text := proofText(it.Method, it.ClusterID, it.NodeID, bytesOf(t, it.Nonce))
		same(t, "text", text, it.Text)
		same(t, "signature", hex.EncodeToString(ed25519.Sign(key, []byte(text))), it.Signature)
	}
}

func TestNodeInfoDigest(t *testing.T) {
	for _, it := range vectors[[]struct {
		Info   json.RawMessage
		Digest string
	}](t, "node-info") {
		info := &nodev1.NodeInfo{}
		if err := protojson.Unmarshal(it.Info, info); err != nil {
			t.Fatal(err)
		}
		same(t, string(it.Info), hex.EncodeToString(NodeInfoDigest(info)), it.Digest)
	}
}

func TestExecutions(t *testing.T) {
	found := vectors[struct {
		Digests []struct {
			Executions [][2]any
			Digest     string
		}
		Parts []struct{ Parts []int }
		Spec  struct{ Bytes, Digest string }
	}](t, "executions")
	for index, it := range found.Digests {
		var observations []*workv1.ExecutionObservation
		for _, one := range it.Executions {
			observations = append(observations, &workv1.ExecutionObservation{
				Id: one[0].(string), Change: uint64(one[1].(float64)), Message: strings.Repeat("m", 99),
			})
		}
		same(t, "digest", fmt.Sprint(executionsDigest(observations)), it.Digest)
		var lengths []int
		for _, part := range reportParts(1, true, 0, observations) {
			lengths = append(lengths, len(part.GetObservations()))
		}
		same(t, "parts", lengths, found.Parts[index].Parts)
	}
	sum := sha256.Sum256(bytesOf(t, found.Spec.Bytes))
	same(t, "digest of a spec", hex.EncodeToString(sum[:]), found.Spec.Digest)
}

func TestEndpoints(t *testing.T) {
	for _, it := range vectors[[]struct {
		RegistryHost    string
		Named, Resolved []string
	}](t, "endpoints") {
		same(t, it.RegistryHost, resolveEndpoints(it.Named, it.RegistryHost), it.Resolved)
	}
}

func TestNextStep(t *testing.T) {
	for _, it := range vectors[[]struct {
		End      end
		Attempts attempts
		Next     struct {
			Kind         string
			MustRegister bool
			DelayMs      float64
		}
	}](t, "next-step") {
		want := nextStep{isIdle: it.Next.Kind == "idle", delayMs: it.Next.DelayMs, mustRegister: it.Next.MustRegister}
		same(t, fmt.Sprintf("%+v %+v", it.End, it.Attempts), decideNextStep(it.End, it.Attempts), want)
	}
}

func TestPace(t *testing.T) {
	for _, it := range vectors[[]struct {
		UnhealthyAfterMs, HeartbeatMs, LimitMs, SilentMs float64
		NextIntervalMs                                   uint32
	}](t, "pace") {
		at := defaultPace
		at.UnhealthyAfterMs = it.UnhealthyAfterMs
		at = at.afterAck(it.NextIntervalMs)
		same(t, "pace", []float64{at.HeartbeatMs, at.silenceLimitMs(), at.silentAtMs(1_000, 9_000)}, []float64{it.HeartbeatMs, it.LimitMs, it.SilentMs})
	}
}

func TestKeys(t *testing.T) {
	for _, walk := range vectors[[]struct {
		Current, Next string
		Steps         []struct {
			Event                 struct{ Kind, Key, Next string }
			Phase, Current, ToUse string
		}
	}](t, "keys") {
		keys := keysOnDisk(walk.Current, walk.Next)
		for _, it := range walk.Steps {
			switch it.Event.Kind {
			case "new":
				keys = keys.afterNewKey(it.Event.Key)
			case "answer":
				keys = keys.afterAnswer(it.Event.Key, it.Event.Next)
			case "accepted":
				keys = keys.afterAccepted(it.Event.Key)
			case "refused":
				keys = keys.afterRefused(it.Event.Key)
			}
			same(t, fmt.Sprint(it.Event), []string{keys.phase, keys.current, keys.toUse()}, []string{it.Phase, it.Current, it.ToUse})
		}
	}
}

func TestAgentMachine(t *testing.T) {
	for _, walk := range vectors[[]struct {
		Begin01 float64
		Steps   []struct {
			Event           agentEvent
			NowMs, Random01 float64
			Effects         []string
			State           string
		}
	}](t, "agent-machine") {
		state := beginAgent(walk.Begin01)
		for index, it := range walk.Steps {
			var effects []agentEffect
			state, effects = state.step(it.Event, it.NowMs, it.Random01)
			texts := []string{}
			for _, effect := range effects {
				texts = append(texts, agentEffectText(effect))
			}
			what := fmt.Sprintf("step %d, %+v", index, it.Event)
			same(t, what, texts, it.Effects)
			due := "never"
			if at, isSet := state.dueAtMs(); isSet {
				due = fmt.Sprint(int64(math.Round(at)))
			}
			same(t, what, fmt.Sprintf("%s %s %v %d", state.stage, due, state.failures, state.unreachable), it.State)
		}
	}
}

func agentEffectText(effect agentEffect) string {
	switch effect.kind {
	case "open":
		return "open " + effect.endpoint
	case "log-end":
		if effect.next.isIdle {
			return fmt.Sprintf("log-end %s %s idle", effect.end.Kind, effect.end.Reason)
		}
		what := "open"
		if effect.next.mustRegister {
			what = "register"
		}
		return fmt.Sprintf("log-end %s %s %s %d", effect.end.Kind, effect.end.Reason, what, int64(math.Round(effect.next.delayMs)))
	}
	return effect.kind
}

func TestSessionMachine(t *testing.T) {
	for _, walk := range vectors[[]struct {
		RunsWork, IsKnown  bool
		NowMs, InfoCheckMs float64
		Steps              []struct {
			Event struct {
				Kind, Digest         string
				Frame                json.RawMessage
				IsWanted, LeavesWork bool
				IDs, WantedSpecs     []string
			}
			NowMs   float64
			Effects []string
			State   string
		}
	}](t, "session-machine") {
		var reports *reportState
		if walk.RunsWork {
			reports = beginReports(walk.IsKnown, walk.NowMs)
		}
		state := beginSession(defaultPace, walk.InfoCheckMs, walk.NowMs, reports)
		for index, it := range walk.Steps {
			event := sessionEvent{
				kind: it.Event.Kind, digest: bytesOf(t, it.Event.Digest), isWanted: it.Event.IsWanted, ids: it.Event.IDs,
				wantedSpecs: it.Event.WantedSpecs, reason: "bye", leavesWork: it.Event.LeavesWork, frame: &healthv1.HeartbeatResponse{},
			}
			if it.Event.Kind == "stream-ended" {
				event.end = endOfStatus(nil, state.phase != "connecting")
			}
			if len(it.Event.Frame) > 0 {
				if err := protojson.Unmarshal(it.Event.Frame, event.frame); err != nil {
					t.Fatal(err)
				}
			}
			var effects []sessionEffect
			state, effects = state.step(event, it.NowMs)
			texts := []string{}
			for _, effect := range effects {
				texts = append(texts, sessionEffectText(effect))
			}
			what := fmt.Sprintf("step %d, %+v", index, it.Event)
			same(t, what, texts, it.Effects)
			due := "never"
			if at := state.nextDueMs(); at != never {
				due = fmt.Sprint(int64(math.Floor(at + 0.5)))
			}
			same(t, what, state.phase+" "+due, it.State)
		}
	}
}

func sessionEffectText(effect sessionEffect) string {
	time := map[bool]string{true: "time", false: "-"}[effect.tellsTime]
	switch effect.kind {
	case "read-info":
		return "read-info " + map[bool]string{true: "again", false: "current"}[effect.refresh]
	case "send-hello":
		return fmt.Sprintf("send-hello %x %s", effect.digest, time)
	case "send-beat":
		return fmt.Sprintf("send-beat %d %d %s", effect.sequence, effect.settingsGeneration, time)
	case "send-report":
		if effect.isWhole {
			return fmt.Sprintf("send-report %d whole", effect.number)
		}
		return fmt.Sprintf("send-report %d %s", effect.number, strings.Join(effect.ids, ","))
	case "send-want-specs":
		return "send-want-specs " + strings.Join(effect.ids, ",")
	case "send-goodbye":
		return "send-goodbye " + map[bool]string{true: "restarting", false: "stopping"}[effect.leavesWork]
	case "report-acked":
		return fmt.Sprintf("report-acked %d", effect.number)
	case "ended":
		return fmt.Sprintf("ended %s %s", effect.end.Kind, effect.end.Reason)
	}
	return effect.kind
}

func TestDesiredWork(t *testing.T) {
	for _, it := range vectors[[]struct {
		Frames []json.RawMessage
		Kept   []struct {
			ID, LogID string
			HasEnded  bool
		}
		Met                  []string
		Specs                map[string]*string
		LogID                string
		Generation           uint64 `json:",string"`
		Actions, WantedSpecs []string
	}](t, "work") {
		desired := desiredWork{}
		for _, text := range it.Frames {
			frame := &healthv1.Executions{}
			if err := protojson.Unmarshal(text, frame); err != nil {
				t.Fatal(err)
			}
			desired = desired.apply(frame)
		}
		has := map[string]kept{}
		for _, one := range it.Kept {
			state := workv1.ObservedState_OBSERVED_STATE_RUNNING
			if one.HasEnded {
				state = workv1.ObservedState_OBSERVED_STATE_ENDED
			}
			has[one.ID] = kept{&workv1.ExecutionObservation{Id: one.ID, State: state}, one.LogID}
		}
		desired = desired.prune(has)
		specs := map[string][]byte{}
		for digest, text := range it.Specs {
			specs[digest] = nil
			if text != nil {
				specs[digest] = bytesOf(t, *text)
			}
		}
		actions, wanted := planWork(desired, has, setOf(it.Met...), specs)
		texts := []string{}
		for _, action := range actions {
			switch {
			case action.kind == "forget" || action.kind == "bind":
				texts = append(texts, action.kind+" "+strings.Join(action.ids, ","))
			case action.isLost:
				texts = append(texts, action.kind+" "+action.reference.GetId()+" lost")
			default:
				texts = append(texts, action.kind+" "+action.reference.GetId())
			}
		}
		same(t, "history", []any{desired.logID, desired.generation}, []any{it.LogID, it.Generation})
		same(t, "actions", texts, it.Actions)
		same(t, "specs", append([]string{}, wanted...), slices.Clone(it.WantedSpecs))
	}
}

func TestAuthorities(t *testing.T) {
	found := vectors[struct {
		Decisions []struct {
			WallMs             float64
			Announced          []announcedAuthority
			Kept, Fingerprints []string
			Kind               string
		}
		Digests []struct {
			Fingerprints []string
			Digest       string
		}
	}](t, "authorities")
	for _, it := range found.Decisions {
		kind, fingerprints, _ := decideAuthorities(it.Announced, it.Kept, it.WallMs)
		if kind != "replace" {
			fingerprints = []string{}
		}
		same(t, fmt.Sprintf("%+v", it), []any{kind, fingerprints}, []any{it.Kind, it.Fingerprints})
	}
	for _, it := range found.Digests {
		same(t, "digest", hex.EncodeToString(authoritiesDigest(it.Fingerprints)), it.Digest)
	}
}
