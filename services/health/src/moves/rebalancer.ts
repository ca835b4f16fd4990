import {
  chooseTarget,
  DEFAULT_REBALANCE_LIMITS,
  type MovePlan,
  planMoves,
  type RebalanceLimits,
} from "@rollcall/domain";
import { type Clock, type Logger, Loop } from "@rollcall/process";
import type { PeerList } from "../internal/peers.ts";
import { moveForBalance, type Random } from "../replica/farewell.ts";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";
import type { Replica } from "../replica/replica.ts";
import type { SessionMover } from "./session-mover.ts";

export interface RebalancerOptions {
  readonly replica: Pick<Replica, "instance" | "mayOpen"> & { readonly nodes: Pick<LiveNodes, "sessions"> };
  readonly peers: Pick<PeerList, "refresh" | "replicas">;
  readonly mover: Pick<SessionMover, "leaving" | "ask">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Called with the number of agents that were asked to move. */
  readonly onAsked: (count: number) => void;
  readonly limits?: RebalanceLimits;
}

/** Asks agents to move, a few at a time, while this replica has more than its share of them. */
export class Rebalancer {
  readonly #options: RebalancerOptions;
  #isMoving = false;
  #asked = 0;
  #plannedAtMs: number | null = null;

  constructor(options: RebalancerOptions) {
    this.#options = options;
  }

  /**
   * Plan once. Does nothing while the lease is in doubt, because the load of other replicas is then
   * unknown.
   */
  async turn(): Promise<void> {
    const { replica, peers, mover, clock, random, onAsked } = this.#options;
    if (!replica.mayOpen) return;
    await peers.refresh();
    if (!replica.mayOpen) return;
    const nowMs = clock.nowMs();
    const plan = planMoves(
      {
        own: replica.instance,
        loads: this.#loads(),
        leaving: mover.leaving(),
        isMoving: this.#isMoving,
        // After a delayed tick, do not catch up all at once.
        elapsedMs: Math.min(nowMs - (this.#plannedAtMs ?? nowMs), MOST_ELAPSED_MS),
      },
      this.#options.limits ?? DEFAULT_REBALANCE_LIMITS,
    );
    this.#plannedAtMs = nowMs;
    this.#note(plan);
    const asked = mover.ask(plan.moves, () => moveForBalance(chooseTarget(plan.targets, random())));
    this.#asked += asked;
    onAsked(asked);
  }

  /**
   * The current number of this replica's sessions, and the numbers of the other replicas as of their last
   * lease renewal.
   */
  #loads() {
    const { replica, peers } = this.#options;
    return peers.replicas.map(({ instance, agentEndpoint: endpoint, sessions }) => ({
      instance,
      endpoint,
      sessions: instance === replica.instance ? replica.nodes.sessions : sessions,
    }));
  }

  #note({ reason, fairShare }: MovePlan): void {
    const { log, replica } = this.#options;
    const isMoving = reason === "SURPLUS";
    if (isMoving === this.#isMoving) return;
    this.#isMoving = isMoving;
    const { sessions } = replica.nodes;
    const fields = { sessions, fair_share: fairShare };
    if (isMoving) log.info(fields, "agents are moving to other replicas");
    else log.info({ ...fields, asked: this.#asked, reason }, "agents have moved to other replicas");
    this.#asked = 0;
  }
}

const MOST_ELAPSED_MS = 3_000;

const EVERY_MS = 1_000;

/** Distribute the agents evenly over the replicas. */
export function rebalanceTask(rebalancer: Rebalancer, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "rebalance", everyMs: EVERY_MS, turn: () => rebalancer.turn() });
}
