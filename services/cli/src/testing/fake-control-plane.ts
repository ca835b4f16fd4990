import { createServer } from "node:http";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  GetClusterHealthResponseSchema,
  HealthQueryService,
  type NodeHealth,
  NodeHealthSchema,
  WatchNodeHealthResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type DeletedNodeSchema,
  type ExplainNodeResponseSchema,
  GetControlPlaneStatusResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { FakeAccess } from "./fake-access.ts";
import { FakeAdmin } from "./fake-admin.ts";
import { FakeAudit } from "./fake-audit.ts";
import { FakeBrake } from "./fake-brake.ts";
import { FakeEvents } from "./fake-events.ts";
import { FakeJoinTokens } from "./fake-join-tokens.ts";
import { FakePolicies } from "./fake-policies.ts";
import { refusal, unauthenticated } from "./fake-refusals.ts";
import { NOW_MS } from "./sample-nodes.ts";

/** The token that the fake takes. */
export const TOKEN = "test-token";

/**
 * A control plane in memory that keeps the promises of the real one as far as a client sees them: tokens, prefixes,
 * pages, refusals. It is served over real HTTP.
 */
export class FakeControlPlane {
  readonly nodes = new Map<string, Node>();
  readonly health = new Map<string, NodeHealth>();
  readonly admin = new FakeAdmin();
  readonly audit = new FakeAudit();
  readonly events = new FakeEvents();
  readonly joinTokens = new FakeJoinTokens();
  readonly policies = new FakePolicies();
  readonly brake = new FakeBrake();
  /** What ListDeletedNodes answers. */
  deleted: readonly MessageInitShape<typeof DeletedNodeSchema>[] = [];
  /** What GetControlPlaneStatus answers. */
  status = create(GetControlPlaneStatusResponseSchema);
  /** What ExplainNode answers besides the node. */
  explanation: MessageInitShape<typeof ExplainNodeResponseSchema> = {};
  /** What GetClusterHealth answers. */
  clusterHealth = create(GetClusterHealthResponseSchema);
  /** What WatchNodeHealth sends, one after the other, before it breaks off. */
  watchAnswers: readonly MessageInitShape<typeof WatchNodeHealthResponseSchema>[] = [];
  /** The tokens that it takes. */
  readonly tokens = new Set([TOKEN]);
  readonly access = new FakeAccess();
  /** Every call, as "ListNodes {...}", in order. */
  readonly calls: string[] = [];
  /** Set to make the readers of health fail. */
  healthAway = false;
  /** Most items of a page of nodes or of their health, whatever is asked for: large ones make pages short. */
  mostOfPage = Number.POSITIVE_INFINITY;
  readonly #server = createServer(connectNodeAdapter({ routes: (router) => this.#routes(router) }));
  #port = 0;

  /** HOST:PORT. */
  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Forget everything. */
  clear(): void {
    this.nodes.clear();
    this.health.clear();
    this.audit.clear();
    this.access.clear();
    this.tokens.clear();
    this.tokens.add(TOKEN);
    this.events.clear();
    this.joinTokens.clear();
    this.policies.clear();
    this.brake.clear();
    this.status = create(GetControlPlaneStatusResponseSchema);
    this.admin.bans = [];
    this.deleted = [];
    this.clusterHealth = create(GetClusterHealthResponseSchema);
    this.watchAnswers = [];
    this.calls.length = 0;
    this.healthAway = false;
    this.mostOfPage = Number.POSITIVE_INFINITY;
  }

  /** Add nodes by their ids. */
  add(...nodes: readonly Node[]): void {
    for (const node of nodes) this.nodes.set(node.id, node);
  }

  /** Let the replica know a node that was heard of so long ago. */
  beat(id: string, silentForMs: number, changes: Partial<NodeHealth> = {}): void {
    const node = this.nodes.get(id);
    const health = create(NodeHealthSchema, {
      nodeId: id,
      ...(node?.health === undefined ? {} : { health: node.health }),
      lastSeenTime: timestampFromMs(NOW_MS - silentForMs),
      silentFor: durationFromMs(silentForMs),
      heartbeatInterval: durationFromMs(15_000),
      unhealthyAfter: durationFromMs(60_000),
      unknownAfter: durationFromMs(300_000),
      replicaId: "health-1",
      sessionEpoch: 3n,
    });
    this.health.set(id, Object.assign(health, changes));
  }

