import type { NewEvent, Reaction } from "@rollcall/domain";
import { nodeIdOf, type WorkWorld } from "@rollcall/health/simulation";

/** A change of a node in the record, as the simulation of health tells it. */
type NodeEvent = Parameters<NonNullable<WorkWorld["invariants"]["listener"]>>[0];

const SOONEST_MS = 2_000;
const LATEST_MS = 20_000;

/**
 * Reactions to losses: pending from the loss on, and allowed some time later unless the node is back. What holds them
 * back in a storm has a simulation of its own.
 */
export class NodeReactions {
  readonly #world: WorkWorld;
  readonly #append: (events: readonly NewEvent[]) => void;
  readonly #reactions = new Map<string, { reaction: Reaction; readonly number: number }>();
  #losses = 0;

  constructor(world: WorkWorld, append: (events: readonly NewEvent[]) => void) {
    this.#world = world;
    this.#append = append;
  }

  /** Of a node; null for none. */
  of(nodeId: string): Reaction | null {
    return this.#reactions.get(nodeId)?.reaction ?? null;
  }

  /** Whether one is allowed. */
  isReactedTo(nodeId: string): boolean {
    return this.of(nodeId) === "ALLOWED";
  }

  onEvent({ node, kind, before, after }: NodeEvent): void {
    if (kind !== "health") return;
    const id = nodeIdOf(node);
    if (after === "HEALTHY") {
      this.#reactions.delete(id);
      return;
    }
    if (before !== "HEALTHY") return;
    this.#losses += 1;
    const number = this.#losses;
    this.#reactions.set(id, { reaction: "PENDING", number });
    const inMs = SOONEST_MS + this.#world.random() * (LATEST_MS - SOONEST_MS);
    this.#world.schedule.after(inMs, () => this.#allow(id, number));
  }

  #allow(id: string, number: number): void {
    const known = this.#reactions.get(id);
    if (known?.number !== number) return;
    known.reaction = "ALLOWED";
    const facts = { subject: id, actor: "replica:brake", message: "", before: null, after: null };
    this.#append([{ ...facts, type: "node.reactions.allowed", reason: "NO_STORM" } as NewEvent]);
  }
}
