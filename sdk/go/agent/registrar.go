package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

const callTimeout = 10 * time.Second

// registrar calls the registry. It keeps no connection between calls.
type registrar struct {
	address, host string
	trust         *trust
	nodeID        string
}

// openRegistrar parses HOST:PORT, http://HOST:PORT or https://HOST:PORT, and prepares the trust settings.
func openRegistrar(options Options) (registrar, error) {
	server, config := options.Server, options.TLS
	address := server
	isAboutTLS := options.CAFile != "" || options.CAFingerprint != ""
	if isAboutTLS && config == nil && !strings.Contains(server, "://") {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if at, err := url.Parse(server); err == nil && at.Host != "" && strings.Contains(server, "://") {
		address = at.Host
		if at.Scheme == "https" && config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		} else if at.Scheme == "http" {
			config = nil
		}
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return registrar{}, err
	}
	found, err := openTrust(options, config, address, host)
	return registrar{address: address, host: host, trust: found, nodeID: options.NodeID}, err
}

func dial(address string, servers *trust) (*grpc.ClientConn, error) {
	config, err := servers.forConnection()
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		// Disable gRPC's retries, because the agent itself decides what to do after a failure.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<20)),
	)
}

func (r registrar) call(ctx context.Context, run func(context.Context, registryv1.RegistryServiceClient, *registryv1.CreateChallengeResponse) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := r.trust.prepare(ctx); err != nil {
		return err
	}
	connection, err := dial(r.address, r.trust)
	if err != nil {
		return err
	}
	defer connection.Close()
	client := registryv1.NewRegistryServiceClient(connection)
	challenge, err := client.CreateChallenge(ctx, &registryv1.CreateChallengeRequest{})
	if err != nil {
		return err
	}
	return run(ctx, client, challenge)
}

func (r registrar) register(ctx context.Context, key ed25519.PrivateKey, info *nodev1.NodeInfo, token string) (*registryv1.RegisterNodeResponse, error) {
	var answer *registryv1.RegisterNodeResponse
	err := r.call(ctx, func(ctx context.Context, client registryv1.RegistryServiceClient, challenge *registryv1.CreateChallengeResponse) (err error) {
		text := proofText(registerMethod, challenge.GetClusterId(), r.nodeID, challenge.GetNonce())
		answer, err = client.RegisterNode(ctx, &registryv1.RegisterNodeRequest{
			NodeId:    r.nodeID,
			PublicKey: publicKey(key),
			Proof:     &registryv1.NodeProof{Nonce: challenge.GetNonce(), Signature: ed25519.Sign(key, []byte(text))},
			Info:      info,
			JoinToken: token,
		})
		return err
	})
	return answer, err
}

func (r registrar) rotateKey(ctx context.Context, key, next ed25519.PrivateKey) (*registryv1.RotateNodeKeyResponse, error) {
	var answer *registryv1.RotateNodeKeyResponse
	err := r.call(ctx, func(ctx context.Context, client registryv1.RegistryServiceClient, challenge *registryv1.CreateChallengeResponse) (err error) {
		text := []byte(proofText(rotateMethod, challenge.GetClusterId(), r.nodeID, challenge.GetNonce()))
		answer, err = client.RotateNodeKey(ctx, &registryv1.RotateNodeKeyRequest{
			NodeId:        r.nodeID,
			Proof:         &registryv1.NodeProof{Nonce: challenge.GetNonce(), Signature: ed25519.Sign(key, text)},
			NextPublicKey: publicKey(next),
			NextSignature: ed25519.Sign(next, text),
		})
		return err
	})
	return answer, err
}
