import { Server, type ServerDuplexStream, type ServerOptions, type ServiceDefinition, setLogger } from "@grpc/grpc-js";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";
import { ServingStatus } from "../builtins/serving-status.ts";
import type { ClientAddress } from "../calls/client-address.ts";
import { methodName } from "../calls/policy.ts";
import { unknownMethod } from "../connect/answer-unknown-path.ts";
import { type ConnectionTimes, type GuardedServer, MESSAGE_LIMIT_BYTES } from "../connect/server-options.ts";
import { STRANGERS_STREAMS } from "../connections/connection.ts";
import { listeningError } from "../connections/listening-error.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import { StrangerLog } from "../limits/stranger-log.ts";
import { CallJournal } from "./call-journal.ts";
import type { FrameMethod } from "./frame-call.ts";
import { bindGrpc, type GrpcBinding } from "./grpc-binding.ts";
import { grpcHealthRoute, grpcReflectionRoutes } from "./grpc-builtins.ts";
import { toGrpcStatus } from "./grpc-error.ts";
import type { GrpcRoute } from "./grpc-handlers.ts";
import { observeGrpcCalls, Undecodable } from "./grpc-observer.ts";
import { type GrpcService, toGrpcMethod, toGrpcService } from "./grpc-service.ts";

export interface GrpcServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly routes: readonly GrpcRoute[];
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /**
   * Whether the runtime writes two lines a stream. Default true; a service that knows more turns it off and writes its
   * own.
   */
  readonly logCalls?: boolean;
  /**
   * Where lines about callers are written, none of whom is known here; one for all servers of a process. Default: each
   * to the log.
   */
  readonly strangers?: StrangerLog;
  /**
   * Limits the calls of health checks and reflection by address; its own services' calls are the service's to limit.
   * Not limited when absent.
   */
  readonly calls?: CallAdmission;
  /** See RpcServerOptions. */
  readonly clientAddress?: ClientAddress;
  readonly serving?: ServingStatus;
  /** How long close() waits for streams under way. Default 5 s. */
  readonly closeGraceMs?: number;
  /** Speak TLS, with the certificate that this source has at the moment. In clear text when absent. */
  readonly tls?: TlsSource;
  /** What the port is called in the log and in metrics. Default "agents". */
  readonly name?: string;
  /**
   * Most connections at a time. At the limit strangers without a call give way to new ones, the longest idle first.
   * Default 65,536.
   */
  readonly maxConnections?: number;
  /** Most connections of one address that have not shown who they are, see GrpcServer.known. Default 2,048. */
  readonly maxStrangersOfAddress?: number;
  /** How connections are looked after, for tests. */
  readonly connectionTimes?: ConnectionTimes;
  readonly clock?: Clock;
}

/** A server of long streams. */
export interface GrpcServer extends GuardedServer {
  /**
   * Tell that the caller at an address, as getPeer() of its call names it, has shown who it is: its connection counts
   * no longer as a stranger's, and is not ended to make room, while it has a call.
   */
  known(peer: string): void;
  /**
   * Report bytes that a service asked a caller for and has taken as messages: they are no flood, however many there
   * are. @param peer the caller, as getPeer() of its open call names it.
   */
  explain(peer: string, bytes: number): void;
}

/** As grpc-js keeps a method. */
interface Handler {
  readonly type: "bidi";
  /** Names the call in the log and in metrics: one name for all, since callers choose the real ones. */
  readonly path: string;
  readonly func: (call: ServerDuplexStream<unknown, unknown>) => void;
  readonly serialize: (value: unknown) => Buffer;
  readonly deserialize: (bytes: Buffer) => unknown;
}

const PATH = "/unknown";
const NOTHING = Buffer.alloc(0);

/**
 * Serve long streams on grpc-js, with reflection and grpc.health.v1. Before close() its user ends its own streams, each
 * with its reason; what is left after the grace period is cut.
 */