  #routes(router: ConnectRouter): void {
    this.#registry(router);
    this.#healthQuery(router);
    this.admin.route(router, {
      nodes: this.nodes,
      enter: (...call) => this.#enter(...call),
      find: (reference) => this.#find(reference),
    });
    this.joinTokens.route(router, (...call) => this.#enter(...call));
    this.policies.route(router, (...call) => this.#enter(...call));
    this.brake.route(router, (...call) => this.#enter(...call));
    this.access.route(router, (...call) => this.#enter(...call));
    this.audit.route(router, (...call) => this.#enter(...call));
    this.events.route(router, (...call) => this.#enter(...call));
  }

  #registry(router: ConnectRouter): void {
    router.service(RegistryService, {
      getControlPlaneStatus: (_request, context) => {
        this.#enter("GetControlPlaneStatus", "", context);
        return this.status;
      },
      getNode: (request, context) => {
        this.#enter("GetNode", request.node, context);
        return { node: this.#find(request.node) };
      },
      explainNode: (request, context) => {
        this.#enter("ExplainNode", `${request.node} ${request.limit}`, context);
        return { ...this.explanation, node: this.#find(request.node) };
      },
      listNodes: (request, context) => {
        const { $typeName, ...asked } = request;
        this.#enter("ListNodes", JSON.stringify(asked), context);
        const sorted = [...this.nodes.values()]
          .filter(({ membership }) => matches(request.memberships, membership?.state))
          .sort((a, b) => (a.id < b.id ? -1 : 1));
        const start = request.pageToken === "" ? 0 : Number(request.pageToken.slice(1));
        const end = start + Math.min(request.pageSize || 100, this.mostOfPage);
        return {
          nodes: sorted.slice(start, end),
          nextPageToken: end < sorted.length ? `t${end}` : "",
        };
      },
      listDeletedNodes: (request, context) => {
        this.#enter("ListDeletedNodes", request.pageToken, context);
        const start = request.pageToken === "" ? 0 : Number(request.pageToken);
        const end = start + request.pageSize;
        const nextPageToken = end < this.deleted.length ? String(end) : "";
        return { deletedNodes: this.deleted.slice(start, end), nextPageToken };
      },
      getClusterSummary: (_request, context) => {
        this.#enter("GetClusterSummary", "", context);
        return {
          clusterId: "c1",
          orchestrators: { total: 1, connected: 1 },
          compute: { total: 3, connected: 2 },
          states: [
            { membership: 2, health: 1, scheduling: 1, count: 2 },
            { membership: 1, health: 3, scheduling: 1, count: 1 },
          ],
          mayTakeWork: 2,
          total: { cores: 48n, memoryBytes: 206158430208n, diskBytes: 1610612736000n, gpus: 6 },
          available: { cores: 32n, memoryBytes: 137438953472n, diskBytes: 1073741824000n, gpus: 4 },
        };
      },
    });
  }

  #healthQuery(router: ConnectRouter): void {
    router.service(HealthQueryService, {
      getNodeHealth: (request, context) => {
        this.#enter("GetNodeHealth", request.node, context);
        const { id } = this.#find(request.node);
        return { nodeHealth: this.health.get(id) ?? create(NodeHealthSchema, { nodeId: id }) };
      },
      getClusterHealth: (_request, context) => {
        this.#enter("GetClusterHealth", "", context);
        if (this.healthAway) throw new ConnectError("the service is ending", Code.Unavailable);
        return this.clusterHealth;
      },
      watchNodeHealth: async function* (
        this: FakeControlPlane,
        request: { nodeIds: string[] },
        context: HandlerContext,
      ) {
        this.#enter("WatchNodeHealth", request.nodeIds.join(","), context);
        yield* this.watchAnswers.map((answer) => create(WatchNodeHealthResponseSchema, answer));
        throw new ConnectError("the service is ending", Code.Unavailable);
      }.bind(this),
      listNodeHealth: (request, context) => {
        this.#enter("ListNodeHealth", request.nodeIds.join(","), context);
        if (this.healthAway) throw new ConnectError("the service is ending", Code.Unavailable);
        const ids = request.nodeIds.length === 0 ? [...this.health.keys()] : request.nodeIds;
        const start = Number(request.pageToken);
        const end = start + this.mostOfPage;
        const nodes = ids.slice(start, end).flatMap((id) => this.health.get(id) ?? []);
        return { nodes, nextPageToken: end < ids.length ? `${end}` : "" };
      },
    });
  }

  #enter(method: string, detail: string, context: HandlerContext): void {
    this.calls.push(`${method} ${detail}`.trimEnd());
    const given = context.requestHeader.get("authorization");
    if (given === null) throw unauthenticated("the call carries no access token", "TOKEN_MISSING");
    if (!this.tokens.has(given.replace(/^Bearer /, ""))) {
      throw unauthenticated("the access token is unknown", "TOKEN_INVALID");
    }
  }

  #find(reference: string): Node {
    const exact = this.nodes.get(reference);
    if (exact !== undefined) return exact;
    const matching = [...this.nodes.values()].filter(({ id }) => id.startsWith(reference));
    const [only, ...others] = matching;
    if (only === undefined) {
      throw refusal(`node ${reference} not found`, "NODE_NOT_FOUND", Code.NotFound);
    }
    if (others.length > 0) {
      const names = matching
        .slice(0, 3)
        .map(({ id }) => id)
        .join(", ");
      throw refusal(`${reference} is ambiguous: ${names}: use a longer prefix`, "AMBIGUOUS_NODE");
    }
    return only;
  }
}

function matches<T>(wanted: readonly T[], value: T | undefined): boolean {
  return wanted.length === 0 || (value !== undefined && wanted.includes(value));
}
