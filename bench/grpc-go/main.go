// Bare-grpc-go is a server that serves as the lower bound for the health service. It uses the same transport, and
// decodes and acknowledges the same bytes, but does nothing else: it checks no signature and keeps no state. It
// responds to the benchmark that started it in the same way as the JavaScript servers.
//
// Usage: bare-grpc-go PORT
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

type server struct {
	healthv1.UnimplementedHealthServiceServer
}

// Heartbeat sends a challenge and a welcome, then acknowledges every Beat.
func (server) Heartbeat(stream grpc.BidiStreamingServer[healthv1.HeartbeatRequest, healthv1.HeartbeatResponse]) error {
	challenge := &healthv1.Challenge{Nonce: make([]byte, 32), ClusterId: "bare"}
	if err := stream.Send(&healthv1.HeartbeatResponse{Frame: &healthv1.HeartbeatResponse_Challenge{Challenge: challenge}}); err != nil {
		return err
	}
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var answer *healthv1.HeartbeatResponse
		switch frame := request.Frame.(type) {
		case *healthv1.HeartbeatRequest_Beat:
			ack := &healthv1.Ack{Sequence: frame.Beat.Sequence}
			answer = &healthv1.HeartbeatResponse{Frame: &healthv1.HeartbeatResponse_Ack{Ack: ack}}
		case *healthv1.HeartbeatRequest_Hello:
			welcome := &healthv1.Welcome{SessionEpoch: 1, ClusterId: "bare"}
			answer = &healthv1.HeartbeatResponse{Frame: &healthv1.HeartbeatResponse_Welcome{Welcome: welcome}}
		default:
			continue
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: bare-grpc-go PORT")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	go answerBenchmark()
	s := grpc.NewServer()
	healthv1.RegisterHealthServiceServer(s, server{})
	log.Fatal(s.Serve(listener))
}

// answerBenchmark uses the channel that Node.js opens to its children, with one JSON text per line. It responds to
// "memory" with the memory in use after a garbage collection, and exits when the benchmark does.
func answerBenchmark() {
	number, err := strconv.Atoi(os.Getenv("NODE_CHANNEL_FD"))
	if err != nil {
		return
	}
	channel := os.NewFile(uintptr(number), "channel")
	lines := bufio.NewScanner(channel)
	for lines.Scan() {
		if lines.Text() != `"memory"` {
			continue
		}
		runtime.GC()
		debug.FreeOSMemory()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		// Count the stacks of goroutines too, because they hold the state that is on the heap in Node.js.
		heap := memory.HeapAlloc + memory.StackInuse
		if _, err := fmt.Fprintf(channel, "{\"rssBytes\":%d,\"heapBytes\":%d}\n", residentBytes(), heap); err != nil {
			break
		}
	}
	os.Exit(0)
}

func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
