package agent

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"google.golang.org/protobuf/encoding/protojson"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

const (
	heartbeatMethod = "/rollcall.health.v1.HealthService/Heartbeat"
	registerMethod  = "/rollcall.registry.v1.RegistryService/RegisterNode"
	rotateMethod    = "/rollcall.registry.v1.RegistryService/RotateNodeKey"
)

// proofText returns the text that a node signs to prove that it holds its key. The text names the method and the
// cluster, so a proof made for one call is worthless for another.
func proofText(method, clusterID, nodeID string, nonce []byte) string {
	return strings.Join([]string{"rollcall-proof-v1", method, clusterID, nodeID, base64.RawURLEncoding.EncodeToString(nonce)}, "\n")
}

// keyFingerprint returns the fingerprint of a key, as people and responses see it.
func keyFingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// NodeInfoDigest returns the digest that a Hello carries so that the agent need not send an unchanged description. It
// is the SHA-256 of the description as protobuf JSON with sorted keys and without white space.
func NodeInfoDigest(info *nodev1.NodeInfo) []byte {
	text, err := canonicalInfo(info)
	if err != nil {
		return nil // Without a digest, the server asks for the description.
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

func canonicalInfo(info *nodev1.NodeInfo) ([]byte, error) {
	written, err := protojson.Marshal(info)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writeCanonical(&out, value)
	return out.Bytes(), nil
}

func writeCanonical(out *bytes.Buffer, value any) {
	switch it := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(it))
		for key := range it {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, compareKeys)
		out.WriteByte('{')
		for index, key := range keys {
			if index > 0 {
				out.WriteByte(',')
			}
			writeText(out, key)
			out.WriteByte(':')
			writeCanonical(out, it[key])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for index, item := range it {
			if index > 0 {
				out.WriteByte(',')
			}
			writeCanonical(out, item)
		}
		out.WriteByte(']')
	case string:
		writeText(out, it)
	default:
		fmt.Fprint(out, it)
	}
}

// compareKeys orders keys for the digest. Integers come first, ordered by value. All others follow, ordered by their
// UTF-16 code units.
func compareKeys(a, b string) int {
	left, isLeft := indexOf(a)
	right, isRight := indexOf(b)
	switch {
	case isLeft && isRight:
		return cmp.Compare(left, right)
	case isLeft:
		return -1
	case isRight:
		return 1
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func indexOf(key string) (uint64, bool) {
	number, err := strconv.ParseUint(key, 10, 32)
	return number, err == nil && number < math.MaxUint32 && strconv.FormatUint(number, 10) == key
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// writeText writes a JSON string and escapes only what JSON requires, while encoding/json escapes more.
func writeText(out *bytes.Buffer, text string) {
	out.WriteByte('"')
	for _, each := range text {
		if short, ok := shortEscapes[each]; ok {
			out.WriteString(short)
		} else if each < 0x20 {
			fmt.Fprintf(out, `\u%04x`, each)
		} else {
			out.WriteRune(each)
		}
	}
	out.WriteByte('"')
}

// executionsDigest summarizes all executions of a node for reports and Beats. It returns the first 8 bytes of the
// SHA-256 over each id and change number, ordered by id, or 0 for a node without executions.
func executionsDigest(observations []*workv1.ExecutionObservation) uint64 {
	if len(observations) == 0 {
		return 0
	}
	lines := make([]string, len(observations))
	for index, one := range observations {
		lines[index] = fmt.Sprintf("%s %d\n", one.GetId(), one.GetChange())
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return binary.BigEndian.Uint64(sum[:])
}

var ownHost = regexp.MustCompile(`^:\d{1,5}$`)

// resolveEndpoints completes the health endpoints that a server returned. It replaces an empty host with the registry's
// host, and drops invalid addresses and duplicates.
func resolveEndpoints(endpoints []string, registryHost string) []string {
	resolved := []string{}
	for _, endpoint := range endpoints {
		if ownHost.MatchString(endpoint) {
			endpoint = net.JoinHostPort(registryHost, endpoint[1:])
		}
		host, text, err := net.SplitHostPort(endpoint)
		port, portErr := strconv.ParseUint(text, 10, 16)
		if err != nil || portErr != nil || host == "" || port == 0 {
			continue
		}
		whole := net.JoinHostPort(host, strconv.FormatUint(port, 10))
		if !slices.Contains(resolved, whole) {
			resolved = append(resolved, whole)
		}
	}
	return resolved
}
