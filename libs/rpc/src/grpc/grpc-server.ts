import type { IncomingHttpHeaders } from "node:http2";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";
import { unknownMethod } from "../answers/answer-unknown-path.ts";
import { ServingStatus } from "../builtins/serving-status.ts";
import type { ClientAddress } from "../calls/client-address.ts";
import { decodeMessage } from "../calls/message-parts.ts";
import { methodName } from "../calls/policy.ts";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import type { ConnectionTimes, GuardedServer } from "../server-options.ts";
import { CallJournal } from "./call-journal.ts";
import type { FrameMethod } from "./frame-call.ts";
import { grpcHealthRoute, grpcReflectionRoutes } from "./grpc-builtins.ts";
import type { GrpcRoute } from "./grpc-handlers.ts";
import { GrpcListener } from "./grpc-listener.ts";

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
  /** Maximum number of anonymous connections per address, see FrameCall.identified(). Default 2,048. */
  readonly maxAnonymousOfAddress?: number;
  /** Timing of the connection checks, for tests. */
  readonly connectionTimes?: ConnectionTimes;
  readonly clock?: Clock;
}

/**
 * Serve gRPC, with reflection and grpc.health.v1. Before you call close(), end your own streams, each with its reason:
 * remaining streams are cut after the grace period.
 */
export async function createGrpcServer(options: GrpcServerOptions): Promise<GuardedServer> {
  const { host, routes, calls, clientAddress, clock = systemClock, closeGraceMs = 5_000 } = options;
  const serving = options.serving ?? new ServingStatus();
  const anonymousClients = options.anonymousClients ?? new AnonymousLog({ log: options.log });
  const own = new Set(routes.flatMap(({ service }) => service.methods.map(methodName)));
  const log = (options.logCalls ?? true) ? anonymousClients : null;
  const journal = new CallJournal({ clock, metrics: options.metrics, log, faults: anonymousClients });
  const admissionOf = (method: string) => (own.has(method) ? undefined : calls);
  const names = routes.map(({ service }) => service.typeName);
  const health = grpcHealthRoute(serving);
  const listed = [...routes.map(({ service }) => service), health.service];
  const shared = { journal, clientAddress, admissionOf };
  const all = [...routes, health, ...grpcReflectionRoutes(listed)];
  const methods = new Map(all.flatMap((route) => methodsOf(route, shared)));
  const unknown = unknownMethods(shared);
  const methodAt = (path: string) => methods.get(path) ?? unknown;
  const listener = await GrpcListener.listen({ ...options, anonymousClients, clock, methodAt });
  for (const name of names) serving.set(name, "SERVING");
  return {
    host,
    port: listener.port,
    spare: (most) => listener.keeper.spare(most),
    close: async () => {
      for (const name of names) serving.set(name, "NOT_SERVING");
      await listener.close(closeGraceMs);
    },
  };
}

/** What all methods share. */
interface Shared extends Pick<FrameMethod<unknown>, "journal" | "clientAddress"> {
  admissionOf(method: string): CallAdmission | undefined;
}

/** The methods of a service, keyed by path. */
function methodsOf(
  { service, handlers, decoders }: GrpcRoute,
  { admissionOf, ...shared }: Shared,
): readonly (readonly [string, FrameMethod<unknown>])[] {
  return service.methods.flatMap((method) => {
    const handler = handlers[method.localName];
    if (handler === undefined) return [];
    const decode = decoders[method.localName] ?? ((bytes: Buffer) => decodeMessage(method.input, bytes));
    const name = methodName(method);
    const isStream = method.methodKind !== "unary";
    return [[`/${name}`, { ...shared, name, isStream, admission: admissionOf(name), handler, decode }] as const];
  });
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
