import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

/** One connection to another process of the control plane, shared by all calls to it. */
export interface PeerConnection {
  client<S extends DescService>(service: S): Client<S>;
  /** End the connection, and every call on it. */
  close(): void;
}

export interface PeerOptions {
  /** HOST:PORT. */
  readonly address: string;
  readonly interceptors: readonly Interceptor[];
  /** The longest a unary call may take unless it says otherwise. */
  readonly timeoutMs: number;
}

/** An idle connection is not worth keeping: a new one takes a round trip. */
const IDLE_MS = 5 * 60_000;
/** A connection without an answer for so long is taken for dead while calls are under way. */
const PING_EVERY_MS = 10_000;
const PING_TIMEOUT_MS = 3_000;

/** Prepare to reach another process. It connects with the first call, and anew with the next one when the connection has broken. */
export function connectPeer({ address, interceptors, timeoutMs }: PeerOptions): PeerConnection {
  const baseUrl = `http://${address}`;
  const sessions = new Http2SessionManager(baseUrl, {
    idleConnectionTimeoutMs: IDLE_MS,
    pingIntervalMs: PING_EVERY_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager: sessions,
    interceptors: [...interceptors],
    defaultTimeoutMs: timeoutMs,
    acceptCompression: [],
  });
  return {
    client: (service) => createClient(service, transport),
    close: () => sessions.abort(),
  };
}
