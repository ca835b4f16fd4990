package agent

import (
	"bytes"
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

const (
	// The maximum size of the observations in one frame, in bytes. A server accepts frames of 64 KiB; the rest is for the
	// other fields of the frame.
	mostPartBytes        = 49_152
	mostPartObservations = 1_000
	// The bytes that the tag and length of one observation use.
	overheadBytes = 4
	pieceBytes    = 65_536
	scanEvery     = 250 * time.Millisecond
)

// reportParts splits a report into frames that a server accepts. A report without observations fits in one frame.
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

// sendOutput responds to a LogRequest with a separate call. It sends until the end of the output or, with follow, until
// the execution has ended.
func sendOutput(ctx context.Context, client healthv1.HealthServiceClient, request *healthv1.LogRequest, executor Executor) {
	call, err := client.ServeLogs(ctx)
	if err != nil || call.Send(&healthv1.ServeLogsRequest{Token: request.GetToken()}) != nil {
		return // The server notices, and answers the reader.
	}
	// When the caller disconnects, stop reading, even from an output without new data.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		_ = call.RecvMsg(&healthv1.ServeLogsResponse{}) // Any result ends the call.
	}()
	if failure := sendPieces(reading, call.Send, request, executor); failure != "" {
		_ = call.Send(&healthv1.ServeLogsRequest{Failure: failure}) // It can fail only if the call has ended.
	}
	_ = call.CloseSend()
	<-reading.Done()
}

type cursor struct {
	stream OutputStream
	from   OutputPlace
	// isCut reports whether the beginning of the requested output has already been discarded.
	isCut bool
	isEnd bool
}

// readFrom reads a piece of one output.
type readFrom func(from OutputPlace, limit int) (OutputPiece, error)

// beginOf returns where to start reading: the latest of the positions in the request. The executor does not know when
// output was written, so a time filter matches all output.
func beginOf(request *healthv1.LogRequest, stream OutputStream, read readFrom) (*cursor, error) {
	begin := &cursor{stream: stream, from: OutputPlace{Offset: request.GetOffset()}}
	if stream == 2 && request.GetStream() == 0 {
		begin.from.Offset = request.GetStderrOffset()
	}
	take := func(offset uint64, isCut bool) {
		if offset > begin.from.Offset {
			begin.from.Offset, begin.isCut = offset, isCut
		}
	}
	if tail := request.GetTailBytes(); tail > 0 {
		piece, err := read(OutputPlace{Tail: tail}, 1)
		if err != nil {
			return nil, err
		}
		take(piece.Offset, false)
	}
	if lines := request.GetTailLines(); lines > 0 {
		offset, isCut, err := lastLines(int(lines), read)
		if err != nil {
			return nil, err
		}
		take(offset, isCut)
	}
	return begin, nil
}

// lastLines returns the offset at which the last lines begin. It reads backwards, and no more than necessary.
func lastLines(lines int, read readFrom) (uint64, bool, error) {
	last, err := read(OutputPlace{Tail: 1}, 1)
	if err != nil {
		return 0, false, err
	}
	isAtEnd := true
	for end := last.Offset + uint64(len(last.Data)); end > 0; {
		low := end - min(end, pieceBytes)
		begin, data, err := readBetween(low, end, read)
		if err != nil {
			return 0, false, err
		}
		at := len(data)
		if isAtEnd && at > 0 && data[at-1] == '\n' {
			at-- // This line break ends the last line, and does not start a new one.
		}
		isAtEnd = false
		for {
			if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
				break
			}
			if lines--; lines == 0 {
				return begin + uint64(at) + 1, false, nil
			}
		}
		if begin > low {
			return begin, true, nil
		}
		end = low
	}
	return 0, false, nil
}

// readBetween reads a part of an output. If the beginning of the part is no longer kept, it starts at the first kept
// byte.
func readBetween(from, to uint64, read readFrom) (uint64, []byte, error) {
	begin := from
	var data []byte
	for at := from; at < to; {
		piece, err := read(OutputPlace{Offset: at}, int(to-at))
		if err != nil {
			return 0, nil, err
		}
		if len(piece.Data) == 0 || piece.Offset >= to {
			return to, nil, nil
		}
		if piece.Offset > at {
			begin, data = piece.Offset, nil
		}
		part := piece.Data[:min(uint64(len(piece.Data)), to-piece.Offset)]
		data = append(data, part...)
		at = piece.Offset + uint64(len(part))
	}
	return begin, data, nil
}

// sendPieces sends the requested output. It returns "" after it has sent everything, or otherwise the reason why it
// could not.
func sendPieces(ctx context.Context, send func(*healthv1.ServeLogsRequest) error, request *healthv1.LogRequest, executor Executor) string {
	if executor == nil {
		return "LOG_NOT_FOUND"
	}
	streams := []OutputStream{1, 2}
	if only := request.GetStream(); only == 1 || only == 2 {
		streams = streams[only-1 : only]
	}
	var cursors []*cursor
	for _, stream := range streams {
		begin, err := beginOf(request, stream, func(from OutputPlace, limit int) (OutputPiece, error) {
			return executor.ReadOutput(request.GetExecutionId(), stream, from, limit)
		})
		if err != nil {
			return "LOG_NOT_FOUND"
		}
		cursors = append(cursors, begin)
	}
	for {
		isOver, hasSent := true, false
		for _, at := range cursors {
			if at.isEnd {
				continue
			}
			piece, err := executor.ReadOutput(request.GetExecutionId(), at.stream, at.from, pieceBytes)
			if err != nil {
				return "LOG_NOT_FOUND"
			}
			isCut := at.isCut || piece.Offset > at.from.Offset
			at.from = OutputPlace{Offset: piece.Offset + uint64(len(piece.Data))}
			at.isEnd = piece.IsEnd || (!request.GetFollow() && len(piece.Data) == 0)
			isOver = isOver && at.isEnd
			if len(piece.Data) == 0 {
				continue
			}
			hasSent, at.isCut = true, false
			if send(&healthv1.ServeLogsRequest{Stream: uint32(at.stream), Offset: piece.Offset, Data: piece.Data, Cut: isCut}) != nil {
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
			case <-time.After(scanEvery):
			}
		}
	}
}

// cut truncates text to at most this number of bytes, at a character boundary.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
