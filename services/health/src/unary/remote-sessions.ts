import { create } from "@bufbuild/protobuf";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type ReportHeartbeatRequest,
  ReportHeartbeatRequestSchema,
  type ReportHeartbeatResponse,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError, isErrorReasonName, refuse } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { Peer, PeerClient, Peers } from "../internal/peers.ts";
import type { Random } from "../replica/farewell.ts";
import type { SessionClaims } from "./session-token.ts";
import { claimsIn, sessionMoved, type UnarySessions } from "./unary-sessions.ts";

/** What sessions are opened elsewhere with. */
export interface RemoteSessionsOptions {
  readonly store: Pick<Store, "clusterSecret">;
  readonly peers: Pick<Peers, "all" | "replicas">;
  readonly random: Random;
  readonly log: Logger;
}

const RETRY_AFTER_MS = 1_000;

/** Sessions by calls that arrive at a process which holds no node: each is opened at some replica. */
export class RemoteSessions implements UnarySessions {
  readonly #options: RemoteSessionsOptions;

  constructor(options: RemoteSessionsOptions) {
    this.#options = options;
  }

  async open(hello: Hello, nonce: Uint8Array, peer: string): Promise<ReportHeartbeatResponse> {
    const { log } = this.#options;
    const replica = await this.#choose();
    if (replica === null) throw unavailable("no replica of health is known", undefined);
    const heartbeat = create(ReportHeartbeatRequestSchema, {
      nodeId: hello.nodeId,
      step: { case: "open", value: { nonce, hello } },
    });
    try {
      const { answer } = await replica.client.forwardHeartbeat({ heartbeat, peer });
      return answer ?? create(ReportHeartbeatResponseSchema);
    } catch (error) {
      const { reason = "", message, metadata, retryAfterMs } = describeError(error);
      // That it does not know this process is nothing to tell an agent.
      if (isErrorReasonName(reason) && reason !== "REPLICA_CREDENTIALS_INVALID") {
        throw refuse(reason, message, { metadata, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
      }
      log.warn({ replica: replica.instance, node: hello.nodeId, err: error }, "replica did not answer");
      throw unavailable(`replica ${replica.instance} does not answer`, error);
    }
  }

  claimsOf(request: ReportHeartbeatRequest): SessionClaims {
    return claimsIn(request, this.#options.store);
  }

  take({ nodeId }: ReportHeartbeatRequest): ReportHeartbeatResponse {
    throw sessionMoved(nodeId);
  }

  /** Any replica that takes agents; those that have too many ask some to move. */
  async #choose(): Promise<Peer<PeerClient> | null> {
    const { peers, random } = this.#options;
    const all = await peers.all();
    const open = new Set(peers.replicas.map(({ instance }) => instance));
    const taking = all.filter(({ instance }) => open.has(instance));
    return taking[Math.floor(random() * taking.length)] ?? null;
  }
}

function unavailable(why: string, cause: unknown): Error {
  return refuse("OWNER_UNAVAILABLE", `the session cannot be opened: ${why}; try again`, {
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}
