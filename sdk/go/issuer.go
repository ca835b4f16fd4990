package rollcall

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"gopkg.in/yaml.v3"
)

const (
	issuerTimeout         = 10 * time.Second
	mostIssuerAnswerBytes = 1 << 20
)

// A login through an OpenID Connect issuer, with the data to renew its token.
type login struct {
	Issuer       string `yaml:"issuer"`
	ClientID     string `yaml:"client_id"`
	Audience     string `yaml:"audience"`
	RefreshToken string `yaml:"refresh_token"`
	ExpiresAt    expiry `yaml:"expires_at"`
}

// An expiry is the time at which the token expires. An unreadable time counts as past, so that the token is
// renewed.
type expiry struct{ time.Time }

func (e *expiry) UnmarshalYAML(node *yaml.Node) error {
	e.Time, _ = time.Parse(time.RFC3339, node.Value)
	return nil
}

// A renewal holds the new tokens of a renewed login.
type renewal struct {
	token, refreshToken string
	expires             time.Time
}

// renew gets new tokens from the issuer. It returns nil if the issuer no longer renews the login.
func (l *login) renew(now time.Time) (*renewal, error) {
	if l.RefreshToken == "" {
		return nil, nil
	}
	place := strings.TrimSuffix(l.Issuer, "/") + "/.well-known/openid-configuration"
	code, found, err := askIssuer(place, nil)
	if err != nil {
		return nil, err
	}
	endpoint, _ := found["token_endpoint"].(string)
	if code != http.StatusOK || found["issuer"] != l.Issuer || endpoint == "" {
		return nil, fmt.Errorf("the server at %s is not the issuer %s", place, l.Issuer)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.RefreshToken}, "client_id": {l.ClientID}}
	code, fields, err := askIssuer(endpoint, form)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		if fields["error"] == "invalid_grant" {
			return nil, nil
		}
		return nil, fmt.Errorf("the issuer %s refused the login: %v", l.Issuer, fields["error"])
	}
	return l.tokenIn(fields, now)
}

func (l *login) tokenIn(fields map[string]any, now time.Time) (*renewal, error) {
	for _, name := range []string{"access_token", "id_token"} {
		token, _ := fields[name].(string)
		claims := claimsOf(token)
		if !isFor(claims["aud"], l.Audience) {
			continue
		}
		renewed := &renewal{token: token, refreshToken: l.RefreshToken, expires: now.Add(5 * time.Minute)}
		if seconds, ok := fields["expires_in"].(float64); ok {
			renewed.expires = now.Add(time.Duration(seconds * float64(time.Second)))
		}
		if exp, ok := claims["exp"].(float64); ok {
			renewed.expires = time.Unix(int64(exp), 0)
		}
		// Keep the previous refresh token, because an issuer that does not rotate refresh tokens sends no new one.
		if next, _ := fields["refresh_token"].(string); next != "" {
			renewed.refreshToken = next
		}
		return renewed, nil
	}
	return nil, fmt.Errorf("the issuer %s issued no token for the audience %s", l.Issuer, l.Audience)
}

func isFor(aud any, audience string) bool {
	if list, ok := aud.([]any); ok {
		return slices.Contains(list, any(audience))
	}
	return aud == audience
}

// claimsOf reads the claims of a token without verifying them, because that is the server's task. It returns no
// claims if the token is not a JWT.
func claimsOf(token string) map[string]any {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var claims map[string]any
	_ = json.Unmarshal(body, &claims)
	return claims
}

func askIssuer(place string, form url.Values) (int, map[string]any, error) {
	at, err := url.Parse(place)
	if err != nil {
		return 0, nil, err
	}
	// Require https, because a refresh token is sent to this address.
	ip := net.ParseIP(at.Hostname())
	if at.Scheme != "https" && at.Hostname() != "localhost" && !(ip != nil && ip.IsLoopback()) {
		return 0, nil, fmt.Errorf("%s is not an https:// address", place)
	}
	client := &http.Client{
		Timeout:       issuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not allowed") },
	}
	var answer *http.Response
	if form == nil {
		answer, err = client.Get(place)
	} else {
		answer, err = client.PostForm(place, form)
	}
	if err != nil {
		return 0, nil, unreachable("cannot reach the issuer at %s: %v", at.Host, err)
	}
	defer answer.Body.Close()
	var fields map[string]any
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostIssuerAnswerBytes)).Decode(&fields); err != nil {
		return 0, nil, unreachable("the issuer at %s returned invalid JSON: %v", at.Host, err)
	}
	return answer.StatusCode, fields, nil
}

func unreachable(format string, values ...any) error {
	return errorOf(status.Error(codes.Unavailable, fmt.Sprintf(format, values...)))
}
