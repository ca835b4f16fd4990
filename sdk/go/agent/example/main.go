// Command agent is a complete Rollcall agent. It represents this machine, and runs processes if you give it a user to
// run them as.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"google.golang.org/protobuf/proto"

	"rollcall.dev/go/agent"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
)

func main() {
	hostname, _ := os.Hostname() // Without a host name, --name is required.
	server := flag.String("server", "127.0.0.1:7700", "address of the registry, HOST:PORT or a URL")
	name := flag.String("name", hostname, "id of the node")
	state := flag.String("state-dir", "", "directory for the node's key and executions")
	token := flag.String("join-token-file", "", "file with a join token, or with the token of a Kubernetes service account")
	caFile := flag.String("ca-file", "", "PEM file of the authorities to trust")
	caFingerprint := flag.String("ca-fingerprint", "", "fingerprint of the authority to trust, as rollcall token create prints it")
	workUser := flag.String("work-user", "", "run executions as this user (default: run none)")
	sameUser := flag.Bool("work-same-user", false, "allow --work-user to be the agent's own user, only for development")
	flag.Parse()

	options := agent.Options{
		Server: *server, NodeID: *name, StateDir: *state, JoinTokenFile: *token, Version: "example-1.0",
		CAFile: *caFile, CAFingerprint: *caFingerprint,
		Info: func() *nodev1.NodeInfo {
			return &nodev1.NodeInfo{
				Hostname: hostname,
				Os:       &nodev1.OperatingSystem{Family: runtime.GOOS, Architecture: map[string]string{"amd64": "x64"}[runtime.GOARCH]},
				Cpu:      &nodev1.Cpu{Threads: uint32(runtime.NumCPU()), UsableMillis: proto.Uint32(uint32(runtime.NumCPU()) * 1000)},
				Labels:   map[string]string{"kit": "go"},
			}
		},
	}
	if *workUser != "" {
		executor, err := agent.NewProcessExecutor(agent.ProcessExecutorOptions{
			Directory: filepath.Join(filepath.Clean(*state) + "-work"), User: *workUser, MayBeOwnUser: *sameUser,
		})
		if err != nil {
			fail(err)
		}
		options.Executor = executor
	}
	made, err := agent.New(options)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := made.Run(ctx); err != nil {
		fail(err)
	}
}

func fail(err error) {
	slog.Error("the agent cannot run", "err", err)
	os.Exit(1)
}
