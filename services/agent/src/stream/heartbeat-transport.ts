import type { HeartbeatRequest, HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { OutputCall } from "../work/send-output.ts";

/** Opens heartbeat streams, each on a separate connection. */
export interface HeartbeatTransport {
  /** Start connecting. The listener is never called before this returns. */
  open(endpoint: string, listener: StreamListener): HeartbeatStream;
}

/** Receives the frames and the end of a stream. */
export interface StreamListener {
  onFrame(response: HeartbeatResponse): void;
  /** Called once, when the stream ends for any reason. `error` is undefined if the server ended it normally. */
  onEnd(error: unknown): void;
}

/** The agent's side of a stream. Calls after the end of the stream have no effect. */
export interface HeartbeatStream {
  /**
   * The certificates that the server presented in the verified handshake, each in DER, the server's own first. Empty
   * in clear text, and before the handshake.
   */
  readonly peerChain: readonly Uint8Array[];
  send(request: HeartbeatRequest): void;
  /** Stop sending frames. The server ends the stream when it has read all. */
  finish(): void;
  /** Open a call for sending output, on the same connection. The end of the stream also ends the call. */
  openOutput(): OutputCall;
  /** Close immediately, and release the connection. */
  cancel(): void;
}
