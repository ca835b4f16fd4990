import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type ReportHeartbeatRequest,
  type ReportHeartbeatResponse,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { refuse } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import { membershipToProto } from "@rollcall/wire";
import type { Farewell, Random } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import { toText } from "../stream/hello-fields.ts";
import type { StreamHost } from "../stream/stream-host.ts";
import { openSessionToken, type SessionClaims, sealSessionToken } from "./session-token.ts";
import { UnarySession, type UnarySessionHost } from "./unary-session.ts";

export interface UnaryDeskOptions {
  readonly store: Pick<Store, "clusterSecret">;
  readonly replica: Replica;
  readonly log: Logger;
  readonly random: Random;
  readonly onBeat: StreamHost["onBeat"];
  readonly onHello: StreamHost["onHello"];
}

/** How many ended sessions are remembered with their reason. Agents of others are told to begin again. */
const MOST_ENDED = 1_000;

/** The sessions of agents that call, of the nodes that this replica holds. */
export class UnaryDesk {
  readonly #options: UnaryDeskOptions;
  readonly #host: UnarySessionHost;
  readonly #ended = new Map<string, { readonly epoch: number; readonly farewell: Farewell }>();

  constructor(options: UnaryDeskOptions) {
    this.#options = options;
    const { replica, log, onBeat } = options;
    this.#host = {
      replica,
      log,
      onBeat,
      onEnd: (_session, node, farewell) => this.#onEnd(node, farewell),
    };
  }

  /** Open a session for a Hello whose nonce was used up for it. Throws as a stream's Hello is refused. */
  async open(hello: Hello, nonce: Uint8Array, peer: string): Promise<ReportHeartbeatResponse> {
    const { store, replica, onHello } = this.#options;
    const session = new UnarySession(peer, this.#host);
    // It may be refused before anybody waits for it.
    session.opened.catch(() => {});
    onHello(session, hello, nonce);
    const node = await session.opened;
    const claims = { nodeId: node.id, epoch: node.epoch, replicaId: replica.instance };
    return this.#answer(node, { sessionToken: sealSessionToken(store.clusterSecret(), claims) });
  }

  /** What a token says. Throws SESSION_TOKEN_INVALID. */
  claimsOf({ nodeId, step }: ReportHeartbeatRequest): SessionClaims {
    const isCarried = step.case === "beat" || step.case === "goodbye";
    const token = isCarried ? step.value.sessionToken : "";
    const claims = openSessionToken(this.#options.store.clusterSecret(), token);
    if (claims?.nodeId === nodeId) return claims;
    const message = `the session token is none of node ${nodeId}; open a session without one`;
    throw refuse("SESSION_TOKEN_INVALID", message, { metadata: { node: nodeId } });
  }

  /** Take a heartbeat or a goodbye of a node that this replica holds. */
  take(request: ReportHeartbeatRequest): ReportHeartbeatResponse {
    const claims = this.claimsOf(request);
    const { node, session } = this.#find(claims);
    if (request.step.case === "goodbye") {
      session.goodbye(node, toText(request.step.value.reason));
      return create(ReportHeartbeatResponseSchema);
    }
    if (request.step.case === "beat") {
      session.beat(node, request.step.value.sequence, request.step.value.usage);
    }
    return this.#answer(node, { sequence: session.lastSequence });
  }

  #find(claims: SessionClaims): { readonly node: HeldNode; readonly session: UnarySession } {
    const { nodeId, epoch, replicaId } = claims;
    const { replica } = this.#options;
    const node = replica.nodes.find(nodeId);
    const stream = node?.stream;
    const isCurrent = node?.epoch === epoch && replicaId === replica.instance;
    if (node !== undefined && isCurrent && stream instanceof UnarySession) {
      return { node, session: stream };
    }
    const ended = this.#ended.get(nodeId);
    if (ended?.epoch === epoch) throw ended.farewell.error;
    throw sessionMoved(nodeId);
  }

  #answer(
    node: HeldNode,
    more: { readonly sessionToken: string } | { readonly sequence: number },
  ): ReportHeartbeatResponse {
    const { membership, intervals, watch } = node;
    return create(ReportHeartbeatResponseSchema, {
      ...more,
      sessionEpoch: BigInt(node.epoch),
      ...(membership === null ? {} : { membership: membershipToProto(membership) }),
      ...(intervals === null ? {} : { heartbeatInterval: durationFromMs(intervals.heartbeatMs) }),
      unhealthyAfter: durationFromMs(watch.thresholds.unhealthyAfterMs),
    });
  }

  #onEnd({ id, epoch }: HeldNode, farewell: Farewell): void {
    this.#ended.delete(id);
    this.#ended.set(id, { epoch, farewell });
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= MOST_ENDED) break;
      this.#ended.delete(oldest);
    }
  }
}

/** The error of a call whose session is over, for a reason that is not known here. */
export function sessionMoved(node: string) {
  const message = `this session of node ${node} is over; open a new one without a token`;
  return refuse("SESSION_SUPERSEDED", message, { metadata: { node } });
}
