// Package rollcall is the client of Rollcall, the control plane that knows which machines are present, healthy and eligible for work.
//
//	client, err := rollcall.New(rollcall.Config{}) // finds the control plane as the command line does
//	if err != nil { ... }
//	defer client.Close()
//	for node, err := range rollcall.Each(ctx, client.RegistryService.ListNodes, &registryv1.ListNodesRequest{}, (*registryv1.ListNodesResponse).GetNodes) {
//		...
//	}
package rollcall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
	schedulerv1 "rollcall.dev/go/gen/rollcall/scheduler/v1"
	"rollcall.dev/go/internal/authority"
)

// Client is the API of one control plane. It is safe for concurrent use. Close it when it is no longer needed. Its
// methods return failures as *Error. The fields are the generated clients, one for each service, which have every
// method. The methods, such as Nodes, have helpers for lists, single objects and watches. Services at the same address
// share one connection.
type Client struct {
	RegistryService      registryv1.RegistryServiceClient
	EventService         eventsv1.EventServiceClient
	HealthQueryService   healthv1.HealthQueryServiceClient
	AdminService         adminv1.AdminServiceClient
	JoinTokenService     adminv1.JoinTokenServiceClient
	HealthPolicyService  adminv1.HealthPolicyServiceClient
	BrakeService         adminv1.BrakeServiceClient
	AccessService        adminv1.AccessServiceClient
	AuditService         adminv1.AuditServiceClient
	DiagnosisService     adminv1.DiagnosisServiceClient
	DeclaredStateService adminv1.DeclaredStateServiceClient
	WebhookService       eventsv1.WebhookServiceClient
	JobService           schedulerv1.JobServiceClient

	connections []*caller
}

// New finds the control plane. It does not connect until the first call, unless CAFingerprint is set. In that case, New
// fetches the authority immediately.
func New(config Config) (*Client, error) {
	home, _ := os.UserHomeDir()
	cwd, _ := os.Getwd()
	found, err := resolve(config, surroundings{os.Getenv, home, cwd, os.Geteuid()})
	if err != nil {
		return nil, err
	}
	options := config.Options
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.Retry.Attempts == 0 {
		options.Retry = DefaultRetry
	}
	client := &Client{}
	of := map[string]grpc.ClientConnInterface{}
	// Services at one address have the same trust and the same credential, so they share a connection.
	connectionTo := map[address]*caller{}
	seen := &seenRevision{}
	for _, service := range services {
		at := found.addresses[service]
		connection, isOpen := connectionTo[at]
		if !isOpen {
			if connection, err = found.connect(service, options, seen); err != nil {
				return nil, errors.Join(err, client.Close())
			}
			connectionTo[at] = connection
			client.connections = append(client.connections, connection)
		}
		of[service] = connection
	}
	client.RegistryService = registryv1.NewRegistryServiceClient(of["registry"])
	client.EventService = eventsv1.NewEventServiceClient(of["registry"])
	client.HealthQueryService = healthv1.NewHealthQueryServiceClient(of["health"])
	client.AdminService = adminv1.NewAdminServiceClient(of["admin"])
	client.JoinTokenService = adminv1.NewJoinTokenServiceClient(of["admin"])
	client.HealthPolicyService = adminv1.NewHealthPolicyServiceClient(of["admin"])
	client.BrakeService = adminv1.NewBrakeServiceClient(of["admin"])
	client.AccessService = adminv1.NewAccessServiceClient(of["admin"])
	client.AuditService = adminv1.NewAuditServiceClient(of["admin"])
	client.DiagnosisService = adminv1.NewDiagnosisServiceClient(of["admin"])
	client.DeclaredStateService = adminv1.NewDeclaredStateServiceClient(of["admin"])
	client.WebhookService = eventsv1.NewWebhookServiceClient(of["admin"])
	client.JobService = schedulerv1.NewJobServiceClient(of["scheduler"])
	return client, nil
}

// Close ends every call and connection.
func (c *Client) Close() error {
	var failures []error
	for _, connection := range c.connections {
		failures = append(failures, connection.Close())
	}
	return errors.Join(failures...)
}

func (t *target) connect(service string, options Options, seen *seenRevision) (*caller, error) {
	at := t.addresses[service]
	transport, err := t.transport(at)
	if err != nil {
		return nil, err
	}
	files := t.files(at)
	connection, err := newConnection(func() (*grpc.ClientConn, error) {
		if len(files) > 0 {
			if transport, err = t.transport(at); err != nil {
				return nil, err
			}
		}
		return grpc.NewClient("dns:///"+at.authority,
			grpc.WithTransportCredentials(transport),
			// The client retries calls itself, because it knows request ids and the server's reasons.
			grpc.WithDisableRetry(),
			// Detect a connection that drops packets while a stream waits.
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
				MinConnectTimeout: 5 * time.Second,
			}),
			// The maximum size of a message. Pages are limited to about 1 MiB, but a page of one large item can exceed that.
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)),
		)
	}, files...)
	if err != nil {
		return nil, err
	}
	return &caller{connection, options, t.credentials[service], seen}, nil
}

// files returns the TLS files to check for changes. An authority that was fetched by its fingerprint does not change.
func (t *target) files(at address) []string {
	if !at.isTLS || t.caFingerprint != "" {
		return nil
	}
	caFile, _ := t.trustFor(at)
	named := []string{caFile, t.certificate, t.keyPEM}
	return slices.DeleteFunc(named, func(file string) bool { return file == "" })
}

func (t *target) transport(at address) (credentials.TransportCredentials, error) {
	if !at.isTLS {
		return insecure.NewCredentials(), nil
	}
	caFile, serverName := t.trustFor(at)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s contains no certificate", caFile)
		}
	}
	if t.caFingerprint != "" {
		found, err := authority.Fetch(context.Background(), at.authority, serverName, t.caFingerprint)
		var away *authority.Unreachable
		if errors.As(err, &away) {
			return nil, unreachable("%s", away.Error())
		} else if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(found)
	}
	if t.certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.certificate, t.keyPEM)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}

// streamError converts the failure of a stream, except io.EOF.
func streamError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return callError(ctx, err)
}
