// Package rollcall is the client of Rollcall, the control plane that knows which machines are present, healthy and eligible for work.
//
//	client, err := rollcall.New(rollcall.Config{}) // finds the control plane as the command line does
//	if err != nil { ... }
//	defer client.Close()
//	for node, err := range rollcall.Each(ctx, client.Registry.ListNodes, &registryv1.ListNodesRequest{}, (*registryv1.ListNodesResponse).GetNodes) {
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
	"iter"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
	schedulerv1 "rollcall.dev/go/gen/rollcall/scheduler/v1"
	"rollcall.dev/go/internal/authority"
)

// Client is the API of one control plane. It is safe for concurrent use. Close it when it is no longer needed. Its
// methods return failures as *Error.
type Client struct {
	Registry       registryv1.RegistryServiceClient
	Events         eventsv1.EventServiceClient
	Health         healthv1.HealthQueryServiceClient
	Admin          adminv1.AdminServiceClient
	JoinTokens     adminv1.JoinTokenServiceClient
	HealthPolicies adminv1.HealthPolicyServiceClient
	Brake          adminv1.BrakeServiceClient
	Access         adminv1.AccessServiceClient
	Audit          adminv1.AuditServiceClient
	Diagnosis      adminv1.DiagnosisServiceClient
	DeclaredState  adminv1.DeclaredStateServiceClient
	Webhooks       eventsv1.WebhookServiceClient
	Jobs           schedulerv1.JobServiceClient

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
	seen := &seenRevision{}
	for _, service := range services {
		connection, err := found.connect(service, options, seen)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		client.connections = append(client.connections, connection)
		of[service] = connection
	}
	client.Registry = registryv1.NewRegistryServiceClient(of["registry"])
	client.Events = eventsv1.NewEventServiceClient(of["registry"])
	client.Health = healthv1.NewHealthQueryServiceClient(of["health"])
	client.Admin = adminv1.NewAdminServiceClient(of["admin"])
	client.JoinTokens = adminv1.NewJoinTokenServiceClient(of["admin"])
	client.HealthPolicies = adminv1.NewHealthPolicyServiceClient(of["admin"])
	client.Brake = adminv1.NewBrakeServiceClient(of["admin"])
	client.Access = adminv1.NewAccessServiceClient(of["admin"])
	client.Audit = adminv1.NewAuditServiceClient(of["admin"])
	client.Diagnosis = adminv1.NewDiagnosisServiceClient(of["admin"])
	client.DeclaredState = adminv1.NewDeclaredStateServiceClient(of["admin"])
	client.Webhooks = eventsv1.NewWebhookServiceClient(of["admin"])
	client.Jobs = schedulerv1.NewJobServiceClient(of["scheduler"])
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

// A PageRequest requests a page.
type PageRequest interface {
	proto.Message
	GetPageToken() string
}

// A Page is one part of a list.
type Page interface {
	proto.Message
	GetNextPageToken() string
}

// Each iterates over the items of all pages of a list. It stops after the first failure.
func Each[Q PageRequest, P Page, Item any](ctx context.Context, list func(context.Context, Q, ...grpc.CallOption) (P, error), request Q, items func(P) []Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		next := proto.Clone(request)
		token := next.ProtoReflect().Descriptor().Fields().ByName("page_token")
		for {
			page, err := list(ctx, next.(Q))
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
			if page.GetNextPageToken() == "" {
				return
			}
			next.ProtoReflect().Set(token, stringValue(page.GetNextPageToken()))
		}
	}
}

// streamError converts the failure of a stream, except io.EOF.
func streamError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return callError(ctx, err)
}
