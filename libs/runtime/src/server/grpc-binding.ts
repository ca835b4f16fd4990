import { once } from "node:events";
import net from "node:net";
import type { Duplex } from "node:stream";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import type { MetricsRegistry } from "../metrics.ts";
import type { StrangerLog } from "../stranger-log.ts";
import type { TlsSource } from "../tls/tls-source.ts";
import { TlsAcceptor } from "./tls-acceptor.ts";

export interface BindingOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** In clear text when absent. */
  readonly tls?: TlsSource;
  readonly strangers: StrangerLog;
  readonly metrics: MetricsRegistry;
}

/** A port that a grpc-js server has taken. */
export interface GrpcBinding {
  readonly port: number;
  /** GOAWAY, no more connections, and after `graceMs` the cut. */
  drain(graceMs: number): void;
}

/**
 * A peer from which nothing came for so long is asked by the kernel whether it lives, ten times in ten seconds. Whoever beats is never
 * asked, and no process is woken for it, as it would be by HTTP/2's pings.
 */
const PEER_SILENCE_MS = 30_000;
/** How long the first bytes and the handshake of a connection may take. */
const HANDSHAKE_MS = 10_000;

/**
 * Bind a grpc-js server. We listen ourselves and hand it connections: so that over TLS these ports fare like all others with new
 * certificates, clear text and strangers, none of which grpc-js tells of, and that the kernel asks after peers that fell silent.
 */
export async function bindGrpc(server: Server, options: BindingOptions): Promise<GrpcBinding> {
  const { host, port } = options;
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const inject = (socket: Duplex) => injector.injectConnection(socket);
  const acceptor = options.tls === undefined ? null : acceptTls(options.tls, options, inject);
  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: PEER_SILENCE_MS },
    (socket) => {
      if (acceptor === null) return inject(socket);
      socket.on("error", () => socket.destroy());
      acceptor.accept(socket);
    },
  );
  listener.listen(port, host);
  try {
    await once(listener, "listening");
  } catch (error) {
    acceptor?.close();
    injector.destroy();
    throw error;
  }
  // Accepting may fail for a while, for lack of file descriptors; that must not end the process.
  listener.on("error", () => {});
  const address = listener.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    drain: (graceMs) => {
      listener.close();
      acceptor?.close();
      injector.drain(graceMs);
    },
  };
}

function acceptTls(
  source: TlsSource,
  { strangers, metrics }: BindingOptions,
  inject: (socket: Duplex) => void,
): TlsAcceptor {
  return new TlsAcceptor({
    source,
    strangers,
    metrics,
    limitMs: HANDSHAKE_MS,
    protocols: ["h2"],
    onSecure: (socket) => {
      // Without ALPN it may be anything; all that speak gRPC have it.
      if (socket.alpnProtocol === "h2") inject(socket);
      else socket.destroy();
    },
  });
}
