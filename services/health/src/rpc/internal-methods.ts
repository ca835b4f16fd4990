import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ForwardHeartbeatResponseSchema,
  GetLiveNodesResponseSchema,
  GetLiveTotalsResponseSchema,
  GetReplicaStateResponseSchema,
  type HealthInternalService,
  ProbeNodesResponseSchema,
  WatchLiveNodesResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { readPage } from "@rollcall/wire";
import { heldToProto } from "../convert.ts";
import type { HealthServices } from "../health-services.ts";
import { heldAfter, heldOf } from "../query/live-page.ts";
import type { LiveView } from "../replica/live-view.ts";
import type { Replica } from "../replica/replica.ts";
import { responseOf } from "../unary/unary-sessions.ts";
import { watchHeld } from "../watch/watch-live.ts";

type Methods = (typeof HealthInternalService)["method"];

/** The dependencies of the methods for other replicas. */
export interface InternalServices extends HealthServices {
  readonly replica: Replica;
}

const MOST_NODES_A_PAGE = 1_001;

/** Return a page of nodes that this replica holds. Replicas never request more nodes than fit into one page. */
export function getLiveNodes(services: HealthServices): MethodImpl<Methods["getLiveNodes"]> {
  return async ({ nodeIds, afterId, limit, includeSamples }, context) => {
    const { replica, clock } = services;
    const most = limit === 0 ? MOST_NODES_A_PAGE : limit;
    const nodes = nodeIds.length > 0 ? heldOf(replica, nodeIds) : heldAfter(replica, afterId, most);
    const options = { replicaId: replica.instance, withSamples: includeSamples, clock };
    const page = await readPage(context, {
      rows: [nodes],
      limit: MOST_NODES_A_PAGE,
      item: NodeHealthSchema,
      toMessage: (node) => heldToProto(node, { ...options, health: node.health }),
    });
    return page.answer(GetLiveNodesResponseSchema, "nodes", {});
  };
}

/** Stream the changes to nodes that this replica holds. */
export function watchLiveNodes(services: HealthServices): MethodImpl<Methods["watchLiveNodes"]> {
  return async function* ({ nodeIds, includeSamples }, context) {
    const { replica, clock } = services;
    const { signal } = context;
    for await (const news of watchHeld({ replica, clock, nodeIds, includeSamples, signal })) {
      yield create(WatchLiveNodesResponseSchema, {
        nodes: [...news.nodes],
        releasedIds: [...news.releasedIds],
      });
    }
  };
}

/** Return totals over all nodes that this replica holds. */
export function getLiveTotals(services: HealthServices): MethodImpl<Methods["getLiveTotals"]> {
  return async () => create(GetLiveTotalsResponseSchema, { totals: await services.totals.own() });
}

/**
 * Return which of the nodes still have a stream to this replica, although another replica has adopted them, and how
 * long each has been silent.
 */
export function probeNodes(services: HealthServices): MethodImpl<Methods["probeNodes"]> {
  return ({ nodeIds }) => {
    const contacts = contactsOf(services.replica, nodeIds, services.clock.nowMs()).map(({ nodeId, silentMs }) => {
      return { nodeId, silentFor: durationFromMs(silentMs) };
    });
    return create(ProbeNodesResponseSchema, { contacts });
  };
}

/**
 * Return how long each of these nodes has been silent, by the real monotonic clock. Nodes without a stream to this
 * replica are left out.
 */
export function contactsOf(
  replica: Pick<LiveView, "nodes">,
  nodeIds: readonly string[],
  nowMs: number,
): readonly { readonly nodeId: string; readonly silentMs: number }[] {
  return heldOf(replica, nodeIds).flatMap(({ id: nodeId, stream, lastFrameAtMs }) => {
    if (stream === null || lastFrameAtMs === null) return [];
    return [{ nodeId, silentMs: Math.max(0, Math.round(nowMs - lastFrameAtMs)) }];
  });
}

/**
 * Handle a unary heartbeat that another process received, or open a session after that process has verified the proof
 * of identity. The call is never forwarded again.
 */
export function forwardHeartbeat({ unary }: HealthServices): MethodImpl<Methods["forwardHeartbeat"]> {
  return async ({ heartbeat, peer }) => {
    if (heartbeat === undefined) throw new Error("the contract requires a heartbeat");
    const { step } = heartbeat;
    const hello = step.case === "open" ? step.value.hello : undefined;
    const isOpening = step.case === "open" && hello !== undefined;
    const answer = isOpening ? await unary.open(hello, step.value.nonce, peer) : unary.take(heartbeat);
    return create(ForwardHeartbeatResponseSchema, { answer: responseOf(answer) });
  };
}

/** Return whether this replica can reach the store. */
export function getReplicaState({ replica }: InternalServices): MethodImpl<Methods["getReplicaState"]> {
  return () => {
    const { mayOpen, nodes } = replica;
    return create(GetReplicaStateResponseSchema, {
      holdsLease: mayOpen,
      sessions: nodes.sessions,
    });
  };
}
