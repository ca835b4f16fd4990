import { createServer } from "node:http";
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import {
  HealthQueryService,
  type NodeHealth,
  NodeHealthSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  MembershipState,
  type Node,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  GetControlPlaneStatusResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { FakeEvents } from "./fake-events.ts";
import { NOW_MS } from "./sample-nodes.ts";

/** The token that the fake takes. */
export const TOKEN = "test-token";

/**
 * A control plane in memory that keeps the promises of the real one as far as a client sees them: tokens, prefixes, pages, refusals.
 * It is served over real HTTP.
 */
export class FakeControlPlane {
  readonly nodes = new Map<string, Node>();
  readonly health = new Map<string, NodeHealth>();
  readonly events = new FakeEvents();
  /** What GetControlPlaneStatus answers. */
  status = create(GetControlPlaneStatusResponseSchema);
  /** Every call, as "ListNodes {...}", in order. */
  readonly calls: string[] = [];
  /** Set to make the readers of health fail. */
  healthAway = false;
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
    this.events.clear();
    this.status = create(GetControlPlaneStatusResponseSchema);
    this.calls.length = 0;
    this.healthAway = false;
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
    this.#admin(router);
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
      listNodes: (request, context) => {
        const { $typeName, ...asked } = request;
        this.#enter("ListNodes", JSON.stringify(asked), context);
        const sorted = [...this.nodes.values()]
          .filter(({ membership }) => matches(request.memberships, membership?.state))
          .sort((a, b) => (a.id < b.id ? -1 : 1));
        const start = request.pageToken === "" ? 0 : Number(request.pageToken.slice(1));
        const end = start + (request.pageSize || 100);
        return {
          nodes: sorted.slice(start, end),
          nextPageToken: end < sorted.length ? `t${end}` : "",
        };
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
      listNodeHealth: (request, context) => {
        this.#enter("ListNodeHealth", request.nodeIds.join(","), context);
        if (this.healthAway) throw new ConnectError("the service is ending", Code.Unavailable);
        const ids = request.nodeIds.length === 0 ? [...this.health.keys()] : request.nodeIds;
        return { nodes: ids.flatMap((id) => this.health.get(id) ?? []) };
      },
    });
  }

  #admin(router: ConnectRouter): void {
    const change =
      (name: string, apply: (node: Node) => void) =>
      (request: { node: string; reason: string; requestId: string }, context: HandlerContext) => {
        this.#enter(
          name,
          `${request.node} ${request.reason} ${request.requestId}`.trimEnd(),
          context,
        );
        const node = this.#find(request.node);
        apply(node);
        return { node };
      };
    router.service(AdminService, {
      approveNode: change("ApproveNode", (node) => {
        if (node.membership?.state === MembershipState.APPROVED) {
          throw refusal(`node ${node.id} already approved`, "NODE_ALREADY_APPROVED");
        }
        if (node.membership) node.membership.state = MembershipState.APPROVED;
      }),
      rejectNode: change("RejectNode", (node) => {
        if (node.membership) node.membership.state = MembershipState.REJECTED;
      }),
      deleteNode: change("DeleteNode", (node) => this.nodes.delete(node.id)),
      cordonNode: change("CordonNode", (node) => {
        if (node.scheduling) node.scheduling.state = SchedulingState.INELIGIBLE;
      }),
      uncordonNode: change("UncordonNode", (node) => {
        if (node.scheduling) node.scheduling.state = SchedulingState.ELIGIBLE;
      }),
      markNodeUnhealthy: change("MarkNodeUnhealthy", () => {}),
      clearNodeMark: change("ClearNodeMark", () => {}),
    });
  }

  #enter(method: string, detail: string, context: HandlerContext): void {
    this.calls.push(`${method} ${detail}`.trimEnd());
    const given = context.requestHeader.get("authorization");
    if (given === null) throw unauthenticated("the call carries no access token", "TOKEN_MISSING");
    if (given !== `Bearer ${TOKEN}`) {
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

function refusal(message: string, reason: string, code = Code.FailedPrecondition): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "rollcall.io" } };
  return new ConnectError(message, code, undefined, [info]);
}

function unauthenticated(message: string, reason: string): ConnectError {
  return refusal(message, reason, Code.Unauthenticated);
}
