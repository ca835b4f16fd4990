import { isIP } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { ClientTls } from "@rollcall/identity";
import { activeSpan } from "@rollcall/process";

/** A connection to another process of the control plane. All calls to that process share it. */
export interface PeerConnection {
  client<S extends DescService>(service: S): Client<S>;
  /** Close the connection and end every call on it. */
  close(): void;
}

/** How peers are authenticated over TLS. */
export interface PeerTls {
  /** Read the TLS options. Called for each connection. */
  read(): ClientTls;
  /**
   * The names in this process's own certificate. A peer's certificate can be for any of these names, because
   * processes of a cluster can share a certificate.
   */
  ownNames(): readonly string[];
}

export interface PeerOptions {
  /** How to authenticate over TLS; absent or null for clear text. */
  readonly tls?: PeerTls | null;
  /** The address of the process, as HOST:PORT. */
  readonly address: string;
  readonly interceptors: readonly Interceptor[];
  /** The default timeout of a unary call. */
  readonly timeoutMs: number;
}

/** How long an idle connection stays open, in milliseconds. A new connection costs only a round trip. */
const IDLE_MS = 5 * 60_000;
/**
 * How often to ping the peer while calls are in progress, in milliseconds. A connection without a response is
 * considered dead.
 */
const PING_EVERY_MS = 10_000;
const PING_TIMEOUT_MS = 3_000;

/**
 * Prepare a connection to another process. It connects with the first call, and again with the next call after it
 * breaks.
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

/** Send the trace id, so that a peer's work for a traced call is part of the trace. */
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

/** The default port of https, which a URL omits. */
const HTTPS_PORT = 443;