export async function createGrpcServer(options: GrpcServerOptions): Promise<GrpcServer> {
  const { host, routes, calls, clientAddress, clock = systemClock } = options;
  const serving = options.serving ?? new ServingStatus();
  const strangers = options.strangers ?? new StrangerLog({ log: options.log });
  const own = new Set(routes.flatMap(({ service }) => service.methods.map(methodName)));
  const log = (options.logCalls ?? true) ? strangers : null;
  const journal = new CallJournal({ clock, metrics: options.metrics, log, faults: strangers });
  const admissionOf = (method: string) => (own.has(method) ? undefined : calls);
  const observer = observeGrpcCalls({ journal, clientAddress, admissionOf });
  const server = new Server({ ...CHANNEL_OPTIONS, interceptors: [observer] });
  const names = routes.map(({ service }) => service.typeName);
  const health = grpcHealthRoute(serving);
  const listed = [...routes.map(({ service }) => service), health.service];
  for (const route of [...routes, health, ...grpcReflectionRoutes(listed)]) {
    server.addService(withReasons(toGrpcService(route.service, route.decoders)), route.handlers);
  }
  answerUnknownMethods(server);
  logTroubles(options.log);
  const frames = new Map(routes.flatMap((route) => framesOf(route, { journal, clientAddress })));
  const binding = await bindGrpc(server, { ...options, strangers, clock, frames }).catch((error: unknown) => {
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

/** The same service; what its decoders throw reaches the caller, by way of the observer. */
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

/** The methods of a service whose calls are not left to grpc-js, by their paths. */
function framesOf(
  { service, frames, decoders }: GrpcRoute,
  shared: Pick<FrameMethod<unknown>, "journal" | "clientAddress">,
): readonly (readonly [string, FrameMethod<unknown>])[] {
  return service.methods.flatMap((method) => {
    const handler = frames[method.localName];
    if (handler === undefined) return [];
    const { path, requestDeserialize: decode } = toGrpcMethod(method, decoders[method.localName]);
    return [[path, { ...shared, name: methodName(method), handler, decode }] as const];
  });
}

const CHANNEL_OPTIONS: ServerOptions = {
  "grpc.max_receive_message_length": MESSAGE_LIMIT_BYTES,
  // As the API has it for strangers. A proxy that holds the streams of more agents opens another connection.
  "grpc.max_concurrent_streams": STRANGERS_STREAMS,
  // Its bookkeeping costs memory for each connection and is not read here.
  "grpc.enable_channelz": 0,
};

/**
 * Send GOAWAY, refuse connections, and cut what is left after the grace period. drain() does the cutting and must come
 * first: it takes a session that is closing already for one that has ended, and forceShutdown() forgets the sessions of
 * a server without channelz.
 */
async function shutDown(server: Server, binding: GrpcBinding, graceMs: number): Promise<void> {
  binding.drain(graceMs);
  await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  binding.keeper.close();
}

/** grpc-js tells its troubles to one place for the whole process: it goes to the log instead of the console. */
function logTroubles(log: Logger): void {
  const write = (level: "debug" | "warn") => (detail: unknown) =>
    log[level]({ detail: String(detail) }, "grpc-js says");
  setLogger({ debug: write("debug"), info: write("debug"), error: write("warn") });
}

/**
 * Answer calls of methods that a grpc-js server does not have with UNKNOWN_METHOD. By itself it answers without
 * details, and lets no interceptor see the call; it has no handler for all other methods, so its table of handlers is
 * made to have one.
 */
function answerUnknownMethods(server: Server): void {
  const { handlers } = server as unknown as { readonly handlers: Map<string, unknown> };
  const known = handlers.get.bind(handlers);
  handlers.get = (path) => known(path) ?? unknownHandler(path);
}

function unknownHandler(path: string): Handler {
  return {
    type: "bidi",
    path: PATH,
    func: (call) => call.emit("error", toGrpcStatus(unknownMethod(path))),
    serialize: () => NOTHING,
    deserialize: () => null,
  };
}
