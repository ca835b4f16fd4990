package agent

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

const (
	// A server takes frames of 64 KiB; the rest is for what surrounds the observations.
	mostPartBytes        = 49_152
	mostPartObservations = 1_000
	// Of tag and length, for each observation.
	overheadBytes = 4
	pieceBytes    = 65_536
	lookEvery     = 250 * time.Millisecond
)

// reportParts cuts a report into frames that a server takes. One without observations is one frame.
func reportParts(number uint64, isWhole bool, digest uint64, observations []*workv1.ExecutionObservation) []*healthv1.ExecutionReport {
	part := &healthv1.ExecutionReport{Number: number, Whole: isWhole, Digest: digest}
	parts := []*healthv1.ExecutionReport{part}
	size := 0
	for _, one := range observations {
		length := proto.Size(one) + overheadBytes
		if len(part.Observations) > 0 && (size+length > mostPartBytes || len(part.Observations) >= mostPartObservations) {
			part.More = true
			part = &healthv1.ExecutionReport{Number: number, Whole: isWhole, Digest: digest}
			parts = append(parts, part)
			size = 0
		}
		part.Observations = append(part.Observations, one)
		size += length
	}
	return parts
}

// sendOutput answers a LogRequest on a call of its own, until the output's end, or with follow until the execution has ended.
func sendOutput(ctx context.Context, client healthv1.HealthServiceClient, request *healthv1.LogRequest, executor Executor) {
	call, err := client.ServeLogs(ctx)
	if err != nil || call.Send(&healthv1.ServeLogsRequest{Token: request.GetToken()}) != nil {
		return // The reader is told that in time.
	}
	// An output that is silent is read no longer than a caller listens.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		_ = call.RecvMsg(&healthv1.ServeLogsResponse{}) // The same.
	}()
	if failure := sendPieces(reading, call.Send, request, executor); failure != "" {
		_ = call.Send(&healthv1.ServeLogsRequest{Failure: failure}) // The same.
	}
	_ = call.CloseSend()
	<-reading.Done()
}

type cursor struct {
	stream OutputStream
	from   OutputPlace
	isEnd  bool
}

// sendPieces answers the reason for which there is no output; empty when all has been sent.
func sendPieces(ctx context.Context, send func(*healthv1.ServeLogsRequest) error, request *healthv1.LogRequest, executor Executor) string {
	place := OutputPlace{request.GetOffset(), request.GetTailBytes()}
	cursors := []*cursor{{stream: 1, from: place}, {stream: 2, from: place}}
	if only := request.GetStream(); only == 1 || only == 2 {
		cursors = cursors[only-1 : only]
	}
	for {
		isOver, hasSent := true, false
		for _, at := range cursors {
			if at.isEnd {
				continue
			}
			if executor == nil {
				return "LOG_NOT_FOUND"
			}
			piece, err := executor.ReadOutput(request.GetExecutionId(), at.stream, at.from, pieceBytes)
			if err != nil {
				return "LOG_NOT_FOUND"
			}
			at.from = OutputPlace{Offset: piece.Offset + uint64(len(piece.Data))}
			at.isEnd = piece.IsEnd || (!request.GetFollow() && len(piece.Data) == 0)
			isOver = isOver && at.isEnd
			if len(piece.Data) == 0 {
				continue
			}
			hasSent = true
			if send(&healthv1.ServeLogsRequest{Stream: uint32(at.stream), Offset: piece.Offset, Data: piece.Data}) != nil {
				return ""
			}
		}
		if isOver {
			return ""
		}
		if !hasSent {
			select {
			case <-ctx.Done():
				return ""
			case <-time.After(lookEvery):
			}
		}
	}
}

// cut keeps so many bytes of a text, and whole characters.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
