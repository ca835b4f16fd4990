import { Server, type ServerOptions, setLogger } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import { systemClock } from "../clock.ts";
import { toGrpcService } from "../grpc-service.ts";
import type { Logger } from "../logging.ts";
import type { MetricsRegistry } from "../metrics.ts";
import type { TlsSource } from "../tls/tls-source.ts";
import { bindGrpc, type GrpcBinding } from "./grpc-binding.ts";
import { grpcHealthRoute, grpcReflectionRoutes } from "./grpc-builtins.ts";
import type { GrpcRoute } from "./grpc-handlers.ts";
import { observeGrpcCalls } from "./grpc-observer.ts";
import { listeningError } from "./listening-error.ts";
import { MESSAGE_LIMIT_BYTES, type RunningServer } from "./server-options.ts";
import { ServingStatus } from "./serving-status.ts";

export interface GrpcServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly routes: readonly GrpcRoute[];
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Whether the runtime writes two lines a stream. Default true; a service that knows more turns it off and writes its own. */
  readonly logCalls?: boolean;
  readonly serving?: ServingStatus;
  /** A connection that was silent for so long is asked whether it lives. Default 30 s. */
  readonly keepaliveTimeMs?: number;
  /** How long the answer may take. Default 10 s. */
  readonly keepaliveTimeoutMs?: number;
  /** How long close() waits for streams under way. Default 5 s. */
  readonly closeGraceMs?: number;
  /** Speak TLS, with the certificate that this source has at the moment. In clear text when absent. */
  readonly tls?: TlsSource;
  readonly clock?: Clock;
}

/**
 * Serve long streams on grpc-js, with reflection and grpc.health.v1. Before close() its user ends its own streams, each with
 * its reason; what is left after the grace period is cut.
 */
export async function createGrpcServer(options: GrpcServerOptions): Promise<RunningServer> {
  const { host, log, routes, clock = systemClock } = options;
  const serving = options.serving ?? new ServingStatus();
  const observer = observeGrpcCalls({
    clock,
    metrics: options.metrics,
    log: (options.logCalls ?? true) ? log : null,
  });
  const server = new Server({ ...channelOptions(options), interceptors: [observer] });
  const names = routes.map(({ service }) => service.typeName);
  const health = grpcHealthRoute(serving);
  const listed = [...routes.map(({ service }) => service), health.service];
  for (const route of [...routes, health, ...grpcReflectionRoutes(listed)]) {
    server.addService(toGrpcService(route.service, route.large), route.handlers);
  }
  logTroubles(log);
  const binding = await bindGrpc(server, options).catch((error: unknown) => {
    throw listeningError(error, host, options.port);
  });
  for (const name of names) serving.set(name, "SERVING");
  return {
    host,
    port: binding.port,
    close: async () => {
      for (const name of names) serving.set(name, "NOT_SERVING");
      await shutDown(server, binding, options.closeGraceMs ?? 5_000);
    },
  };
}

function channelOptions(options: GrpcServerOptions): ServerOptions {
  return {
    "grpc.max_receive_message_length": MESSAGE_LIMIT_BYTES,
    // Off by default, which would leave the streams of machines that lost power open for ever.
    "grpc.keepalive_time_ms": options.keepaliveTimeMs ?? 30_000,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs ?? 10_000,
    "grpc.keepalive_permit_without_calls": 1,
    // Its bookkeeping costs memory for each connection and is read by nobody here.
    "grpc.enable_channelz": 0,
  };
}

/**
 * GOAWAY, no more connections, and after the grace period the cut. drain() does the cutting and must come first: it takes a
 * session that is closing already for one that has ended, and forceShutdown() forgets the sessions of a server without channelz.
 */
async function shutDown(server: Server, binding: GrpcBinding, graceMs: number): Promise<void> {
  binding.drain(graceMs);
  await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
}

/** grpc-js tells its troubles to one place for the whole process: what nobody reads on a console goes to the log. */
function logTroubles(log: Logger): void {
  const write = (level: "debug" | "warn") => (detail: unknown) =>
    log[level]({ detail: String(detail) }, "grpc-js says");
  setLogger({ debug: write("debug"), info: write("debug"), error: write("warn") });
}
