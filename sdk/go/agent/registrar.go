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

// registrar calls the registry. It holds no connection between calls.
type registrar struct {
	address, host string
	tls           *tls.Config
	nodeID        string
}

// parseServer reads HOST:PORT, http://HOST:PORT or https://HOST:PORT.
func parseServer(server string, config *tls.Config) (registrar, error) {
	address := server
	if at, err := url.Parse(server); err == nil && at.Host != "" && strings.Contains(server, "://") {
		address = at.Host
		if at.Scheme == "https" && config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		} else if at.Scheme == "http" {
			config = nil
		}
	}
	host, _, err := net.SplitHostPort(address)
	return registrar{address: address, host: host, tls: config}, err
}

func dial(address string, config *tls.Config) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config.Clone())
	}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		// What follows a failure is this package's own decision.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<20)),
	)
}

func (r registrar) call(ctx context.Context, run func(context.Context, registryv1.RegistryServiceClient, *registryv1.CreateChallengeResponse) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	connection, err := dial(r.address, r.tls)
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
