import type { Task } from "@rollcall/process";
import { policyOf } from "../config.ts";
import type { HealthDeps } from "../deps.ts";
import type { Peers } from "../internal/peers.ts";
import type { HealthMetrics } from "../metrics.ts";
import type { Replica } from "../replica/replica.ts";
import { leaveWhenCutOffTask } from "../tasks/leave-when-cut-off.ts";
import { rebalanceTask } from "../tasks/rebalance.ts";
import { drain } from "./drain.ts";
import { CutOffLeaver } from "./leave-when-cut-off.ts";
import { Rebalancer } from "./rebalancer.ts";
import { Reconnects } from "./reconnects.ts";
import { SessionMover } from "./session-mover.ts";

/** How agents come from one replica to another. */
export interface Moves {
  readonly reconnects: Reconnects;
  readonly tasks: readonly Task[];
  /** The lease is in doubt: see whether others fare better. */
  doubted(): void;
  /** Hand the agents on before the end. `withdraw` sends no more agents here. */
  drain(withdraw: () => Promise<void>): Promise<void>;
}

/** Create what moves agents. */
export function createMoves(
  deps: HealthDeps,
  parts: {
    readonly replica: Replica;
    readonly peers: Peers;
    readonly random: () => number;
    readonly metrics: HealthMetrics;
  },
): Moves {
  const { instance, config, clock, log } = deps;
  const { replica, peers, random, metrics } = parts;
  const reconnects = new Reconnects({
    instance,
    peers,
    hellosPerSecond: config["Health.HellosPerSecond"],
    unhealthyAfterMs: policyOf(config).unhealthyAfterMs,
  });
  const mover = new SessionMover({ nodes: replica.nodes, clock });
  const shared = { replica, peers, mover, clock, log, random };
  const onAsked = (count: number) => metrics.movesAsked(count);
  const rebalancer = new Rebalancer({ ...shared, onAsked });
  const leaver = new CutOffLeaver({ ...shared, reconnects });
  const leaving = leaveWhenCutOffTask(leaver, shared);
  return {
    reconnects,
    tasks: [rebalanceTask(rebalancer, shared), leaving],
    doubted: () => leaving.call(),
    drain: (withdraw) => drain({ ...shared, reconnects, withdraw }),
  };
}
