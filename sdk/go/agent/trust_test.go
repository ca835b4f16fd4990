package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	"rollcall.dev/go/internal/authority"
)

type testAuthority struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string, signer *testAuthority) testAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := testAuthority{&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, key}
	if signer == nil {
		signer = &made
	}
	der, err := x509.CreateCertificate(rand.Reader, made.Certificate, signer.Certificate, key.Public(), signer.key)
	if err == nil {
		made.Certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func trustOf(t *testing.T, directory string, trusted testAuthority) *trust {
	t.Helper()
	options := Options{StateDir: directory, CAFingerprint: authority.Fingerprint(trusted.Certificate)}
	made, err := openTrust(options, &tls.Config{}, "127.0.0.1:1", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestKeptAuthorities(t *testing.T) {
	ours, others := newAuthority(t, "ours", nil), newAuthority(t, "others", nil)
	server, crossSigned := newAuthority(t, "server", &ours), newAuthority(t, "cross", &ours)
	directory, now := t.TempDir(), time.Now()
	made := trustOf(t, directory, ours)
	if _, err := made.forConnection(); !errors.Is(err, errNotFetched) {
		t.Fatal("nothing is trusted before the authority was fetched", err)
	}
	if err := made.keep([]*x509.Certificate{ours.Certificate}); err != nil {
		t.Fatal(err)
	}
	chain := []*x509.Certificate{server.Certificate}
	hear := func(announced ...testAuthority) ([]string, error) {
		var der [][]byte
		for _, it := range announced {
			der = append(der, it.Raw)
		}
		return made.hear(der, chain, now)
	}
	same(t, "none announced", made.digest(), authoritiesDigest(nil))
	if _, err := hear(others); err == nil {
		t.Fatal("an announcement that would lock the agent out was accepted")
	}
	if _, err := hear(others); err != nil {
		t.Fatal("the same refusal was reported again", err)
	}
	same(t, "after a refusal", made.digest(), authoritiesDigest(nil))
	replaced, err := hear(ours, others, crossSigned)
	both := fingerprintsOf([]*x509.Certificate{ours.Certificate, others.Certificate})
	same(t, "replaced", []any{replaced, err}, []any{sortedSet(both), nil})
	// The kept authorities survive a restart. With another fingerprint, earlier announcements are ignored.
	told := trustOf(t, directory, ours).describe(now)
	same(t, "reported", []any{told.GetSource(), told.GetAuthorities()}, []any{nodev1.TrustSource_TRUST_SOURCE_ANNOUNCED, sortedSet(both)})
	same(t, "by others", trustOf(t, directory, others).describe(now).GetAuthorities(), both[1:])
	// An authority still verifies the server's certificate after the certificate has expired.
	now = server.NotAfter.Add(time.Minute)
	if isVerifying(others.Certificate, chain, now) || !isVerifying(ours.Certificate, chain, now) {
		t.Fatal("an expired certificate is verified by its authority, and by no other")
	}
	if err := os.WriteFile(filepath.Join(directory, authoritiesFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := made.forConnection(); !errors.Is(err, errNotFetched) {
		t.Fatal("a damaged file is trusted", err)
	}
}

func TestTrustOfProgram(t *testing.T) {
	ours, others := newAuthority(t, "ours", nil), newAuthority(t, "others", nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(authorities ...testAuthority) {
		var text []byte
		for _, it := range authorities {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: it.Raw})...)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ours)
	made, err := openTrust(Options{CAFile: file}, &tls.Config{}, "127.0.0.1:1", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	write(ours, others)
	config, err := made.forConnection()
	pool := x509.NewCertPool()
	pool.AddCert(ours.Certificate)
	pool.AddCert(others.Certificate)
	if err != nil || !config.RootCAs.Equal(pool) {
		t.Fatal("the file is not read for each connection", err)
	}
	// A certificate pool cannot be listed, so only the announced authorities in it are reported.
	pooled, err := openTrust(Options{}, &tls.Config{RootCAs: pool, ServerName: "cp"}, "127.0.0.1:1", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	other := newAuthority(t, "other", nil)
	if replaced, err := pooled.hear([][]byte{ours.Raw, other.Raw}, nil, time.Now()); replaced != nil || err != nil {
		t.Fatal(replaced, err)
	}
	told := pooled.describe(time.Now())
	same(t, "reported", []any{told.GetSource(), told.GetServerName()}, []any{nodev1.TrustSource_TRUST_SOURCE_FILE, "cp"})
	same(t, "authorities", told.GetAuthorities(), []string{authority.Fingerprint(ours.Certificate)})
	for _, wrong := range []Options{
		{CAFile: file, CAFingerprint: told.GetAuthorities()[0]}, {CAFingerprint: "sha256:ab"}, {CAFile: file + ".gone"},
	} {
		if _, err := openTrust(wrong, &tls.Config{}, "127.0.0.1:1", "127.0.0.1"); err == nil {
			t.Fatalf("%+v was accepted", wrong)
		}
	}
	if !slices.Equal(made.digest(), authoritiesDigest(nil)) {
		t.Fatal("with CAFile, the agent must accept announcements, to report which authorities it trusts")
	}
}
