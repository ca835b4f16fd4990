// Command agent is a whole agent of Rollcall: it speaks for this machine, and runs processes for it when a user is named for them.
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

	"rollcall.dev/go/agent"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
)

func main() {
	hostname, _ := os.Hostname() // Without one, --name is needed.
	server := flag.String("server", "127.0.0.1:7700", "address of the registry, HOST:PORT or a URL")
	name := flag.String("name", hostname, "id of the node")
	state := flag.String("state-dir", "", "directory of the node's key and of its executions")
	token := flag.String("join-token-file", "", "file with a join token, or with the token of a Kubernetes service account")
	workUser := flag.String("work-user", "", "run executions as this user; without one the node runs none")
	sameUser := flag.Bool("work-same-user", false, "let --work-user be the agent's own user, for development alone")
	flag.Parse()

	options := agent.Options{
		Server: *server, NodeID: *name, StateDir: *state, JoinTokenFile: *token, Version: "example-1.0",
		Info: func() *nodev1.NodeInfo {
			return &nodev1.NodeInfo{
				Hostname: hostname,
				Os:       &nodev1.OperatingSystem{Family: runtime.GOOS, Architecture: map[string]string{"amd64": "x64"}[runtime.GOARCH]},
				Cpu:      &nodev1.Cpu{Threads: uint32(runtime.NumCPU()), UsableMillis: uint32(runtime.NumCPU()) * 1000},
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
