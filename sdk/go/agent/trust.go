package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	"rollcall.dev/go/internal/authority"
)

const (
	authoritiesFile = "authorities.pem"
	// authorityMark begins the first line of the file with the kept authorities. The line names the configured fingerprint
	// that the authorities follow from.
	authorityMark = "# authorities that follow from "
	mostName      = 253
)

var errNotFetched = errors.New("the servers' authority has not been fetched yet; registration fetches it")

// trust verifies the servers of the control plane. The trusted authorities change only if a fingerprint is configured.
// The agent first trusts the authority with that fingerprint, and then those that the control plane announces over a
// connection that is already trusted.
type trust struct {
	// config is nil for clear text.
	config                      *tls.Config
	caFile, fingerprint         string
	address, host, storedInFile string

	mutex sync.Mutex
	// announced are the authorities of the last accepted announcement.
	announced []*x509.Certificate
	// refusal is the last reported problem. It prevents the same problem from being reported again.
	refusal string
}

func openTrust(options Options, config *tls.Config, address, host string) (*trust, error) {
	t := &trust{config: config, caFile: options.CAFile, address: address, host: host, storedInFile: filepath.Join(options.StateDir, authoritiesFile)}
	if config == nil {
		if options.CAFile != "" || options.CAFingerprint != "" {
			return nil, errors.New("CAFile and CAFingerprint require TLS: use https:// in Server")
		}
		return t, nil
	}
	isPool := config.RootCAs != nil
	if options.CAFingerprint != "" {
		if options.CAFile != "" || isPool || config.InsecureSkipVerify {
			return nil, errors.New("CAFingerprint cannot be combined with CAFile, or with RootCAs or InsecureSkipVerify of TLS")
		}
		var err error
		if t.fingerprint, err = authority.ParseFingerprint(options.CAFingerprint); err != nil {
			return nil, err
		}
	}
	if options.CAFile != "" && isPool {
		return nil, errors.New("CAFile cannot be combined with RootCAs of TLS")
	}
	_, err := t.forConnection()
	if errors.Is(err, errNotFetched) {
		err = nil
	}
	return t, err
}

// forConnection returns the TLS configuration of a new connection, or nil for clear text.
func (t *trust) forConnection() (*tls.Config, error) {
	if t.config == nil {
		return nil, nil
	}
	config := t.config.Clone()
	if t.fingerprint == "" && t.caFile == "" {
		return config, nil
	}
	trusted, err := t.certificates()
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	for _, certificate := range trusted {
		config.RootCAs.AddCert(certificate)
	}
	return config, nil
}

// certificates returns the certificates in CAFile, or the kept certificates that follow from the fingerprint.
func (t *trust) certificates() ([]*x509.Certificate, error) {
	if t.fingerprint != "" {
		return t.kept()
	}
	text, err := os.ReadFile(t.caFile)
	if err != nil {
		return nil, err
	}
	found, err := authority.Certificates(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.caFile, err)
	}
	return found, nil
}

func (t *trust) kept() ([]*x509.Certificate, error) {
	text, err := os.ReadFile(t.storedInFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// If the file is damaged, fetch the authority again.
	found, err := authority.Certificates(text)
	if err != nil {
		return nil, errNotFetched
	}
	if bytes.HasPrefix(text, []byte(authorityMark+t.fingerprint+"\n")) {
		return found, nil
	}
	// The file belongs to another fingerprint, so ignore earlier announcements.
	for _, certificate := range found {
		if authority.Fingerprint(certificate) == t.fingerprint {
			return []*x509.Certificate{certificate}, nil
		}
	}
	return nil, errNotFetched
}

func (t *trust) keep(certificates []*x509.Certificate) error {
	text := bytes.NewBufferString(authorityMark + t.fingerprint + "\n")
	for _, certificate := range certificates {
		if err := pem.Encode(text, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}); err != nil {
			return err
		}
	}
	return writeAtomically(t.storedInFile, text.Bytes())
}

// prepare fetches the authority with the fingerprint, unless it was fetched before.
func (t *trust) prepare(ctx context.Context) error {
	if t.config == nil || t.fingerprint == "" {
		return nil
	}
	if _, err := t.kept(); !errors.Is(err, errNotFetched) {
		return err
	}
	found, err := authority.Fetch(ctx, t.address, t.config.ServerName, t.fingerprint)
	if err != nil {
		return err
	}
	return t.keep([]*x509.Certificate{found})
}

// hear handles announced authorities, each in DER, from a connection with this verified chain. It returns the new
// fingerprints if they changed, or the reason why it refused the announcement. It does not return the same reason twice
// in a row.
func (t *trust) hear(announced [][]byte, chain []*x509.Certificate, now time.Time) (replaced []string, refused error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	replaced, err := t.decide(announced, chain, now)
	if err == nil {
		t.refusal = ""
		return replaced, nil
	}
	if t.refusal == err.Error() {
		return nil, nil
	}
	t.refusal = err.Error()
	return nil, err
}

