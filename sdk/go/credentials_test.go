package rollcall

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// A refusingIssuer accepts only the refresh token "good".
type refusingIssuer struct {
	*httptest.Server
	asked atomic.Int32
	// onRefusal is called before each refusal, if set.
	onRefusal func()
}

func startIssuer(t *testing.T) *refusingIssuer {
	issuer := &refusingIssuer{}
	issuer.Server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/token" {
			_ = json.NewEncoder(answer).Encode(map[string]string{"issuer": issuer.URL, "token_endpoint": issuer.URL + "/token"})
			return
		}
		issuer.asked.Add(1)
		if request.FormValue("refresh_token") != "good" {
			if issuer.onRefusal != nil {
				issuer.onRefusal()
			}
			answer.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(answer).Encode(map[string]string{"error": "invalid_grant"})
			return
		}
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"rollcall","exp":9999999999}`))
		_ = json.NewEncoder(answer).Encode(map[string]string{"access_token": "e30." + claims + ".", "refresh_token": "next"})
	}))
	t.Cleanup(issuer.Close)
	return issuer
}

func (i *refusingIssuer) writeContext(t *testing.T, path, refreshToken string) {
	text := fmt.Sprintf("contexts: {lab: {server: 'localhost:1', token: old, oidc: {issuer: '%s', client_id: cli, audience: rollcall, "+
		"refresh_token: %s, expires_at: '1970-01-01T00:00:00Z'}}}\n", i.URL, refreshToken)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedLogin(t *testing.T) {
	issuer := startIssuer(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	issuer.writeContext(t, path, "bad")
	var ahead atomic.Int64
	token := newRenewedToken(path, "lab", func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	// If each call waited for each of the 50 refusals, the test would time out.
	for range 50 {
		if _, err := token.get(t.Context()); err == nil || !strings.Contains(err.Error(), "has expired") {
			t.Fatalf("the end of the login is not reported: %v", err)
		}
	}
	if asked := issuer.asked.Load(); asked != 1 {
		t.Errorf("the refused refresh token was sent %d times", asked)
	}
	ahead.Store(int64(refusalLasts))
	if _, err := token.get(t.Context()); err == nil {
		t.Error("the login has not expired")
	}
	if asked := issuer.asked.Load(); asked != 2 {
		t.Errorf("the issuer was asked %d times, should be asked again once the refusal has expired", asked)
	}
	issuer.writeContext(t, path, "good")
	if text, err := token.get(t.Context()); err != nil || !strings.HasPrefix(text, "e30.") {
		t.Errorf("a new login is not used: %q %v", text, err)
	}
}

func TestLoginSavedByAnother(t *testing.T) {
	issuer := startIssuer(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	issuer.writeContext(t, path, "bad")
	issuer.onRefusal = func() { issuer.writeContext(t, path, "good") }
	if text, err := newRenewedToken(path, "lab", time.Now).get(t.Context()); err != nil || !strings.HasPrefix(text, "e30.") {
		t.Errorf("what another program saves is not used: %q %v", text, err)
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	issuer := startIssuer(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	issuer.writeContext(t, path, "bad")
	begun, goOn := make(chan struct{}), make(chan struct{})
	issuer.onRefusal = func() {
		close(begun)
		<-goOn
	}
	token := newRenewedToken(path, "lab", time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 2)
	isCanceled := func(err error) bool {
		var failure *Error
		return errors.As(err, &failure) && failure.Code == codes.Canceled
	}
	for range 2 {
		go func() {
			_, err := token.get(ctx)
			ends <- err
		}()
	}
	<-begun
	cancel()
	// One of the calls has asked the issuer, and the other waits for the response.
	for range 2 {
		if err := <-ends; !isCanceled(err) {
			t.Errorf("the end of the context is not reported: %v", err)
		}
	}
	close(goOn)
	waiting, cancelWaiting := context.WithCancel(t.Context())
	go func() {
		_, err := token.get(waiting)
		ends <- err
	}()
	cancelWaiting()
	if err := <-ends; !isCanceled(err) {
		t.Errorf("the end of the context is not reported between two reads: %v", err)
	}
}
