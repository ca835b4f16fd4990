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

/** The dependencies of RemoteSessions. */
export interface RemoteSessionsOptions {
  readonly store: Pick<Store, "clusterSecret">;
  readonly peers: Pick<Peers, "all" | "replicas">;
  readonly random: Random;
  readonly log: Logger;
}

/** Handles unary sessions in a process that holds no nodes: opens each at a random replica. */
export class RemoteSessions implements UnarySessions {
  readonly #options: RemoteSessionsOptions;

  constructor(options: RemoteSessionsOptions) {
    this.#options = options;
  }

  async open(hello: Hello, nonce: Uint8Array, peer: string): Promise<UnaryAnswer> {
    const { log } = this.#options;
    const replica = await this.#choose();
    if (replica === null) return unavailable("no health replica is available");
    const heartbeat = create(ReportHeartbeatRequestSchema, {
      nodeId: hello.nodeId,
      step: { case: "open", value: { nonce, hello } },
    });
    try {
      const { answer } = await replica.client.forwardHeartbeat({ heartbeat, peer });
      return answered(answer ?? create(ReportHeartbeatResponseSchema));
    } catch (error) {
      const { reason = "" } = describeError(error);
      // Do not pass on a refusal of this process's credentials, because it is not the agent's problem.
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

  /** Choose a random replica that admits agents. A replica with too many agents asks some to move. */
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
