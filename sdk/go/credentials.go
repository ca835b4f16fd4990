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

// A credential authenticates calls to one service. It returns the token to send now, or "" if there is none.
type credential func(context.Context) (string, error)

// How long before its expiry a token is renewed, so that it does not expire during a call.
const renewalMargin = 30 * time.Second

// If the issuer refuses a refresh token, another program may have just used it and be about to save its successor. A
// call therefore reads the file again, up to renewalChecks times. After that, the token counts as refused for
// refusalLasts, and no request is sent to the issuer.
const (
	renewalChecks     = 20
	renewalCheckEvery = 100 * time.Millisecond
	refusalLasts      = 30 * time.Second
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

// fileCredential reads the file for each call, because it may be replaced while the program runs.
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

// credential returns the context's credential; nil if it has none.
func (e contextEntry) credential() credential {
	if e.Login != nil {
		return newRenewedToken(e.path, e.name, time.Now).get
	}
	return tokenOrFile(e.Token, e.TokenFile)
}

// A renewedToken is the token of a context that logged in through an issuer. Before the token expires, it is renewed
// once on behalf of all calls, and saved.
type renewedToken struct {
	path, name string
	now        func() time.Time
	// lock holds one value while a call uses the fields below. Unlike waiting for a mutex, waiting for this channel can be
	// canceled.
	lock    chan struct{}
	token   string
	expires time.Time
	// unsaved holds new refresh tokens that could not be saved, keyed by the refresh token that is still in the file.
	unsaved map[string]string
	refused refusal
}

// A refusal is a refresh token that the issuer has refused. The refusal becomes final if the file still contains that
// token when a call reads it for the last time.
type refusal struct {
	token   string
	at      time.Time
	isFinal bool
}

// A renewalCheck is the result of reading the file once. It is a token or an error, or neither if the file still
// contains the refused refresh token.
type renewalCheck struct {
	token string
	err   error
}

func newRenewedToken(path, name string, now func() time.Time) *renewedToken {
	return &renewedToken{path: path, name: name, now: now, lock: make(chan struct{}, 1)}
}

// get returns the token, or an *Error if the context is done first.
func (r *renewedToken) get(ctx context.Context) (string, error) {
	for looks := range renewalChecks {
		if looks > 0 && pause(ctx, renewalCheckEvery) != nil {
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
		// A renewal continues even if its call ends, because its refresh token may work only once.
		found := make(chan renewalCheck, 1)
		go func() {
			token, err := r.look(looks == renewalChecks-1)
			<-r.lock
			found <- renewalCheck{token, err}
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

// look reads the file, and renews the token if necessary. It returns neither a token nor an error if another program
// may still save a new token.
func (r *renewedToken) look(isLast bool) (string, error) {
	// The command line or another program may have renewed the token in the meantime.
	entry, err := contextIn(r.path, r.name)
	if err != nil {
		return "", err
	}
	login := entry.Login
	if login == nil {
		return "", fmt.Errorf("context %s no longer has a login", r.name)
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
		// The file may be read-only, such as a mounted secret. Continue with the new refresh token in memory.
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
	return fmt.Errorf("the login of context %s has expired: log in again with `rollcall login --oidc --context %s`", r.name, r.name)
}

const contextPreface = "# Written by `rollcall login` and `rollcall context`. It holds tokens: keep it private.\n"

// saveLogin saves a renewed token in its context, unless the context is gone.
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

// replaceFile replaces a file atomically, so that a concurrent reader sees the old or the new content. Only the file's
// owner can read it.
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
