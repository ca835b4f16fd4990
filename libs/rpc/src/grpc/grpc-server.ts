import type { IncomingHttpHeaders } from "node:http2";
import { Server, type ServerOptions, type ServiceDefinition, setLogger } from "@grpc/grpc-js";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";
import { unknownMethod } from "../answers/answer-unknown-path.ts";
import { ServingStatus } from "../builtins/serving-status.ts";
import type { ClientAddress } from "../calls/client-address.ts";
import { methodName } from "../calls/policy.ts";
import { ANONYMOUS_STREAMS } from "../connections/connection.ts";
import { listeningError } from "../connections/listening-error.ts";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import { type ConnectionTimes, type GuardedServer, MESSAGE_LIMIT_BYTES } from "../server-options.ts";
import { CallJournal } from "./call-journal.ts";
import type { FrameMethod } from "./frame-call.ts";
import { bindGrpc, type GrpcBinding } from "./grpc-binding.ts";
import { grpcHealthRoute, grpcReflectionRoutes } from "./grpc-builtins.ts";
import type { GrpcRoute } from "./grpc-handlers.ts";
import { observeGrpcCalls, Undecodable } from "./grpc-observer.ts";
import { type GrpcService, toGrpcMethod, toGrpcService } from "./grpc-service.ts";

export interface GrpcServerOptions {
  readonly host: string;
  /** The port to listen on; 0 picks a free one. */
  readonly port: number;
  readonly routes: readonly GrpcRoute[];
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Whether to log two lines per stream. Default true. A service that logs its own lines turns this off. */
  readonly logCalls?: boolean;
  /**
   * Logs lines about callers, who are all anonymous here, up to a limit. All servers of a process share it. If absent,
   * every line is written.
   */
  readonly anonymousClients?: AnonymousLog;
  /**
   * Limits the calls of health checks and reflection per address; absent for no limit. Each service limits its own
   * calls.
   */
  readonly calls?: CallAdmission;
  /** See RpcServerOptions. */
  readonly clientAddress?: ClientAddress;
  readonly serving?: ServingStatus;
  /** How long close() waits for open streams. Default 5 s. */
  readonly closeGraceMs?: number;
  /** The certificates to serve TLS with; clear text if absent. */
  readonly tls?: TlsSource;
  /** The port's name in the log and in metrics. Default "agents". */
  readonly name?: string;
  /**
   * Maximum number of connections. At the limit, anonymous connections without a call are closed for new ones, the
   * longest idle first. Default 65,536.
   */
  readonly maxConnections?: number;
  /** Maximum number of anonymous connections per address, see GrpcServer.known. Default 2,048. */
  readonly maxAnonymousOfAddress?: number;
  /** Timing of the connection checks, for tests. */
  readonly connectionTimes?: ConnectionTimes;
  readonly clock?: Clock;
}

/** A server of long streams. */
export interface GrpcServer extends GuardedServer {
  /**
   * Report that a caller was identified. While the caller has a call, its connection does not count as anonymous, and
   * is not closed to make room.
   *
   * @param peer the result of getPeer() of the caller's call.
   */
  known(peer: string): void;
  /**
   * Report bytes that a service has requested from a caller and received as messages, so that they do not count as a
   * flood.
   *
   * @param peer the result of getPeer() of the caller's open call.
   */
  explain(peer: string, bytes: number): void;
}

/**
 * Serve long streams on grpc-js, with reflection and grpc.health.v1. Before you call close(), end your own streams,
 * each with its reason: remaining streams are cut after the grace period.
 */
