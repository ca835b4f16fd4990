import { isIP } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { ClientTls } from "@rollcall/identity";
import { activeSpan } from "@rollcall/process";

/** One connection to another process of the control plane, shared by all calls to it. */
export interface PeerConnection {
  client<S extends DescService>(service: S): Client<S>;
  /** End the connection, and every call on it. */
  close(): void;
}

/** How peers are recognised over TLS. */
export interface PeerTls {
  /** Read what a connection needs, again for each. */
  read(): ClientTls;
  /**
   * For what the own certificate is: a peer may show one for any of it, since processes of one cluster may share one.
   */
  ownNames(): readonly string[];
}

export interface PeerOptions {
  /** Speak TLS. In clear text when absent or null. */
  readonly tls?: PeerTls | null;
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

/**
 * Prepare to reach another process. It connects with the first call, and again with the next one when the connection
 * has broken.
 */
export function connectPeer(options: PeerOptions): PeerConnection {
  const { address, interceptors, timeoutMs } = options;
  const peers = options.tls ?? null;
  const baseUrl = `${peers === null ? "http" : "https"}://${address}`;
  const pings = {
    idleConnectionTimeoutMs: IDLE_MS,
    pingIntervalMs: PING_EVERY_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  };
  const sessions =
    peers === null
      ? new Http2SessionManager(baseUrl, pings)
      : new Http2SessionManager(baseUrl, pings, {
          createConnection: (to) => connectSecurely(to, peers),
        });
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager: sessions,
    interceptors: [...interceptors, nameParent],
    defaultTimeoutMs: timeoutMs,
    acceptCompression: [],
  });
  return {
    client: (service) => createClient(service, transport),
    close: () => sessions.abort(),
  };
}

/** What a peer does for a call that is traced is a part of its trace. */
const nameParent: Interceptor = (next) => (request) => {
  const span = activeSpan();
  if (span !== undefined) request.header.set("traceparent", span.traceparent);
  return next(request);
};

function connectSecurely({ hostname, port }: URL, peers: PeerTls): TLSSocket {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return tls.connect({
    ...peers.read(),
    host,
    port: Number(port || HTTPS_PORT),
    ALPNProtocols: ["h2"],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    checkServerIdentity: (name, certificate) => {
      const problem = tls.checkServerIdentity(name || host, certificate);
      const isOurs = peers.ownNames().some((own) => tls.checkServerIdentity(own, certificate) === undefined);
      return isOurs ? undefined : problem;
    },
  });
}

/** Left out of an address as the default of its scheme. */
const HTTPS_PORT = 443;
