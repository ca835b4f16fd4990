import type { HeartbeatRequest, HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { OutputCall } from "../work/send-output.ts";

/** Opens heartbeat streams, each on a connection of its own. */
export interface HeartbeatTransport {
  /** Begin to connect. The listener is never called before this returns. */
  open(endpoint: string, listener: StreamListener): HeartbeatStream;
}

/** Hears what comes in on a stream. */
export interface StreamListener {
  onFrame(response: HeartbeatResponse): void;
  /** Called once, at the end, however it came; with the error unless the server ended the stream in good order. */
  onEnd(error: unknown): void;
}

/** This side of a stream. Calls after its end do nothing. */
export interface HeartbeatStream {
  /**
   * What the server showed in the handshake that was verified, each certificate in DER, its own first; empty in clear
   * text, and before.
   */
  readonly peerChain: readonly Uint8Array[];
  send(request: HeartbeatRequest): void;
  /** No frame follows; the server ends the stream when it has read all. */
  finish(): void;
  /** Open a call that brings output, on the same connection. It ends with the stream at the latest. */
  openOutput(): OutputCall;
  /** Leave at once, and release the connection. */
  cancel(): void;
}
