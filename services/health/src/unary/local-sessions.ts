import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type ReportHeartbeatRequest,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Store } from "@rollcall/store";
import { membershipToProto } from "@rollcall/wire";
import { type Farewell, notRising, sessionOver, tokenInvalid } from "../replica/farewell.ts";
import type { LiveNode, NodeStream } from "../replica/live-node.ts";
import { AgentSession } from "../session/agent-session.ts";
import { toText } from "../session/hello-fields.ts";
import type { SessionEnd, SessionHost } from "../session/session-host.ts";
import { type SessionClaims, sealSessionToken } from "./session-token.ts";
import { openUnarySession, type UnarySession } from "./unary-session.ts";
import { answered, claimsIn, turnedAway, type UnaryAnswer, type UnarySessions } from "./unary-sessions.ts";

export interface LocalSessionsOptions {
  readonly store: Pick<Store, "clusterSecret">;
  readonly host: SessionHost;
}

/**
 * Maximum number of ended sessions whose reason is remembered. Agents of older sessions are only asked to open a new
 * session.
 */
const MOST_ENDED = 1_000;

/** The unary sessions of nodes that this replica holds. */
export class LocalSessions implements UnarySessions {
  readonly #options: LocalSessionsOptions;
  /** The unary sessions among the replica's sessions. */
  readonly #sessions = new WeakSet<NodeStream>();
  readonly #ended = new Map<string, { readonly epoch: number; readonly farewell: Farewell }>();

  constructor(options: LocalSessionsOptions) {
    this.#options = options;
  }

  async open(hello: Hello, nonce: Uint8Array, peer: string): Promise<UnaryAnswer> {
    const { store, host } = this.#options;
    const opened = await openUnarySession({ hello, nonce, peer }, host, (end, ended) => {
      this.#onEnd(end, ended);
    });
    if ("reason" in opened) return turnedAway(opened);
    const { node, session } = opened;
    this.#sessions.add(session);
    const claims = { nodeId: node.id, epoch: node.epoch, replicaId: host.replica.instance };
    return this.#answer(node, { sessionToken: sealSessionToken(store.clusterSecret(), claims) });
  }

  claimsOf(request: ReportHeartbeatRequest): SessionClaims | null {
    return claimsIn(request, this.#options.store);
  }

  take(request: ReportHeartbeatRequest): UnaryAnswer {
    const claims = this.claimsOf(request);
    if (claims === null) return turnedAway(tokenInvalid(request.nodeId));
    const found = this.#find(claims);
    if ("reason" in found) return turnedAway(found);
    const { node, session } = found;
    if (request.step.case === "goodbye") {
      session.receive({ kind: "goodbye", isRestarting: false, reason: toText(request.step.value.reason) });
      return answered(create(ReportHeartbeatResponseSchema));
    }
    if (request.step.case === "beat") {
      const { sequence, usage } = request.step.value;
      const { lastSequence } = session;
      const isTaken = session.beat({ sequence, usage, settingsGeneration: 0, agentTimeMs: 0n, executionsDigest: 0n });
      if (!isTaken) return turnedAway(notRising(node.id, sequence, lastSequence));
    }
    return this.#answer(node, { sequence: session.lastSequence });
  }

  /** The session of a token, or the farewell that ended it. */
  #find(claims: SessionClaims): UnarySession | Farewell {
    const { nodeId, epoch, replicaId } = claims;
    const { replica } = this.#options.host;
    const node = replica.nodes.find(nodeId);
    const stream = node?.stream;
    const isCurrent = node?.epoch === epoch && replicaId === replica.instance;
    if (node !== undefined && isCurrent && stream instanceof AgentSession && this.#sessions.has(stream)) {
      return { node, session: stream };
    }
    const ended = this.#ended.get(nodeId);
    return ended?.epoch === epoch ? ended.farewell : sessionOver(nodeId);
  }

  #answer(node: LiveNode, more: { readonly sessionToken: string } | { readonly sequence: number }): UnaryAnswer {
    const { membership, intervals, timing } = node;
    const response = create(ReportHeartbeatResponseSchema, {
      ...more,
      sessionEpoch: BigInt(node.epoch),
      ...(membership === null ? {} : { membership: membershipToProto(membership) }),
      ...(intervals === null ? {} : { heartbeatInterval: durationFromMs(intervals.heartbeatMs) }),
      unhealthyAfter: durationFromMs(timing.thresholds.unhealthyAfterMs),
    });
    return answered(response);
  }

  #onEnd(end: SessionEnd, { id, epoch }: LiveNode): void {
    if (end.kind !== "left") return;
    this.#ended.delete(id);
    this.#ended.set(id, { epoch, farewell: end.farewell });
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= MOST_ENDED) break;
      this.#ended.delete(oldest);
    }
  }
}
