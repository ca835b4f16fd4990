package rollcall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// A credential is what proves to one service who calls: it answers the token to send now, and "" for none.
type credential func(context.Context) (string, error)

// A token that expires sooner is renewed, or it would expire during the call.
const renewalMargin = 30 * time.Second

// A refresh token that the issuer refuses may have been used by another program a moment ago, which then saves the next one: the file is
// read again so often. After that it counts as refused for so long without a word to the issuer.
const (
	renewalLooks     = 20
	renewalLookEvery = 100 * time.Millisecond
	refusalLasts     = 30 * time.Second
)

func tokenOrFile(token, file string) credential {
	if token != "" {
		return func(context.Context) (string, error) { return strings.TrimSpace(token), nil }
	}
	if file != "" {
		return fileCredential(file, true)
	}
	return nil
}

// fileCredential reads the file each time: it may be replaced while the program runs.
func fileCredential(path string, isRequired bool) credential {
	return func(context.Context) (string, error) {
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
		return newRenewedToken(e.path, e.name, time.Now).get
	}
	return tokenOrFile(e.Token, e.TokenFile)
}

// A renewedToken is that of a context that logged in by an issuer: renewed and saved before it expires, once for all calls.
type renewedToken struct {
	path, name string
	now        func() time.Time
	// Holds one value while a call has what follows: to wait for it may end, other than for a mutex.
	lock    chan struct{}
	token   string
	expires time.Time
	// By the refresh token that the file has: the one that took its place, and could not be saved.
	unsaved map[string]string
	refused refusal
}

// A refusal is a refresh token that the issuer has refused. It is final once the file has kept it for all looks of a call.
type refusal struct {
	token   string
	at      time.Time
	isFinal bool
}

// A renewalLook is what one look at the file has brought: a token, an error, or neither where the refused refresh token is still there.
type renewalLook struct {
	token string
	err   error
}

func newRenewedToken(path, name string, now func() time.Time) *renewedToken {
	return &renewedToken{path: path, name: name, now: now, lock: make(chan struct{}, 1)}
}

// get answers the token, or an *Error where the context ends before.
func (r *renewedToken) get(ctx context.Context) (string, error) {
	for looks := range renewalLooks {
		if looks > 0 && pause(ctx, renewalLookEvery) != nil {
			return "", errorOf(ctx.Err())
		}
		select {
		case r.lock <- struct{}{}:
		case <-ctx.Done():
			return "", errorOf(ctx.Err())
		}
		if r.isGood() {
			token := r.token
			<-r.lock
			return token, nil
		}
		// A renewal that has begun goes on when the call ends: its refresh token may work only once.
		found := make(chan renewalLook, 1)
		go func() {
			token, err := r.look(looks == renewalLooks-1)
			<-r.lock
			found <- renewalLook{token, err}
		}()
		select {
		case look := <-found:
			if look.token != "" || look.err != nil {
				return look.token, look.err
			}
		case <-ctx.Done():
			return "", errorOf(ctx.Err())
		}
	}
	return "", r.over()
}

// look reads the file and renews the token where it is due. It answers neither a token nor an error where another look may find what
// another program saves.
func (r *renewedToken) look(isLast bool) (string, error) {
	// The command line or another program may have renewed it meanwhile.
	entry, err := contextIn(r.path, r.name)
	if err != nil {
		return "", err
	}
	login := entry.Login
	if login == nil {
		return "", fmt.Errorf("context %s has no login any more", r.name)
	}
	r.token, r.expires = entry.Token, login.ExpiresAt.Time
	if r.isGood() {
		return r.token, nil
	}
	saved := login.RefreshToken
	if next, ok := r.unsaved[saved]; ok {
		login.RefreshToken = next
	}
	if login.RefreshToken == "" {
		return "", r.over()
	}
	if !r.isRefused(login.RefreshToken) {
		renewed, err := login.renew(r.now())
		if err != nil {
			return "", err
		}
		if renewed != nil {
			r.keep(renewed, saved)
			return r.token, nil
		}
		wasFinal := r.refused.isFinal && r.refused.token == login.RefreshToken
		r.refused = refusal{login.RefreshToken, r.now(), wasFinal}
	}
	if r.refused.isFinal = r.refused.isFinal || isLast; r.refused.isFinal {
		return "", r.over()
	}
	return "", nil
}

func (r *renewedToken) keep(renewed *renewal, saved string) {
	r.token, r.expires, r.refused = renewed.token, renewed.expires, refusal{}
	if saveLogin(r.path, r.name, renewed) != nil {
		// A file that cannot be written, of a secret for example, keeps no program from what it has: this one goes on with the next
		// refresh token.
		r.unsaved = map[string]string{saved: renewed.refreshToken}
	}
}

func (r *renewedToken) isGood() bool {
	return r.token != "" && r.expires.Add(-renewalMargin).After(r.now())
}

func (r *renewedToken) isRefused(token string) bool {
	since := r.now().Sub(r.refused.at)
	return token == r.refused.token && since >= 0 && since < refusalLasts
}

func (r *renewedToken) over() error {
	return fmt.Errorf("the login of context %s is over: log in again with `rollcall login --oidc --context %s`", r.name, r.name)
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
