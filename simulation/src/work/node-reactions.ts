import { nodeIdOf, type WorkWorld } from "../health/index.ts";

/** A change to a node in the store, as the simulation of health reports it. */
type NodeEvent = Parameters<NonNullable<WorkWorld["invariants"]["listener"]>>[0];

const SOONEST_MS = 2_000;
const LATEST_MS = 20_000;

/**
 * Allows the reaction to each loss some time later. The brake delays reactions in a storm and has a separate
 * simulation.
 */
export class NodeReactions {
  readonly #world: WorkWorld;

  constructor(world: WorkWorld) {
    this.#world = world;
  }

  onEvent({ node, kind }: NodeEvent): void {
    const { record, schedule, random } = this.#world;
    const loss = record.sessions[node]?.loss;
    if (kind !== "health" || loss?.reaction !== "PENDING") return;
    const { number } = loss;
    if (number === null) return;
    const inMs = SOONEST_MS + random() * (LATEST_MS - SOONEST_MS);
    schedule.after(inMs, () => record.release(nodeIdOf(node), number));
  }
}
