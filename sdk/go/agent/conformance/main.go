// Command conformance is the agent that `make conformance NAME=go` tests. It is the kit with a wall clock that jumps on
// request.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollcall.dev/go/agent"
)

func main() {
	server := flag.String("server", "", "address of the registry")
	name := flag.String("name", "", "id of the node")
	state := flag.String("state-dir", "", "directory for the agent's state")
	clock := flag.String("clock-file", "", "file with the wall clock's offset in milliseconds")
	flag.Parse()
	options := agent.Options{
		Server: *server, NodeID: *name, StateDir: *state, Version: "conformance", MachineFingerprint: "machine-of-" + *name,
		WallClock: func() time.Time { return time.Now().Add(wrongBy(*clock)) },
	}
	executor, err := agent.NewProcessExecutor(agent.ProcessExecutorOptions{Directory: *state + "-work", MayBeOwnUser: true})
	if err != nil {
		fail(err)
	}
	options.Executor = executor
	made, err := agent.New(options)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := made.Run(ctx); err != nil {
		fail(err)
	}
}

func wrongBy(file string) time.Duration {
	text, err := os.ReadFile(file)
	ms, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || parseErr != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func fail(err error) {
	slog.Error("the agent cannot run", "err", err)
	os.Exit(1)
}