export async function createGrpcServer(options: GrpcServerOptions): Promise<GrpcServer> {
  const { host, routes, calls, clientAddress, clock = systemClock } = options;
  const serving = options.serving ?? new ServingStatus();
  const anonymousClients = options.anonymousClients ?? new AnonymousLog({ log: options.log });
  const own = new Set(routes.flatMap(({ service }) => service.methods.map(methodName)));
  const log = (options.logCalls ?? true) ? anonymousClients : null;
  const journal = new CallJournal({ clock, metrics: options.metrics, log, faults: anonymousClients });
  const admissionOf = (method: string) => (own.has(method) ? undefined : calls);
  const observer = observeGrpcCalls({ journal, clientAddress });
  const server = new Server({ ...CHANNEL_OPTIONS, interceptors: [observer] });
  const names = routes.map(({ service }) => service.typeName);
  const health = grpcHealthRoute(serving);
  const listed = [...routes.map(({ service }) => service), health.service];
  const all = [...routes, health, ...grpcReflectionRoutes(listed)];
  for (const { service, decoders, handlers } of all) {
    if (Object.keys(handlers).length > 0) server.addService(withReasons(toGrpcService(service, decoders)), handlers);
  }
  logTroubles(options.log);
  const shared = { journal, clientAddress, admissionOf };
  const streams = new Set(all.flatMap(pathsOf));
  const unknown = unknownMethods(shared);
  const frames = new Map(all.flatMap((route) => framesOf(route, shared)));
  const binding = await bindGrpc(server, {
    ...options,
    anonymousClients,
    clock,
    methodAt: (path) => frames.get(path) ?? (streams.has(path) ? null : unknown),
  }).catch((error: unknown) => {
    throw listeningError(error, host, options.port);
  });
  for (const name of names) serving.set(name, "SERVING");
  return {
    host,
    port: binding.port,
    known: (peer) => binding.keeper.known(peer),
    explain: (peer, bytes) => binding.explain(peer, bytes),
    spare: (most) => binding.keeper.spare(most),
    close: async () => {
      for (const name of names) serving.set(name, "NOT_SERVING");
      await shutDown(server, binding, options.closeGraceMs ?? 5_000);
    },
  };
}

/** Return the same service with decoders whose errors reach the caller, by way of the observer. */
function withReasons(service: GrpcService): ServiceDefinition {
  return Object.fromEntries(
    Object.entries(service).map(([name, method]) => {
      const requestDeserialize = (bytes: Buffer): unknown => {
        try {
          return method.requestDeserialize(bytes);
        } catch (error) {
          return new Undecodable(error);
        }
      };
      return [name, { ...method, requestDeserialize }];
    }),
  );
}

/** What all methods share. */
interface Shared extends Pick<FrameMethod<unknown>, "journal" | "clientAddress"> {
  admissionOf(method: string): CallAdmission | undefined;
}

/** The methods of a service whose calls bypass grpc-js, keyed by path. */
function framesOf(
  { service, frames, decoders }: GrpcRoute,
  { admissionOf, ...shared }: Shared,
): readonly (readonly [string, FrameMethod<unknown>])[] {
  return service.methods.flatMap((method) => {
    const handler = frames[method.localName];
    if (handler === undefined) return [];
    const { path, requestDeserialize: decode } = toGrpcMethod(method, decoders[method.localName]);
    const name = methodName(method);
    const isStream = method.methodKind !== "unary";
    return [[path, { ...shared, name, isStream, admission: admissionOf(name), handler, decode }] as const];
  });
}

/** The paths of the methods that grpc-js serves. */
function pathsOf({ service, handlers }: GrpcRoute): readonly string[] {
  return service.methods.flatMap((method) => (method.localName in handlers ? [toGrpcMethod(method).path] : []));
}

/**
 * Stands for all methods that are not served here. They share one name in the log and in metrics, because callers
 * choose their names.
 */
function unknownMethods({ admissionOf, ...shared }: Shared): FrameMethod<unknown> {
  const open = (_: unknown, headers: IncomingHttpHeaders): never => {
    throw unknownMethod(headers[":path"] ?? "");
  };
  const name = "unknown";
  return { ...shared, name, isStream: true, admission: admissionOf(name), handler: { open }, decode: () => null };
}

const CHANNEL_OPTIONS: ServerOptions = {
  "grpc.max_receive_message_length": MESSAGE_LIMIT_BYTES,
  // Maximum number of streams on a connection, as for anonymous clients of the API. A proxy that carries the streams of
  // more agents opens another connection.
  "grpc.max_concurrent_streams": ANONYMOUS_STREAMS,
  // Turn off channelz: its bookkeeping costs memory for each connection, and nothing here reads it.
  "grpc.enable_channelz": 0,
};

/**
 * Refuse new connections, send GOAWAY, and cut remaining calls after the grace period. drain() does the last of these
 * steps, but must be called first, because it treats a session that is already closing as ended. Do not use
 * forceShutdown(), which would ignore the sessions of a server without channelz.
 */
async function shutDown(server: Server, binding: GrpcBinding, graceMs: number): Promise<void> {
  binding.drain(graceMs);
  await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  binding.keeper.close();
}

/**
 * Write the problems of grpc-js to the log instead of the console. All servers of a process share the logger of
 * grpc-js.
 */
function logTroubles(log: Logger): void {
  const write = (level: "debug" | "warn") => (detail: unknown) =>
    log[level]({ detail: String(detail) }, "grpc-js reported a problem");
  setLogger({ debug: write("debug"), info: write("debug"), error: write("warn") });
}
