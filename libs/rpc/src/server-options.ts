import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Authenticator, ReplicaAuthenticator, TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry, Tracer } from "@rollcall/process";
import type { ServingStatus } from "./builtins/serving-status.ts";
import type { ClientAddress } from "./calls/client-address.ts";
import type { HttpHandler, PassOn, RequestCheck } from "./calls/http-handler.ts";
import type { PolicyTable } from "./calls/policy.ts";
import type { LogReader } from "./calls/revisions.ts";
import type { HttpPage } from "./connect/serve-http-pages.ts";
import type { PageLimits } from "./interceptors/limit-pages.ts";
import type { RecordRefusal } from "./interceptors/record-refusals.ts";
import type { AnonymousLog } from "./limits/anonymous-log.ts";
import type { CallAdmission } from "./limits/call-admission.ts";
import type { FailedAttempts } from "./limits/failed-attempts.ts";
import type { HostRule } from "./limits/host-guard.ts";

/** The maximum message size on any port, in bytes: 1 MiB. */
export const MESSAGE_LIMIT_BYTES = 1_048_576;

/**
 * The maximum message size of a method that requires no token, in bytes. It is lower, because these messages are
 * decoded before the caller is identified. The largest valid message is what a node reports about itself, 64 KiB as
 * binary protobuf.
 */
export const OPEN_MESSAGE_LIMIT_BYTES = 262_144;

export interface RpcServerOptions {
  /** An address of this machine. Default "127.0.0.1". */
  readonly host: string;
  /** The port to listen on; 0 picks a free one. */
  readonly port: number;
  /** Whether this worker of node:cluster has the port to itself. By default, workers share the port, even port 0. */
  readonly exclusive?: boolean;
  /** Register the implementations, as with connectNodeAdapter. */
  routes(router: ConnectRouter): void;
  /** The services that `routes` registers. Each of their methods needs a policy row. Reflection lists them. */
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly authenticate: Authenticator;
  /** Authenticates other processes. Required if a method's caller is "replica". */
  readonly authenticateReplica?: ReplicaAuthenticator;
  /** Called when an authenticated caller is refused a mutation. */
  readonly recordRefusal?: RecordRefusal;
  /**
   * The host names under which a browser can reach this server; any if absent. Other names are refused with
   * HOST_NOT_ALLOWED.
   */
  readonly hosts?: HostRule | undefined;
  /**
   * The origin check for requests with a credential other than a bearer token, such as a cookie; absent for no check.
   */
  readonly door?: RequestCheck | undefined;
  /**
   * Handles calls of methods that this server does not have. If absent, these calls are refused with UNKNOWN_METHOD.
   */
  readonly passOn?: PassOn | undefined;
  /** Limits failed attempts per address; absent for no limit. All servers of a process share it. */
  readonly failures?: FailedAttempts;
  /** Limits calls in progress per caller and address; absent for no limits. All servers of a process share it. */
  readonly calls?: CallAdmission;
  /**
   * Finds the address of a call that a proxy forwarded. If absent, the address is that of the socket's peer, whatever
   * the headers contain.
   */
  readonly clientAddress?: ClientAddress;
  /**
   * Logs lines about anonymous clients, up to a limit. All servers of a process share it. If absent, every line is
   * written.
   */
  readonly anonymousClients?: AnonymousLog;
  /** How long a peer can read nothing of a response before the response is aborted. Default 30 s. */
  readonly unreadAnswerMs?: number;
  /** How long the request of a call with one response can take to arrive. Default 60 s. */
  readonly requestMs?: number;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Traces unary calls; absent or null for no traces. */
  readonly tracer?: Tracer | null;
  /** The statuses for grpc.health.v1, which all ports of a process share. If absent, the server creates its own. */
  readonly serving?: ServingStatus;
  /** Pages to serve over plain HTTP. */
  readonly pages?: readonly HttpPage[];
  /**
   * Answers requests that are neither RPCs, nor for pages, nor for the certificate authority of `tls`. If absent,
   * these requests get a 404.
   */
  readonly fallback?: HttpHandler | undefined;
  /** How long close() waits for calls in progress. Default 5 s. */
  readonly closeGraceMs?: number;
  /** How long a new connection can take to send its first bytes. Default 10 s. */
  readonly firstByteMs?: number;
  /** The port's name in the log and in metrics. Default "api". */
  readonly name?: string;
  /**
   * Maximum number of connections. At the limit, connections without a call are closed for new ones, the longest idle
   * first. Default 8,192.
   */
  readonly maxConnections?: number;
  /** Timing of the connection checks, for tests. */
  readonly connectionTimes?: ConnectionTimes;
  /** How many responses with pages can be created at a time; absent for the usual limits. */
  readonly pageTurns?: Partial<PageLimits>;
  /**
   * Reports how far this process has read the log. If absent, calls do not wait for a revision, and responses do not
   * contain one.
   */
  readonly logReader?: LogReader;
  /** How long a call waits for a revision, in milliseconds. Default 5000. */
  readonly readWithinMs?: number;
  /** The certificates to serve TLS with; clear text if absent. */
  readonly tls?: TlsSource;
  /** Whether clients must present a certificate. By default, the TLS source decides. */
  readonly asksClients?: boolean;
  readonly clock?: Clock;
}

/** How a port checks its connections. */
export interface ConnectionTimes {
  /** How long a connection can be without a call in progress. Default 90 s; 30 s on the agents' port. */
  readonly idleMs?: number;
  /** How often connections are checked. Default 250 ms. */
  readonly tickMs?: number;
  /** How long a peer can take to answer a ping. Default 20 s. */
  readonly answerMs?: number;
  /** How often connections of identified callers are pinged. Default 5 min. */
  readonly knownEveryMs?: number;
}

/** A server that listens on a port. */
export interface RunningServer {
  readonly host: string;
  /** The port that the server listens on. */
  readonly port: number;
  /**
   * Shut down within the grace period: accept no new calls, end streams with SERVER_SHUTTING_DOWN, and cut remaining
   * calls.
   */
  close(): Promise<void>;
}

/** A server that checks its connections. */
export interface GuardedServer extends RunningServer {
  /**
   * Close connections without a call, because the process has run out of file descriptors. Closes at most twice
   * `most`, and returns how many.
   */
  spare(most: number): number;
}
