// Package authority fetches the authority of a server's certificate, given only its fingerprint.
package authority

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	timeout   = 10 * time.Second
	mostBytes = 64 << 10
)

var writtenFingerprint = regexp.MustCompile(`(?i)^(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)$`)

// Unreachable is the failure if the server does not respond or does not return the authority.
type Unreachable struct{ message string }

func (u *Unreachable) Error() string { return u.message }

// ParseFingerprint parses a fingerprint in the format of Rollcall or OpenSSL.
func ParseFingerprint(text string) (string, error) {
	if found := writtenFingerprint.FindStringSubmatch(strings.TrimSpace(text)); found != nil {
		if digits := strings.ToLower(strings.ReplaceAll(found[1], ":", "")); len(digits) == 64 {
			return "sha256:" + digits, nil
		}
	}
	return "", fmt.Errorf("%q is not a fingerprint; expected sha256: and 64 hexadecimal digits", text)
}

// Fingerprint formats the fingerprint of a certificate.
func Fingerprint(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.Raw)
	return "sha256:" + hex.EncodeToString(digest[:])
}

// Certificates parses the certificates in a PEM text. It fails if one is invalid or if there are none.
func Certificates(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errors.New("no PEM certificate found")
	}
	return found, nil
}

// Fetch fetches the authority with this fingerprint from a server that is not trusted yet. It sends no credentials and
// does not trust the handshake. The server must prove its identity on the next connection, which trusts only this
// authority.
func Fetch(ctx context.Context, address, serverName, fingerprint string) (*x509.Certificate, error) {
	text, err := download(ctx, address, serverName)
	if err != nil {
		return nil, err
	}
	served, err := Certificates(text)
	if err != nil {
		return nil, &Unreachable{fmt.Sprintf("%s serves no authority: %v", address, err)}
	}
	var others []string
	for _, certificate := range served {
		found := Fingerprint(certificate)
		if found == fingerprint {
			return certificate, nil
		}
		others = append(others, found)
	}
	return nil, fmt.Errorf("the authority of %s has the fingerprint %s, not %s: use the one that `rollcall token create` shows, or find "+
		"out which server answers there", address, strings.Join(others, ", "), fingerprint)
}

func download(ctx context.Context, address, serverName string) ([]byte, error) {
	// The server cannot be verified before its authority is known. The response is public, and Fetch checks its
	// fingerprint.
	unchecked := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, InsecureSkipVerify: true}
	transport := &http.Transport{TLSClientConfig: unchecked, DisableKeepAlives: true}
	client := &http.Client{Timeout: timeout, Transport: transport}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/ca.pem", nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, &Unreachable{fmt.Sprintf("cannot fetch the authority of %s: %v", address, err)}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &Unreachable{fmt.Sprintf("%s serves no authority (status %d): use the authority's file instead", address, answer.StatusCode)}
	}
	return io.ReadAll(io.LimitReader(answer.Body, mostBytes))
}
