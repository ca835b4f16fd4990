import { describeError } from "@rollcall/errors";
import { type Logger, Loop } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import { moveFromCutOff, type Random } from "../replica/farewell.ts";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";
import type { Replica } from "../replica/replica.ts";
import type { Reconnects } from "./reconnects.ts";
import type { SessionMover } from "./session-mover.ts";

export interface CutOffOptions {
  readonly replica: Pick<Replica, "isInDoubt"> & { readonly nodes: Pick<LiveNodes, "sessions"> };
  /** The other replicas, as listed when the store was last read. */
  readonly peers: { known(): readonly Peer<Pick<PeerClient, "getReplicaState">>[] };
  readonly reconnects: Pick<Reconnects, "windowMs" | "endpoints">;
  readonly mover: Pick<SessionMover, "leaving" | "ask">;
  readonly log: Logger;
  readonly random: Random;
}

/**
 * Moves the agents away when this replica cannot reach the store but others can. When no replica can, no agent
 * moves, and streams and telemetry continue.
 */
export class CutOffLeaver {
  readonly #options: CutOffOptions;
  #isCutOff = false;

  constructor(options: CutOffOptions) {
    this.#options = options;
  }

  /** Ask the others whether they can reach the store. Does nothing while this replica holds its lease. */
  async turn(): Promise<void> {
    const { replica, reconnects, mover, random, log } = this.#options;
    if (!replica.isInDoubt) {
      this.#isCutOff = false;
      return;
    }
    const able = await this.#able();
    if (able.length === 0 || !replica.isInDoubt) return;
    const { sessions } = replica.nodes;
    if (!this.#isCutOff) log.warn({ sessions, replicas: able }, "this replica cannot reach the store, but others can");
    this.#isCutOff = true;
    const windowMs = reconnects.windowMs(sessions);
    const { endpoints } = reconnects;
    mover.leaving();
    mover.ask(Number.POSITIVE_INFINITY, () => moveFromCutOff(windowMs, endpoints, random));
  }

  /** The replicas that were listed before the doubt began and that can reach the store. */
  async #able(): Promise<readonly string[]> {
    const { peers, log } = this.#options;
    const answers = await Promise.all(
      peers.known().map(async ({ instance, client }) => {
        try {
          const { holdsLease } = await client.getReplicaState({});
          return holdsLease ? [instance] : [];
        } catch (error) {
          const { reason } = describeError(error);
          log.debug({ replica: instance, reason }, "another replica does not answer");
          return [];
        }
      }),
    );
    return answers.flat();
  }
}

const EVERY_MS = 2_000;

/** Run every 2 s, and when the lease is in doubt. */
export function leaveWhenCutOffTask(leaver: CutOffLeaver, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "leave-when-cut-off", everyMs: EVERY_MS, turn: () => leaver.turn() });
}
