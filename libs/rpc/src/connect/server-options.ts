import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Authenticator, ReplicaAuthenticator, TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry, Tracer } from "@rollcall/process";
import type { ServingStatus } from "../builtins/serving-status.ts";
import type { ClientAddress } from "../calls/client-address.ts";
import type { HttpHandler, PassOn, RequestDoor } from "../calls/http-handler.ts";
import type { PolicyTable } from "../calls/policy.ts";
import type { LogReader } from "../calls/revisions.ts";
import type { PageTurns } from "../interceptors/limit-pages.ts";
import type { RecordRefusal } from "../interceptors/record-refusals.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import type { FailedAttempts } from "../limits/failed-attempts.ts";
import type { HostRule } from "../limits/host-guard.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import type { HttpPage } from "./serve-http-pages.ts";

/** The largest message that any port of ours takes: 1 MiB. */
export const MESSAGE_LIMIT_BYTES = 1_048_576;

/**
 * The largest message of a method that takes no token: it is decoded before anything is known of its caller. What a
 * node says about itself, 64 KiB as binary protobuf, is the largest of them.
 */
export const OPEN_MESSAGE_LIMIT_BYTES = 262_144;

export interface RpcServerOptions {
  /** An address of this machine; "127.0.0.1" unless the operator says otherwise. */
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /**
   * Whether a worker of node:cluster takes the port for itself. Without it workers share it, 0 included. Default false.
   */
  readonly exclusive?: boolean;
  /** Register the implementations, as for connectNodeAdapter. */
  routes(router: ConnectRouter): void;
  /** What `routes` registers. Each method needs a policy row, and reflection lists them. */
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly authenticate: Authenticator;
  /** Required when the caller of a method is "replica". */
  readonly authenticateReplica?: ReplicaAuthenticator;
  /** Told of mutations that were refused to authenticated callers. Optional. */
  readonly recordRefusal?: RecordRefusal;
  /** Which names a browser may call this server by; any when absent. Others are refused with HOST_NOT_ALLOWED. */
  readonly hosts?: HostRule | undefined;
  /** Lets in who comes with a credential in another form than a bearer token, such as a cookie. None when absent. */
  readonly door?: RequestDoor | undefined;
  /** Takes calls of methods that this server does not have; they are refused with UNKNOWN_METHOD when absent. */
  readonly passOn?: PassOn | undefined;
  /** Limits failed attempts by address; one for all servers of a process. Without it they are not limited. */
  readonly failures?: FailedAttempts;
  /**
   * Limits the calls under way of each caller and address; one for all servers of a process. Without it they are not
   * limited.
   */
  readonly calls?: CallAdmission;
  /**
   * Tells where a call comes from that a proxy passed on. Without it the socket's peer counts, whatever headers say.
   */
  readonly clientAddress?: ClientAddress;
  /**
   * Where lines about callers are written who are not known; one for all servers of a process. Without it each is
   * written to the log.
   */
  readonly strangers?: StrangerLog;
  /** How long a peer may read nothing of an answer before that is given up. Default 30 s. */
  readonly unreadAnswerMs?: number;
  /** How long the request of a call with one answer may take to come. Default 60 s. */
  readonly requestMs?: number;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Traces unary calls; they are not traced when absent or null. */
  readonly tracer?: Tracer | null;
  /** What grpc.health.v1 answers; one for all ports of a process. Its own when absent. */
  readonly serving?: ServingStatus;
  /** What is read by plain HTTP. */
  readonly pages?: readonly HttpPage[];
  /** Answers what is no RPC and no page, but for the authority of `tls`. Without it: 404. */
  readonly fallback?: HttpHandler | undefined;
  /** How long close() waits for calls under way. Default 5 s. */
  readonly closeGraceMs?: number;
  /** How long a new connection may take for its first bytes. Default 10 s. */
  readonly firstByteMs?: number;
  /** What the port is called in the log and in metrics. Default "api". */
  readonly name?: string;
  /**
   * Most connections at a time. At the limit those without a call give way to new ones, the longest idle first. Default
   * 8,192.
   */
  readonly maxConnections?: number;
  /** How connections are looked after, for tests. */
  readonly connectionTimes?: ConnectionTimes;
  /** How many answers with pages are made at a time; the usual limits when absent. */
  readonly pageTurns?: Partial<PageTurns>;
  /** What the process knows of the log. Calls do not wait for a revision, and answers have none, when it is absent. */
  readonly logReader?: LogReader;
  /** How long a call waits for a revision, in milliseconds. Default 5000. */
  readonly readWithinMs?: number;
  /** Speak TLS, with the certificate that this source has at the moment. In clear text when absent. */
  readonly tls?: TlsSource;
  /** Whether clients must show a certificate. Default: as the source says. */
  readonly asksClients?: boolean;
  readonly clock?: Clock;
}

/** How the connections of a port are looked after. */
export interface ConnectionTimes {
  /** How long a connection may have no call under way. Default 90 s; 30 s on the agents' port. */
  readonly idleMs?: number;
  /** How often connections are looked at. Default 250 ms. */
  readonly tickMs?: number;
  /** How long a peer may take to answer a ping. Default 20 s. */
  readonly answerMs?: number;
  /** How often those are asked by ping that have shown who they are. Default 5 min. */
  readonly knownEveryMs?: number;
}

/** A server that listens. */
export interface RunningServer {
  readonly host: string;
  /** The port that was taken. */
  readonly port: number;
  /** End within the grace period: no new calls, streams are told SERVER_SHUTTING_DOWN, what is left is cut. */
  close(): Promise<void>;
}

/** A server whose connections are looked after. */
export interface GuardedServer extends RunningServer {
  /** End connections that have no call, up to twice `most`, since the process has no descriptors left; how many. */
  spare(most: number): number;
}
