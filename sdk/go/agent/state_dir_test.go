package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateDirectoryIsOneAgents(t *testing.T) {
	options := Options{Server: "127.0.0.1:1", NodeID: "n", StateDir: t.TempDir()}
	first, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(options); err == nil || !strings.Contains(err.Error(), "another agent uses this state directory") {
		t.Fatalf("a second agent was created: %v", err)
	}
	if err := first.identity.release(); err != nil {
		t.Fatal(err)
	}
	next, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if next.identity.state.current != first.identity.state.current {
		t.Fatal("the key has changed")
	}
}

func TestStateDirectoryWithABrokenKeyIsReleased(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, keyFile)
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := openIdentity(directory); err == nil || !strings.Contains(err.Error(), "is not an Ed25519 private key") {
			t.Fatalf("the broken key was read: %v", err)
		}
	}
}

func TestSentinelNamesTheKeyThatWasAdopted(t *testing.T) {
	it, err := openIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before := it.state.current
	if err := it.writeSentinel(sentinel{"n", before, "c", []string{"h:1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := it.prepareNext(); err != nil {
		t.Fatal(err)
	}
	next := it.state.next
	if err := it.become(it.state.afterAccepted(next)); err != nil {
		t.Fatal(err)
	}
	if found := it.readSentinel(); found == nil || found.KeyFingerprint != next || next == before {
		t.Fatalf("the sentinel is %v", found)
	}
}
