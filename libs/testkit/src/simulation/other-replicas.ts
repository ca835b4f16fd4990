import type { SimulatedReplica } from "./simulated-replica.ts";
import type { World } from "./world.ts";

const PROBE_EVERY_MS = 2_000;
const LEAVE_EVERY_MS = 5_000;

/** What a replica asks of the others: whether nodes still beat there, and whether they can take its agents. */
export class OtherReplicas {
  readonly #world: World;
  readonly #replica: SimulatedReplica;
  /** Nodes that were taken over and have not come, by the replica that had them. */
  readonly #adopted = new Map<string, Set<number>>();

  constructor(world: World, replica: SimulatedReplica) {
    this.#world = world;
    this.#replica = replica;
  }

  start(): void {
    this.#probeInTurn();
    this.#leaveInTurn();
  }

  onAdopted(node: number, from: string): void {
    const nodes = this.#adopted.get(from) ?? new Set();
    this.#adopted.set(from, nodes.add(node));
  }

  /** Ask old replicas whether the nodes that were theirs still beat there. */
  #probeInTurn(): void {
    for (const [instance, nodes] of this.#adopted) this.#probe(instance, nodes);
    this.#world.schedule.after(PROBE_EVERY_MS, () => {
      this.#world.deliver(this.#replica, () => this.#probeInTurn());
    });
  }

  #probe(instance: string, nodes: Set<number>): void {
    const { schedule, network } = this.#world;
    const old = this.#world.replicaNamed(instance);
    for (const node of nodes) if (!this.#isWaiting(node)) nodes.delete(node);
    if (old === null || nodes.size === 0) {
      this.#adopted.delete(instance);
      return;
    }
    if (!network.reachesReplica(this.#replica.slot, old.slot)) return;
    schedule.after(network.callDelayMs(), () => {
      this.#world.deliver(old, () => this.#answer(old, [...nodes]));
    });
  }

  #answer(old: SimulatedReplica, nodes: readonly number[]): void {
    const { schedule, network } = this.#world;
    const contacts = nodes.flatMap((node) => {
      const held = old.held.get(node);
      if (held === undefined || held.stream === null || held.lastFrameAtMs === null) return [];
      return [{ node, silentMs: schedule.nowMs - held.lastFrameAtMs }];
    });
    const askedAtMs = schedule.nowMs;
    schedule.after(network.callDelayMs(), () => {
      this.#world.deliver(this.#replica, () => {
        const sinceMs = schedule.nowMs - askedAtMs;
        for (const { node, silentMs } of contacts) this.#replica.contacted(node, silentMs + sinceMs);
      });
    });
  }

  /** Cut off alone: ask those for whom the record is there to take the agents. */
  #leaveInTurn(): void {
    const { schedule, network, slots } = this.#world;
    const replica = this.#replica;
    const others = Array.from({ length: slots }, (_, slot) => this.#world.replicaAt(slot));
    const isCutOff = others.some((other) => {
      const isReachable = other !== null && network.reachesReplica(replica.slot, other.slot);
      return isReachable && other !== replica && other.mayOpen && !this.#world.isStopped(other);
    });
    if (replica.time.isInDoubt && isCutOff) replica.askToMove();
    schedule.after(LEAVE_EVERY_MS, () => {
      this.#world.deliver(replica, () => this.#leaveInTurn());
    });
  }

  #isWaiting(node: number): boolean {
    const held = this.#replica.held.get(node);
    return held !== undefined && !held.wasHere && held.watch.health === "HEALTHY";
  }
}
