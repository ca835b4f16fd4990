package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	keyFile      = "node-key.pem"
	nextKeyFile  = "node-key.next.pem"
	sentinelFile = "sentinel.json"
	lockFile     = "lock"
)

// sentinel is the file that stores an agent's registration, so that the agent can open its stream immediately after a
// restart. If any part of the file is invalid, the agent registers again.
type sentinel struct {
	NodeID          string   `json:"nodeId"`
	KeyFingerprint  string   `json:"keyFingerprint"`
	ClusterID       string   `json:"clusterId"`
	HealthEndpoints []string `json:"healthEndpoints"`
}

// identity holds the node's keys, in memory and on disk.
type identity struct {
	directory string
	state     keyState
	pairs     map[string]ed25519.PrivateKey
	madeAt    time.Time
	// lock excludes other agents while it is open. Two agents would share one identity and start work twice.
	lock *os.File
}

// openIdentity reads the keys of a state directory, and locks the directory for this agent until release. At the first
// start it creates a key.
func openIdentity(directory string) (*identity, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(directory, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(directory)
	if err != nil {
		return nil, err
	}
	it, err := readIdentity(directory)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	it.lock = lock
	return it, nil
}

// lockDirectory locks the directory. It fails if another agent uses it, but not if the file system has no locks.
func lockDirectory(directory string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if isTaken(file) {
		return nil, errors.Join(fmt.Errorf("%s: another agent uses this state directory", directory), file.Close())
	}
	return file, nil
}

// release unlocks the directory for other agents.
func (it *identity) release() error { return it.lock.Close() }

func readIdentity(directory string) (*identity, error) {
	path := filepath.Join(directory, keyFile)
	current, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if current, err = makeKey(); err == nil {
			err = writeKey(path, current)
		}
	}
	if err != nil {
		return nil, err
	}
	made, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	it := &identity{directory: directory, pairs: map[string]ed25519.PrivateKey{}, madeAt: made.ModTime()}
	nextFingerprint := ""
	// Ignore an unreadable next key. The server accepts the current key until the next one is used, and the agent can
	// offer a new one.
	if next, err := readKey(filepath.Join(directory, nextKeyFile)); err == nil {
		nextFingerprint = it.add(next)
	}
	it.state = keysOnDisk(it.add(current), nextFingerprint)
	return it, nil
}

func (it *identity) add(key ed25519.PrivateKey) string {
	fingerprint := keyFingerprint(publicKey(key))
	it.pairs[fingerprint] = key
	return fingerprint
}

func (it *identity) toUse() ed25519.PrivateKey { return it.pairs[it.state.toUse()] }

// prepareNext returns the key to rotate to. If there is none, it creates one. The key is on disk before the server
// receives it.
func (it *identity) prepareNext() (ed25519.PrivateKey, error) {
	if it.state.phase == "settled" {
		next, err := makeKey()
		if err != nil {
			return nil, err
		}
		if err := writeKey(filepath.Join(it.directory, nextKeyFile), next); err != nil {
			return nil, err
		}
		it.state = it.state.afterNewKey(it.add(next))
	}
	return it.pairs[it.state.next], nil
}

// become applies a state. If the next key has become the node's key, it replaces the old key on disk.
func (it *identity) become(state keyState) error {
	before := it.state
	if state.phase == "settled" && before.phase != "settled" && state.current == before.next {
		if err := it.adoptNextKey(); err != nil {
			// Both keys are still on disk. The agent tries the next key first, and adopts that key when the server accepts it
			// again.
			before.phase = "offered"
			it.state = before
			return err
		}
		delete(it.pairs, before.current)
	}
	it.state = state
	return nil
}

// adoptNextKey replaces the node's key with the next key. It first writes the next key's fingerprint to the sentinel,
// so that the sentinel still names one of the agent's keys if the agent crashes in between.
func (it *identity) adoptNextKey() error {
	if known := it.readSentinel(); known != nil && known.KeyFingerprint == it.state.current {
		known.KeyFingerprint = it.state.next
		if err := it.writeSentinel(*known); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(it.directory, nextKeyFile), filepath.Join(it.directory, keyFile))
}

// refusedKey records that the server refused a key, and reports whether to try the other one.
func (it *identity) refusedKey(used ed25519.PrivateKey) bool {
	before := it.state.toUse()
	it.state = it.state.afterRefused(keyFingerprint(publicKey(used)))
	return it.state.toUse() != before
}

func publicKey(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func makeKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := parsed.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is not an Ed25519 private key; restore it, or remove it and have the node deleted so that it can register again", path)
}

func writeKey(path string, key ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writeAtomically(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func (it *identity) readSentinel() *sentinel {
	var found sentinel
	text, err := os.ReadFile(filepath.Join(it.directory, sentinelFile))
	if err != nil || json.Unmarshal(text, &found) != nil || len(found.HealthEndpoints) == 0 {
		return nil
	}
	return &found
}

func (it *identity) writeSentinel(next sentinel) error {
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	return writeAtomically(filepath.Join(it.directory, sentinelFile), append(text, '\n'))
}

func (it *identity) removeSentinel() error {
	err := os.Remove(filepath.Join(it.directory, sentinelFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeAtomically replaces a file. A crash leaves either the old file or the complete new one, synced to disk and
// readable only by its owner.
func writeAtomically(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
