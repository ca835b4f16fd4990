package rollcall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

// A credential is what proves to one service who calls: it answers the token to send now, and "" for none.
type credential func() (string, error)

// A token that expires sooner is renewed, or it would expire during the call.
const renewalMargin = 30 * time.Second

// A refresh token that the issuer refuses may have been used by another program a moment ago, which then saves the next one: the file is
// read again so often.
const (
	renewalLooks     = 20
	renewalLookEvery = 100 * time.Millisecond
)

func tokenOrFile(token, file string) credential {
	if token != "" {
		return func() (string, error) { return strings.TrimSpace(token), nil }
	}
	if file != "" {
		return fileCredential(file, true)
	}
	return nil
}

// fileCredential reads the file each time: it may be replaced while the program runs.
func fileCredential(path string, isRequired bool) credential {
	return func() (string, error) {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && !isRequired {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read the access token: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if token == "" && isRequired {
			return "", fmt.Errorf("cannot read the access token: there is none in %s", path)
		}
		return token, nil
	}
}

// credential is nil for a context without one.
func (e contextEntry) credential() credential {
	if e.Login != nil {
		return renewedCredential(e.path, e.name, time.Now)
	}
	return tokenOrFile(e.Token, e.TokenFile)
}

// renewedCredential is the token of a context that logged in by an issuer: renewed and saved before it expires, once for all calls.
func renewedCredential(path, name string, now func() time.Time) credential {
	var lock sync.Mutex
	var token string
	var expires time.Time
	// By the refresh token that the file has: the one that took its place, and could not be saved.
	var unsaved map[string]string
	isGood := func() bool { return token != "" && expires.Add(-renewalMargin).After(now()) }
	return func() (string, error) {
		lock.Lock()
		defer lock.Unlock()
		refused := ""
		for range renewalLooks {
			if isGood() {
				return token, nil
			}
			// The command line or another program may have renewed it meanwhile.
			entry, err := contextIn(path, name)
			if err != nil {
				return "", err
			}
			login := entry.Login
			if login == nil {
				return "", fmt.Errorf("context %s has no login any more", name)
			}
			token, expires = entry.Token, login.ExpiresAt.Time
			if isGood() {
				return token, nil
			}
			saved := login.RefreshToken
			if next, ok := unsaved[saved]; ok {
				login.RefreshToken = next
			}
			if login.RefreshToken == "" {
				break
			}
			if login.RefreshToken == refused {
				time.Sleep(renewalLookEvery)
				continue
			}
			renewed, err := login.renew(now())
			if err != nil {
				return "", err
			}
			if renewed == nil {
				refused = login.RefreshToken
				continue
			}
			token, expires = renewed.token, renewed.expires
			if saveLogin(path, name, renewed) != nil {
				// A file that cannot be written, of a secret for example, keeps no program from what it has: this one goes on with the next
				// refresh token.
				unsaved = map[string]string{saved: renewed.refreshToken}
			}
			return token, nil
		}
		return "", fmt.Errorf("the login of context %s is over: log in again with `rollcall login --oidc --context %s`", name, name)
	}
}

const contextPreface = "# Written by `rollcall login` and `rollcall context`. It holds tokens: keep it private.\n"

// saveLogin keeps a renewed token in its context, unless the context is gone.
func saveLogin(path, name string, renewed *renewal) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	contexts, _ := file["contexts"].(map[string]any)
	entry, _ := contexts[name].(map[string]any)
	kept, ok := entry["oidc"].(map[string]any)
	if !ok {
		return nil
	}
	entry["token"] = renewed.token
	kept["refresh_token"] = renewed.refreshToken
	kept["expires_at"] = renewed.expires.UTC().Format(time.RFC3339Nano)
	changed, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	return replaceFile(path, append([]byte(contextPreface), changed...))
}

// replaceFile lets a concurrent reader see the old file or the new one, never half of it. Its user alone can read it.
func replaceFile(path string, content []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".")
	if err != nil {
		return err
	}
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
