package rollcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	"rollcall.dev/go/internal/authority"
)

const (
	defaultServer   = "127.0.0.1:7700"
	systemDirectory = "/var/lib/rollcall"
)

// Config says which control plane to use. The client looks up each setting as the command line does, in this order: the
// fields here, the named context, the environment, the current context, the file of this user's running `rollcall up`,
// and 127.0.0.1:7700.
type Config struct {
	// Server is HOST:PORT or a URL that serves all services.
	Server string
	// Registry, Health, Admin and Scheduler are addresses of services that run separately.
	Registry, Health, Admin, Scheduler string
	// Token is an access token.
	Token string
	// TokenFile is a file with an access token. It is read for each call, so that you can replace it.
	TokenFile string
	// CAFile is a PEM file with the authority of the server's certificate.
	CAFile string
	// CAFingerprint is "sha256:" and 64 hexadecimal digits. New fetches the authority from the server, compares its
	// fingerprint, and trusts only this authority.
	CAFingerprint string
	// ServerName is the name in the server's certificate, if it differs from the address.
	ServerName string
	// ClientCertificate and ClientKey are PEM files with the client's certificate and its key.
	ClientCertificate, ClientKey string
	// Context is the name of a context of the command line.
	Context string
	// Options configure calls.
	Options
}

type address struct {
	authority string
	isTLS     bool
}