func (t *trust) decide(announced [][]byte, chain []*x509.Certificate, now time.Time) ([]string, error) {
	var certificates []*x509.Certificate
	var facts []announcedAuthority
	var names []string
	for _, der := range announced {
		it, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		name := authority.Fingerprint(it)
		certificates, names = append(certificates, it), append(names, name)
		facts = append(facts, announcedAuthority{
			name, isRoot(it), float64(it.NotBefore.UnixMilli()), float64(it.NotAfter.UnixMilli()), isVerifying(it, chain, now),
		})
	}
	if t.fingerprint == "" {
		t.announced = certificates
		return nil, nil
	}
	kept, err := t.kept()
	if err != nil {
		return nil, err
	}
	kind, fingerprints, problem := decideAuthorities(facts, fingerprintsOf(kept), float64(now.UnixMilli()))
	switch kind {
	case "refuse":
		return nil, errors.New(problem)
	case "replace":
		var next []*x509.Certificate
		for _, wanted := range fingerprints {
			next = append(next, certificates[slices.Index(names, wanted)])
		}
		if err := t.keep(next); err != nil {
			return nil, err
		}
	}
	t.announced = certificates
	return fingerprints, nil
}

// digest returns the authorities_digest of a Hello.
func (t *trust) digest() []byte {
	if t.config == nil {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return authoritiesDigest(fingerprintsOf(t.announced))
}

func authoritiesDigest(fingerprints []string) []byte {
	digest := sha256.New()
	for _, fingerprint := range slices.Sorted(slices.Values(fingerprints)) {
		bytes, _ := hex.DecodeString(strings.TrimPrefix(fingerprint, "sha256:")) // Every fingerprint is valid hexadecimal.
		digest.Write(bytes)
	}
	return digest.Sum(nil)
}

// describe returns the trust settings for a report. It returns nil if the program verifies servers with its own code,
// because the kit cannot inspect that.
func (t *trust) describe(now time.Time) *nodev1.NodeTrust {
	if t.config == nil {
		return &nodev1.NodeTrust{Source: nodev1.TrustSource_TRUST_SOURCE_NONE}
	}
	if t.config.InsecureSkipVerify {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	told := &nodev1.NodeTrust{Source: nodev1.TrustSource_TRUST_SOURCE_FILE, ServerName: t.config.ServerName}
	if told.ServerName == "" {
		told.ServerName = t.host
	}
	told.ServerName = told.ServerName[:min(len(told.ServerName), mostName)]
	switch {
	case t.fingerprint != "":
		told.Source = nodev1.TrustSource_TRUST_SOURCE_ANNOUNCED
	case t.caFile == "" && t.config.RootCAs == nil:
		told.Source = nodev1.TrustSource_TRUST_SOURCE_SYSTEM
	}
	told.Authorities = t.trusted(now)
	return told
}

// trusted returns up to 16 trusted fingerprints for a report. Announced authorities take precedence.
func (t *trust) trusted(now time.Time) []string {
	// A certificate pool of the program or the system cannot be listed. Check instead which announced authorities it
	// contains.
	isListed := t.fingerprint != "" || t.caFile != ""
	found := t.announced
	if isListed {
		kept, err := t.certificates()
		if errors.Is(err, errNotFetched) {
			return []string{t.fingerprint}
		} else if err != nil {
			return nil // The next connection fails and gives the reason.
		}
		found = kept
	}
	var first, others []string
	for _, it := range found {
		name := authority.Fingerprint(it)
		switch {
		case it.NotAfter.Before(now) || !isListed && !t.isInPool(it, now):
		case slices.ContainsFunc(t.announced, it.Equal):
			first = append(first, name)
		default:
			others = append(others, name)
		}
	}
	names := slices.Concat(sortedSet(first), sortedSet(others))
	return slices.Sorted(slices.Values(names[:min(len(names), mostAnnounced)]))
}

func (t *trust) isInPool(it *x509.Certificate, now time.Time) bool {
	any := []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	_, err := it.Verify(x509.VerifyOptions{Roots: t.config.RootCAs, CurrentTime: now, KeyUsages: any})
	return err == nil
}

func fingerprintsOf(certificates []*x509.Certificate) []string {
	names := make([]string, len(certificates))
	for index, certificate := range certificates {
		names[index] = authority.Fingerprint(certificate)
	}
	return names
}

// isRoot reports whether a certificate is self-signed. Go trusts every certificate in a pool, but other clients trust
// only self-signed ones.
func isRoot(it *x509.Certificate) bool {
	return bytes.Equal(it.RawIssuer, it.RawSubject) && it.CheckSignature(it.SignatureAlgorithm, it.RawTBSCertificate, it.Signature) == nil
}

// isVerifying reports whether an authority verifies the certificate that the server presented in the handshake, even if
// that certificate has expired since.
func isVerifying(it *x509.Certificate, chain []*x509.Certificate, now time.Time) bool {
	if len(chain) == 0 {
		return false
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(it)
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	if now.After(chain[0].NotAfter) {
		now = chain[0].NotAfter
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	return err == nil
}
