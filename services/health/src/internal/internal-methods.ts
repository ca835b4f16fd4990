import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ForwardHeartbeatResponseSchema,
  GetHeldNodesResponseSchema,
  GetHeldTotalsResponseSchema,
  GetReplicaStateResponseSchema,
  type HealthInternalService,
  ProbeNodesResponseSchema,
  WatchHeldNodesResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { readPage } from "@rollcall/wire";
import { heldToProto } from "../convert.ts";
import type { HealthServices } from "../health-services.ts";
import { heldAfter, heldOf } from "../query/held-page.ts";
import type { HeldView } from "../replica/held-view.ts";
import type { Replica } from "../replica/replica.ts";
import { responseOf } from "../session/farewell-error.ts";
import { watchHeld } from "../watch/watch-held.ts";

type Methods = (typeof HealthInternalService)["method"];

/** What a replica answers others with. */
export interface InternalServices extends HealthServices {
  readonly replica: Replica;
}

const MOST_NODES_A_PAGE = 1_001;

/** Return what this replica knows of nodes that it holds, one page at most; replicas do not ask for more at a time. */
export function getHeldNodes(services: HealthServices): MethodImpl<Methods["getHeldNodes"]> {
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
    return page.answer(GetHeldNodesResponseSchema, "nodes", {});
  };
}

/** Stream the changes of nodes that this replica holds. */
export function watchHeldNodes(services: HealthServices): MethodImpl<Methods["watchHeldNodes"]> {
  return async function* ({ nodeIds, includeSamples }, context) {
    const { replica, clock } = services;
    const { signal } = context;
    for await (const news of watchHeld({ replica, clock, nodeIds, includeSamples, signal })) {
      yield create(WatchHeldNodesResponseSchema, {
        nodes: [...news.nodes],
        releasedIds: [...news.releasedIds],
      });
    }
  };
}

/** Return the sums over all nodes that this replica holds. */
export function getHeldTotals(services: HealthServices): MethodImpl<Methods["getHeldTotals"]> {
  return async () => create(GetHeldTotalsResponseSchema, { totals: await services.totals.own() });
}

/** Return which nodes still have a stream here although another replica has adopted them. */
export function probeNodes(services: HealthServices): MethodImpl<Methods["probeNodes"]> {
  return ({ nodeIds }) => {
    const contacts = contactsOf(services.replica, nodeIds, services.clock.nowMs()).map(({ nodeId, silentMs }) => {
      return { nodeId, silentFor: durationFromMs(silentMs) };
    });
    return create(ProbeNodesResponseSchema, { contacts });
  };
}

/** How long each of these nodes that has a stream here has been silent, by the real monotonic clock. */
export function contactsOf(
  replica: Pick<HeldView, "nodes">,
  nodeIds: readonly string[],
  nowMs: number,
): readonly { readonly nodeId: string; readonly silentMs: number }[] {
  return heldOf(replica, nodeIds).flatMap(({ id: nodeId, stream, lastFrameAtMs }) => {
    if (stream === null || lastFrameAtMs === null) return [];
    return [{ nodeId, silentMs: Math.max(0, Math.round(nowMs - lastFrameAtMs)) }];
  });
}

/**
 * Take a unary heartbeat that reached another process, or open a session whose proof that one has checked. It is never
 * forwarded twice.
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

/** Return whether this replica can reach the record. */
export function getReplicaState({ replica }: InternalServices): MethodImpl<Methods["getReplicaState"]> {
  return () => {
    const { mayOpen, nodes } = replica;
    return create(GetReplicaStateResponseSchema, {
      holdsLease: mayOpen,
      sessions: nodes.sessions,
    });
  };
}
