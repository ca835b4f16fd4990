import { createServer } from "node:http";
import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import {
  AdminService,
  type BanSchema,
  type NodeOutcome,
  NodeOutcomeSchema,
  type NodeSelector,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import {
  GetClusterHealthResponseSchema,
  HealthQueryService,
  type NodeHealth,
  NodeHealthSchema,
  WatchNodeHealthResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import {
  MembershipState,
  type Node,
  NodeSchema,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type DeletedNodeSchema,
  GetControlPlaneStatusResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { FakeAudit } from "./fake-audit.ts";
import { FakeEvents } from "./fake-events.ts";
import { FakeJoinTokens } from "./fake-join-tokens.ts";
import { FakePolicies } from "./fake-policies.ts";
import { NOW_MS } from "./sample-nodes.ts";

/** The token that the fake takes. */
export const TOKEN = "test-token";

/** What the requests of all verbs have. */
interface FakeRequest {
  readonly node: string;
  readonly selector?: NodeSelector | undefined;
  readonly reason: string;
  readonly requestId: string;
  readonly validateOnly: boolean;
}

/**
 * A control plane in memory that keeps the promises of the real one as far as a client sees them: tokens, prefixes, pages, refusals.
 * It is served over real HTTP.
 */
export class FakeControlPlane {
  readonly nodes = new Map<string, Node>();
  readonly health = new Map<string, NodeHealth>();
  readonly audit = new FakeAudit();
  readonly events = new FakeEvents();
  readonly joinTokens = new FakeJoinTokens();
  readonly policies = new FakePolicies();
  /** What ListDeletedNodes answers. */
  deleted: readonly MessageInitShape<typeof DeletedNodeSchema>[] = [];
  /** What ListBans answers. */
  bans: readonly MessageInitShape<typeof BanSchema>[] = [];
  /** What GetControlPlaneStatus answers. */
  status = create(GetControlPlaneStatusResponseSchema);
  /** What GetClusterHealth answers. */
  clusterHealth = create(GetClusterHealthResponseSchema);
  /** What WatchNodeHealth sends, one after the other, before it breaks off. */
  watchAnswers: readonly MessageInitShape<typeof WatchNodeHealthResponseSchema>[] = [];
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
    this.audit.clear();
    this.events.clear();
    this.joinTokens.clear();
    this.policies.clear();
    this.status = create(GetControlPlaneStatusResponseSchema);
    this.bans = [];
    this.deleted = [];
    this.clusterHealth = create(GetClusterHealthResponseSchema);
    this.watchAnswers = [];
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
    this.joinTokens.route(router, (...call) => this.#enter(...call));
    this.policies.route(router, (...call) => this.#enter(...call));
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
        return { nodes: ids.flatMap((id) => this.health.get(id) ?? []) };
      },
    });
  }

  #admin(router: ConnectRouter): void {
    const change =
      (name: string, apply: (node: Node) => void) =>
      (request: FakeRequest, context: HandlerContext) => {
        const { selector, reason, requestId, validateOnly } = request;
        const target = selector === undefined ? request.node : `[${selector.nodes}]`;
        const dry = validateOnly ? " dry" : "";
        this.#enter(name, `${target} ${reason} ${requestId}`.trimEnd() + dry, context);
        if (selector !== undefined) return { outcomes: this.#outcomes(request, selector, apply) };
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
      requireKeyRotation: change("RequireKeyRotation", () => {}),
      banNode: (request, context) => {
        const isKnown = request.selector !== undefined || this.nodes.has(request.node);
        const ban = change("BanNode", (node) => {
          if (node.membership) node.membership.state = MembershipState.REJECTED;
        });
        return isKnown ? ban(request, context) : {};
      },
      unbanNode: change("UnbanNode", () => {}),
      listBans: (_request, context) => {
        this.#enter("ListBans", "", context);
        return { bans: [...this.bans] };
      },
      setNodeLabels: (request, context) => {
        const labels = JSON.stringify([request.set, request.remove]);
        return change(`SetNodeLabels ${labels}`, () => {})(request, context);
      },
    });
  }

  /** Names, memberships and "all" are understood; a page is whole. */
  #outcomes(
    { validateOnly }: FakeRequest,
    { nodes, memberships }: NodeSelector,
    apply: (node: Node) => void,
  ): NodeOutcome[] {
    const chosen = nodes.length === 0 ? [...this.nodes.keys()].sort() : nodes;
    return chosen.flatMap((name) => {
      try {
        const node = this.#find(name);
        if (!matches(memberships, node.membership?.state)) return [];
        const before = clone(NodeSchema, node);
        apply(node);
        if (validateOnly) this.nodes.set(node.id, before);
        const value = validateOnly ? before : node;
        return [create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value } })];
      } catch (error) {
        const { rawMessage: message } = ConnectError.from(error);
        const isUnknown = message.endsWith("not found");
        const reason = isUnknown ? ErrorReason.NODE_NOT_FOUND : ErrorReason.NODE_ALREADY_APPROVED;
        const result = { case: "refusal", value: { reason, message } } as const;
        return [create(NodeOutcomeSchema, { nodeId: name, result })];
      }
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
