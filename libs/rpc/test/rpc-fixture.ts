import { create, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, createClient, type ServiceImpl } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { GetNodeResponseSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { Caller } from "@rollcall/identity";
import { createMetrics, type MetricsRegistry } from "@rollcall/process";
import { sendBearer } from "@rollcall/testkit";
import { captureLog, type LogLine } from "@rollcall/testkit/log-capture";
import type { MethodPolicy, PolicyTable } from "../src/calls/policy.ts";
import { createRpcServer } from "../src/connect/rpc-server.ts";
import { AnonymousLog, type NoiseCounts } from "../src/limits/anonymous-log.ts";
import { CallAdmission } from "../src/limits/call-admission.ts";
import type { RpcServerOptions, RunningServer } from "../src/server-options.ts";
import { TestCounts, type TestLimits } from "./test-counts.ts";

const REGISTRY = RegistryService.typeName;

/** Policies similar to those of the real services. Other methods of the API do not affect these tests. */
export const TEST_POLICIES: PolicyTable = {
  ...Object.fromEntries([...RegistryService.methods, ...HealthService.methods].map(rowOf)),
  [`${REGISTRY}/ListNodes`]: { caller: "operator", deadlineMs: 2_000, idempotent: true },
  [`${REGISTRY}/GetClusterSummary`]: { caller: "admin", deadlineMs: 2_000, idempotent: true },
};

function rowOf(method: DescMethod): [string, MethodPolicy] {
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const deadlineMs = method.methodKind === "unary" ? 2_000 : 0;
  return [
    `${method.parent.typeName}/${method.name}`,
    { caller: isRead ? "viewer" : "node", deadlineMs, idempotent: isRead },
  ];
}

const TOKENS: Readonly<Record<string, Caller>> = {
  "viewer-token": { kind: "token", id: "v1", role: "viewer" },
  "operator-token": { kind: "token", id: "o1", role: "operator" },
  "admin-token": { kind: "token", id: "a1", role: "admin" },
};

export type TransportKind = "grpc" | "grpc-web" | "grpc-web-http1" | "connect" | "connect-http1";
export const TRANSPORT_KINDS: readonly TransportKind[] = [
  "grpc",
  "grpc-web",
  "grpc-web-http1",
  "connect",
  "connect-http1",
];

export interface FixtureOptions extends Partial<RpcServerOptions> {
  readonly registry?: Partial<ServiceImpl<typeof RegistryService>>;
  readonly health?: Partial<ServiceImpl<typeof HealthService>>;
  /** Decides which lines about anonymous clients are written; absent to write all. */
  readonly noise?: NoiseCounts;
  /** Limits of calls in progress; absent for none. */
  readonly limits?: TestLimits;
}

/** A real server on a free port, with clients of every kind. The clients are closed with the server. */
export class RpcFixture {
  readonly server: RunningServer;
  readonly lines: readonly LogLine[];
  readonly metrics: MetricsRegistry;
  /** The calls in progress, keyed by the party that they count for. */
  readonly held: ReadonlyMap<string, number>;
  readonly #anonymousClients: AnonymousLog;
  readonly #sessions: Http2SessionManager[] = [];

  private constructor(
    server: RunningServer,
    facts: Pick<RpcFixture, "lines" | "metrics" | "held">,
    anonymousClients: AnonymousLog,
  ) {
    this.server = server;
    this.lines = facts.lines;
    this.metrics = facts.metrics;
    this.held = facts.held;
    this.#anonymousClients = anonymousClients;
  }

  static async start(fixture: FixtureOptions = {}): Promise<RpcFixture> {
    const { registry, health, noise, limits = {}, ...options } = fixture;
    const { log, lines } = captureLog();
    const metrics = createMetrics({ defaults: false });
    const counts = new TestCounts(limits);
    const anonymousClients = new AnonymousLog({ log, metrics, ...(noise ? { counts: noise } : {}) });
    const server = await createRpcServer({
      host: "127.0.0.1",
      port: 0,
      services: [RegistryService, HealthService],
      policies: TEST_POLICIES,
      routes: (router) => {
        router.service(RegistryService, { getNode: echoNode, ...registry });
        router.service(HealthService, { ...health });
      },
      authenticate: async (bearer) => TOKENS[bearer] ?? null,
      log,
      anonymousClients,
      calls: new CallAdmission({ counts, metrics }),
      metrics,
      closeGraceMs: 3_000,
      ...options,
    });
    return new RpcFixture(server, { lines, metrics, held: counts.held }, anonymousClients);
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  registry(kind: TransportKind = "grpc", token = "viewer-token"): Client<typeof RegistryService> {
    return createClient(RegistryService, this.transport(kind, token));
  }

  health(kind: TransportKind = "grpc"): Client<typeof HealthService> {
    return createClient(HealthService, this.transport(kind));
  }

  transport(kind: TransportKind, token?: string) {
    const interceptors = token === undefined ? [] : [sendBearer(token)];
    const base = { baseUrl: this.url, interceptors };
    if (kind === "connect-http1") return createConnectTransport({ ...base, httpVersion: "1.1" });
    // Use HTTP/1.1, as browsers do, because they do not support HTTP/2 in clear text.
    if (kind === "grpc-web-http1") return createGrpcWebTransport({ ...base, httpVersion: "1.1" });
    const sessionManager = new Http2SessionManager(this.url);
    this.#sessions.push(sessionManager);
    if (kind === "grpc") return createGrpcTransport({ ...base, sessionManager });
    if (kind === "grpc-web") {
      return createGrpcWebTransport({ ...base, httpVersion: "2", sessionManager });
    }
    return createConnectTransport({ ...base, httpVersion: "2", sessionManager });
  }

  /** POST JSON over HTTP/1.1, as curl does. */
  async post(method: string, body: string | Uint8Array, headers: Record<string, string> = {}) {
    return await fetch(`${this.url}/${method}`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", connection: "close", ...headers },
    });
  }

  async stop(): Promise<void> {
    for (const session of this.#sessions) session.abort();
    await this.server.close();
    this.#anonymousClients.close();
  }
}

/** Return a node that has the requested id. */
export function echoNode({ node }: { readonly node: string }) {
  const init: MessageInitShape<typeof GetNodeResponseSchema> = { node: { id: node } };
  return create(GetNodeResponseSchema, init);
}

/** Wait for a call to fail, and return its error. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new ConnectError("expected the call to fail", Code.Unknown);
}