func (a address) isLoopback() bool {
	host, _, _ := net.SplitHostPort(a.authority)
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

type target struct {
	addresses map[string]address
	// The credential for each service, keyed by service name.
	credentials           map[string]credential
	caFile, caFingerprint string
	serverName            string
	certificate, keyPEM   string
	// own is the server of this user's running `rollcall up`. Its trust settings apply to no other server.
	own                      address
	ownCAFile, ownServerName string
}

// trustFor returns the authority file and the certificate name for an address. Those in the run file apply only to the
// server that wrote it.
func (t *target) trustFor(at address) (caFile, serverName string) {
	caFile, serverName = t.caFile, t.serverName
	if at != t.own {
		return caFile, serverName
	}
	if t.caFingerprint == "" {
		caFile = first(caFile, t.ownCAFile)
	}
	return caFile, first(serverName, t.ownServerName)
}

type surroundings struct {
	env       func(string) string
	home, cwd string
	uid       int
}

var services = []string{"registry", "health", "admin", "scheduler"}

type contextEntry struct {
	name, path string

	Server    string `yaml:"server"`
	Registry  string `yaml:"registry"`
	Health    string `yaml:"health"`
	Admin     string `yaml:"admin"`
	Scheduler string `yaml:"scheduler"`
	Token     string `yaml:"token"`
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
	Login     *login `yaml:"oidc"`
}

func (c contextEntry) of(service string) string {
	named := map[string]string{"registry": c.Registry, "health": c.Health, "admin": c.Admin, "scheduler": c.Scheduler}
	return first(named[service], c.Server)
}

type runFile struct {
	Server string `json:"server"`
	TLS    *struct {
		CAFile     string `json:"caFile"`
		ServerName string `json:"serverName"`
	} `json:"tls"`
}

// isOwn reports whether the text is exactly the address of the running `rollcall up` and that server uses TLS.
func (r runFile) isOwn(text string) bool { return r.TLS != nil && text == r.Server }

// resolve finds the control plane without connecting.
func resolve(config Config, at surroundings) (*target, error) {
	data := dataDirectory(at)
	run := readRunFile(data)
	entry, err := readContext(config, at)
	if err != nil {
		return nil, err
	}
	isNamed := config.Context != ""
	named := map[string]string{"registry": config.Registry, "health": config.Health, "admin": config.Admin, "scheduler": config.Scheduler}
	found := &target{
		addresses:   map[string]address{},
		credentials: map[string]credential{},
		caFile:      config.CAFile,
		serverName:  first(config.ServerName, at.env("ROLLCALL_TLS_SERVER_NAME")),
		certificate: first(config.ClientCertificate, at.env("ROLLCALL_CLIENT_CERT")),
		keyPEM:      first(config.ClientKey, at.env("ROLLCALL_CLIENT_KEY")),
	}
	if err := found.trust(config, at); err != nil {
		return nil, err
	}
	if (found.certificate == "") != (found.keyPEM == "") {
		return nil, errors.New("a client certificate and its key must be set together")
	}
	if found.caFile == "" && found.caFingerprint == "" && entry.CAFile != "" && !isElsewhere(config, named, isNamed, at) {
		found.caFile = entry.CAFile
	}
	found.own = parsedRunAddress(run)
	if run.TLS != nil {
		found.ownCAFile, found.ownServerName = run.TLS.CAFile, run.TLS.ServerName
	}
	wantsTLS := found.caFile != "" || found.caFingerprint != "" || found.serverName != "" || found.certificate != ""
	for _, service := range services {
		variable := "ROLLCALL_" + strings.ToUpper(service)
		byName := ""
		if isNamed {
			byName = entry.of(service)
		}
		text := first(named[service], config.Server, byName, at.env(variable), at.env("ROLLCALL_SERVER"), entry.of(service), run.Server, defaultServer)
		if found.addresses[service], err = parseAddress(text, wantsTLS || run.isOwn(text)); err != nil {
			return nil, err
		}
	}
	return found, found.findCredentials(config, entry, at, data, run, wantsTLS)
}

// trust reads the configured authority file or fingerprint.
func (t *target) trust(config Config, at surroundings) (err error) {
	if config.CAFingerprint == "" {
		t.caFile = first(config.CAFile, at.env("ROLLCALL_CA_FILE"))
		return nil
	}
	if config.CAFile != "" {
		return errors.New("CAFile and CAFingerprint cannot be combined")
	}
	t.caFingerprint, err = authority.ParseFingerprint(config.CAFingerprint)
	return err
}

func isElsewhere(config Config, named map[string]string, isNamed bool, at surroundings) bool {
	if config.Server != "" || first(named["registry"], named["health"], named["admin"], named["scheduler"]) != "" {
		return true
	}
	if isNamed {
		return false
	}
	for _, service := range append([]string{"server"}, services...) {
		if at.env("ROLLCALL_"+strings.ToUpper(service)) != "" {
			return true
		}
	}
	return false
}

// findCredentials finds the token for each address. A context's token is sent only to the addresses in the context. The
// data directory's token is sent only to this machine and to the server that wrote it. Any other server could misuse
// the token.
func (t *target) findCredentials(config Config, entry contextEntry, at surroundings, data string, run runFile, wantsTLS bool) error {
	ofContext := map[address]bool{}
	for _, text := range []string{entry.Server, entry.Registry, entry.Health, entry.Admin, entry.Scheduler} {
		if text == "" {
			continue
		}
		// A context that uses TLS always uses it, regardless of other settings, so that its token is never sent in clear
		// text.
		own, err := parseAddress(text, entry.CAFile != "" || wantsTLS || run.isOwn(text))
		if err != nil {
			return err
		}
		ofContext[own] = true
	}
	said := tokenOrFile(config.Token, config.TokenFile)
	inEnvironment := tokenOrFile(at.env("ROLLCALL_TOKEN"), at.env("ROLLCALL_TOKEN_FILE"))
	inEntry := entry.credential()
	for service, address := range t.addresses {
		var inContext credential
		if ofContext[address] {
			inContext = inEntry
		}
		isOwn := address.isLoopback() || address == t.own
		switch {
		case said != nil:
			t.credentials[service] = said
		case config.Context != "" && inContext != nil:
			t.credentials[service] = inContext
		case inEnvironment != nil:
			t.credentials[service] = inEnvironment
		case inContext != nil:
			t.credentials[service] = inContext
		case isOwn:
			t.credentials[service] = fileCredential(filepath.Join(data, "admin-token"), false)
		default:
			t.credentials[service] = func(context.Context) (string, error) { return "", nil }
		}
	}
	return nil
}

func parsedRunAddress(run runFile) address {
	own, err := parseAddress(run.Server, run.TLS != nil)
	if err != nil {
		return address{}
	}
	return own
}

// parseAddress parses HOST:PORT or a URL.
func parseAddress(text string, isTLS bool) (address, error) {
	read, problem := readAddress(strings.TrimSpace(text), isTLS)
	if problem != "" {
		return address{}, fmt.Errorf("cannot use %q as an address: %s; HOST:PORT or a URL such as https://rollcall.example:7700 is needed", shownAddress(text), problem)
	}
	return read, nil
}

var (
	schemePattern    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	bracketedPattern = regexp.MustCompile(`^\[([^\]]*)\](:(.*))?$`)
	namedPattern     = regexp.MustCompile(`^([^:]*)(:([^:]*))?$`)
	hostPattern      = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$`)
	numericPattern   = regexp.MustCompile(`(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\.?$`)
	portPattern      = regexp.MustCompile(`^[0-9]{1,5}$`)
	beyondASCII      = regexp.MustCompile(`[^ -~]`)
)

// readAddress parses an address, and returns any problem as text. The text does not repeat the address, which may
// contain a password.
func readAddress(text string, isTLS bool) (address, string) {
	scheme, rest := "", text
	if found := schemePattern.FindStringSubmatch(text); found != nil {
		scheme, rest = strings.ToLower(found[1]), text[len(found[0]):]
	}
	authority, path, _ := strings.Cut(rest, "/")
	switch {
	case scheme != "" && scheme != "http" && scheme != "https":
		return address{}, "its scheme is not http or https"
	case strings.Contains(rest, "@"):
		return address{}, "it must have no user and no password"
	case strings.ContainsAny(rest, "?#"):
		return address{}, "it must have no query and no fragment"
	case path != "":
		return address{}, "it must have no path"
	}
	parts, hostProblem := bracketedPattern.FindStringSubmatch(authority), ipv6Problem
	if parts == nil {
		parts, hostProblem = namedPattern.FindStringSubmatch(authority), nameProblem
	}
	if parts == nil {
		return address{}, "an IPv6 address needs brackets, as in [::1]:7700"
	}
	host, hasPort, port := strings.ToLower(parts[1]), parts[2] != "", parts[3]
	if problem := hostProblem(host); problem != "" {
		return address{}, problem
	}
	// Refuse HOST without a port. It would silently mean port 80, where no Rollcall service listens.
	if scheme == "" && !hasPort {
		return address{}, "it has no port"
	}
	isSecure := scheme == "https" || (scheme == "" && isTLS)
	number := map[bool]int{true: 443, false: 80}[isSecure]
	if hasPort {
		number, _ = strconv.Atoi(port)
	}
	if number < 1 || number > 65_535 || (hasPort && !portPattern.MatchString(port)) {
		return address{}, "its port must be from 1 to 65535"
	}
	return address{net.JoinHostPort(host, strconv.Itoa(number)), isSecure}, ""
}

func ipv6Problem(host string) string {
	if strings.Contains(host, "%") {
		return "an IPv6 address cannot have a zone here"
	}
	if read, err := netip.ParseAddr(host); err != nil || !read.Is6() {
		return "its IPv6 address is invalid"
	}
	return ""
}

func nameProblem(host string) string {
	switch {
	case host == "":
		return "it has no host"
	case beyondASCII.MatchString(host):
		return "its host is not in ASCII: write a name of another script as xn--..."
	case !hostPattern.MatchString(host) || len(host) > 253:
		return "its host is invalid"
	}
	// Refuse a name whose last part is a number, unless it is a valid IP address. Programs differ in how they parse such a
	// name as an address.
	if _, err := netip.ParseAddr(host); numericPattern.MatchString(host) && err != nil {
		return "its IPv4 address is invalid"
	}
	return ""
}

// shownAddress returns the address without any part that may be a password or a token.
func shownAddress(text string) string {
	shown := strings.TrimSpace(text)
	if at := strings.LastIndex(shown, "@"); at >= 0 {
		shown = schemePattern.FindString(shown) + "***" + shown[at:]
	}
	if end := strings.IndexAny(shown, "?#"); end >= 0 {
		shown = shown[:end]
	}
	return shown
}

func readContext(config Config, at surroundings) (contextEntry, error) {
	base := at.env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(at.home, ".config")
	}
	return contextIn(filepath.Join(base, "rollcall", "config.yaml"), first(config.Context, at.env("ROLLCALL_CONTEXT")))
}

// contextIn reads the named context, or the current one.
func contextIn(path, name string) (contextEntry, error) {
	var file struct {
		Current  string                  `yaml:"current_context"`
		Contexts map[string]contextEntry `yaml:"contexts"`
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return contextEntry{}, err
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return contextEntry{}, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if name = first(name, file.Current); name == "" {
		return contextEntry{}, nil
	}
	found, ok := file.Contexts[name]
	if !ok {
		return contextEntry{}, fmt.Errorf("there is no context %q in %s", name, path)
	}
	found.name, found.path = name, path
	return found, nil
}

func dataDirectory(at surroundings) string {
	if named := at.env("ROLLCALL_DATA_DIR"); named != "" {
		return named
	}
	// Ignore another user's directory. It could redirect calls and their token to that user's server.
	if here := filepath.Join(at.cwd, ".rollcall"); belongsTo(here, at.uid) {
		return here
	}
	own := filepath.Join(at.home, ".rollcall")
	if at.uid == 0 && !belongsTo(own, at.uid) {
		return systemDirectory
	}
	return own
}

func readRunFile(data string) runFile {
	var found runFile
	text, err := os.ReadFile(filepath.Join(data, "run.json"))
	if err != nil || json.Unmarshal(text, &found) != nil {
		return runFile{}
	}
	return found
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
