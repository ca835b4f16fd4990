import { describeError } from "@rollcall/errors";
import { type Logger, Loop } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import type { SharedLoop } from "../record/health-record.ts";
import { moveFromCutOff, type Random } from "../replica/farewell.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Replica } from "../replica/replica.ts";
import type { Reconnects } from "./reconnects.ts";
import type { SessionMover } from "./session-mover.ts";

export interface CutOffOptions {
  readonly replica: Pick<Replica, "isInDoubt"> & { readonly nodes: Pick<HeldNodes, "sessions"> };
  /** The others that were listed when the record was last read. */
  readonly peers: { known(): readonly Peer<Pick<PeerClient, "getReplicaState">>[] };
  readonly reconnects: Pick<Reconnects, "windowMs" | "endpoints">;
  readonly mover: Pick<SessionMover, "leaving" | "ask">;
  readonly log: Logger;
  readonly random: Random;
}

/**
 * Moves the agents away when this replica cannot reach the record and others can. When none can, no agent moves:
 * streams and telemetry go on.
 */
export class CutOffLeaver {
  readonly #options: CutOffOptions;
  #isCutOff = false;

  constructor(options: CutOffOptions) {
    this.#options = options;
  }

  /** Ask the others whether they reach the record. Does nothing while this replica holds its lease. */
  async turn(): Promise<void> {
    const { replica, reconnects, mover, random, log } = this.#options;
    if (!replica.isInDoubt) {
      this.#isCutOff = false;
      return;
    }
    const able = await this.#able();
    if (able.length === 0 || !replica.isInDoubt) return;
    const { sessions } = replica.nodes;
    if (!this.#isCutOff) log.warn({ sessions, replicas: able }, "cut off from the record alone");
    this.#isCutOff = true;
    const windowMs = reconnects.windowMs(sessions);
    const { endpoints } = reconnects;
    mover.leaving();
    mover.ask(Number.POSITIVE_INFINITY, () => moveFromCutOff(windowMs, endpoints, random));
  }

  /** The replicas that reach it, of those listed before the doubt began. */
  async #able(): Promise<readonly string[]> {
    const { peers, log } = this.#options;
    const answers = await Promise.all(
      peers.known().map(async ({ instance, client }) => {
        try {
          const { holdsLease } = await client.getReplicaState({});
          return holdsLease ? [instance] : [];
        } catch (error) {
          const { reason } = describeError(error);
          log.debug({ replica: instance, reason }, "another replica is silent");
          return [];
        }
      }),
    );
    return answers.flat();
  }
}

const EVERY_MS = 2_000;

/** Run every 2 s, and when the lease comes into doubt. */
export function leaveWhenCutOffTask(leaver: CutOffLeaver, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "leave-when-cut-off", everyMs: EVERY_MS, turn: () => leaver.turn() });
}
