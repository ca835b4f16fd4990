import { once } from "node:events";
import net from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import type { Logger } from "../logging.ts";
import type { MetricsRegistry } from "../metrics.ts";
import type { TlsSource } from "../tls/tls-source.ts";
import { TlsAcceptor } from "./tls-acceptor.ts";

export interface BindingOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** In clear text when absent. */
  readonly tls?: TlsSource;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/** A port that a grpc-js server has taken. */
export interface GrpcBinding {
  readonly port: number;
  /** GOAWAY, no more connections, and after `graceMs` the cut. */
  drain(graceMs: number): void;
}

/** How long the first bytes and the handshake of a connection may take. */
const HANDSHAKE_MS = 10_000;

/**
 * Bind a grpc-js server. Over TLS we listen ourselves and hand it connections whose handshake is done: so that these ports fare like all
 * others with new certificates, clear text and strangers, none of which grpc-js tells of.
 */
export function bindGrpc(server: Server, options: BindingOptions): Promise<GrpcBinding> {
  return options.tls === undefined
    ? bindPlaintext(server, options)
    : bindTls(server, { ...options, tls: options.tls });
}

async function bindPlaintext(server: Server, { host, port }: BindingOptions): Promise<GrpcBinding> {
  const target = (at: number) => (host.includes(":") ? `[${host}]:${at}` : `${host}:${at}`);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(target(port), ServerCredentials.createInsecure(), (error, taken) => {
      if (error === null) resolve(taken);
      else reject(error);
    });
  });
  return { port: bound, drain: (graceMs) => server.drain(target(bound), graceMs) };
}

async function bindTls(
  server: Server,
  { host, port, tls, log, metrics }: BindingOptions & { readonly tls: TlsSource },
): Promise<GrpcBinding> {
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const acceptor = new TlsAcceptor({
    source: tls,
    log,
    metrics,
    limitMs: HANDSHAKE_MS,
    protocols: ["h2"],
    onSecure: (socket) => {
      // Without ALPN it may be anything; all that speak gRPC have it.
      if (socket.alpnProtocol === "h2") injector.injectConnection(socket);
      else socket.destroy();
    },
  });
  const listener = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    acceptor.accept(socket);
  });
  listener.listen(port, host);
  try {
    await once(listener, "listening");
  } catch (error) {
    acceptor.close();
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
      acceptor.close();
      injector.drain(graceMs);
    },
  };
}
