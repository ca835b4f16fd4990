import { create } from "@bufbuild/protobuf";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type ReportHeartbeatRequest,
  ReportHeartbeatRequestSchema,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError, isErrorReasonName } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { Peer, PeerClient, Peers } from "../internal/peers.ts";
import { ownerUnavailable, type Random, sessionOver } from "../replica/farewell.ts";
import { farewellFrom } from "../session/farewell-error.ts";
import type { SessionClaims } from "./session-token.ts";
import { answered, claimsIn, turnedAway, type UnaryAnswer, type UnarySessions } from "./unary-sessions.ts";

/** What sessions are opened elsewhere with. */
export interface RemoteSessionsOptions {
  readonly store: Pick<Store, "clusterSecret">;
  readonly peers: Pick<Peers, "all" | "replicas">;
  readonly random: Random;
  readonly log: Logger;
}

/** Sessions by calls that arrive at a process which holds no node: each is opened at some replica. */
export class RemoteSessions implements UnarySessions {
  readonly #options: RemoteSessionsOptions;

  constructor(options: RemoteSessionsOptions) {
    this.#options = options;
  }

  async open(hello: Hello, nonce: Uint8Array, peer: string): Promise<UnaryAnswer> {
    const { log } = this.#options;
    const replica = await this.#choose();
    if (replica === null) return unavailable("no replica of health is known");
    const heartbeat = create(ReportHeartbeatRequestSchema, {
      nodeId: hello.nodeId,
      step: { case: "open", value: { nonce, hello } },
    });
    try {
      const { answer } = await replica.client.forwardHeartbeat({ heartbeat, peer });
      return answered(answer ?? create(ReportHeartbeatResponseSchema));
    } catch (error) {
      const { reason = "" } = describeError(error);
      // That it does not know this process is nothing to tell an agent.
      if (isErrorReasonName(reason) && reason !== "REPLICA_CREDENTIALS_INVALID") {
        return turnedAway(farewellFrom(error));
      }
      log.warn({ replica: replica.instance, node: hello.nodeId, err: error }, "replica did not answer");
      return unavailable(`replica ${replica.instance} does not answer`);
    }
  }

  claimsOf(request: ReportHeartbeatRequest): SessionClaims | null {
    return claimsIn(request, this.#options.store);
  }

  take({ nodeId }: ReportHeartbeatRequest): UnaryAnswer {
    return turnedAway(sessionOver(nodeId));
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

function unavailable(why: string): UnaryAnswer {
  return turnedAway(ownerUnavailable(`the session cannot be opened: ${why}; try again`));
}
