package rollcall

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	authorityTimeout   = 10 * time.Second
	mostAuthorityBytes = 64 << 10
)

var writtenFingerprint = regexp.MustCompile(`(?i)^(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)$`)

// parseFingerprint reads a fingerprint, as Rollcall writes it or as OpenSSL does.
func parseFingerprint(text string) (string, error) {
	if found := writtenFingerprint.FindStringSubmatch(strings.TrimSpace(text)); found != nil {
		if digits := strings.ToLower(strings.ReplaceAll(found[1], ":", "")); len(digits) == 64 {
			return "sha256:" + digits, nil
		}
	}
	return "", fmt.Errorf("%q is no fingerprint: sha256: and 64 hexadecimal digits are needed", text)
}

// fetchAuthority fetches the authority of this fingerprint from a server that is not trusted yet. No credentials are sent, and nothing
// that the server shows in the handshake counts: it proves itself by the next connection, which has to be verified with this authority
// alone.
func fetchAuthority(authority, serverName, fingerprint string) (*x509.CertPool, error) {
	text, err := downloadAuthority(authority, serverName)
	if err != nil {
		return nil, err
	}
	var others []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		digest := sha256.Sum256(block.Bytes)
		found := "sha256:" + hex.EncodeToString(digest[:])
		if found != fingerprint {
			others = append(others, found)
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AddCert(certificate)
		return pool, nil
	}
	return nil, fmt.Errorf("the authority of %s has the fingerprint %s, not %s: take the one that `rollcall token create` shows, or find "+
		"out what answers there", authority, strings.Join(others, ", "), fingerprint)
}

func downloadAuthority(authority, serverName string) ([]byte, error) {
	// Without an authority there is nothing to check with. What comes is public, and is checked by its fingerprint.
	unchecked := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, InsecureSkipVerify: true}
	transport := &http.Transport{TLSClientConfig: unchecked, DisableKeepAlives: true}
	client := &http.Client{Timeout: authorityTimeout, Transport: transport}
	answer, err := client.Get("https://" + authority + "/ca.pem")
	if err != nil {
		return nil, unreachable("cannot fetch the authority of %s: %v", authority, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, unreachable("%s hands out no authority (it answers %d): name its file instead", authority, answer.StatusCode)
	}
	return io.ReadAll(io.LimitReader(answer.Body, mostAuthorityBytes))
}
