package rollcall

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

// selfSigned returns a self-signed certificate for this machine, and the same certificate in PEM.
func selfSigned(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, wanted, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestReplacedAuthorityFile(t *testing.T) {
	former, formerPEM := selfSigned(t)
	next, nextPEM := selfSigned(t)
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(&former)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.Load(), nil }}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	registryv1.RegisterRegistryServiceServer(server, &fakeRegistry{get: func(context.Context) error { return nil }})
	go server.Serve(listener)
	t.Cleanup(server.Stop)

	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(formerPEM)
	client, err := New(Config{Server: "https://" + listener.Addr().String(), Token: "none", CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	call := func() {
		t.Helper()
		if _, err := client.RegistryService.GetNode(context.Background(), &registryv1.GetNodeRequest{Node: "n"}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	// The file is half written, so the existing connection still serves the call.
	write([]byte("-----BEGIN CERT"))
	call()
	shown.Store(&next)
	write(nextPEM)
	call()
}

func TestStampNoticesReplacedAndRemovedFiles(t *testing.T) {
	folder := t.TempDir()
	file, next := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "next.pem")
	at := time.Now().Add(-time.Hour)
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "one")
	write(next, "two")
	files := []string{filepath.Join(folder, "missing.pem"), file}
	before := stampOf(files)
	if !isSameStamp(before, stampOf(files)) {
		t.Fatal("the stamp changed although the files did not")
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	replaced := stampOf(files)
	if isSameStamp(before, replaced) {
		t.Fatal("a replacement of the same size and time was not noticed")
	}
	if err := os.Rename(file, files[0]); err != nil {
		t.Fatal(err)
	}
	if isSameStamp(replaced, stampOf(files)) {
		t.Fatal("a removal was not noticed: another file has the same state")
	}
}
