import type { RecordedSession } from "./simulated-record.ts";
import type { SimulatedReplica } from "./simulated-replica.ts";
import type { Simulation } from "./simulation.ts";

/** How long the record may lag behind an owner that can reach it: an answer that never came, and a few tries more. */
const LONGEST_LAG_MS = 60_000;

/** Looks at every node and every replica, by plain comparison. */
export class StateCheck {
  readonly #simulation: Simulation;
  /** Since when a node's record and its owner differ though nothing is between them; -1 while they agree. */
  readonly #differsSinceMs: Float64Array;
  #checks = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#differsSinceMs = new Float64Array(simulation.agents.length).fill(-1);
  }

  /** Nodes looked at so far. */
  get checks(): number {
    return this.#checks;
  }

  look(): void {
    const { record, slots } = this.#simulation;
    const live = new Uint8Array(record.sessions.length);
    for (let slot = 0; slot < slots; slot += 1) {
      const replica = this.#simulation.replicaAt(slot);
      if (replica !== null) this.#lookAt(replica, live);
    }
    for (const session of record.sessions) {
      this.#simulation.invariants.checkRecorded(session);
      this.#compare(session);
    }
    this.#checks += record.sessions.length;
  }

  /** After everything has healed, everybody is well again, and the record knows. */
  settled(): void {
    const { record, invariants, agents } = this.#simulation;
    for (const { node, health, connection } of record.sessions) {
      if (agents[node]?.isUp !== true) continue;
      if (health === "HEALTHY" && connection === "CONNECTED") continue;
      invariants.fail(`node ${node} is ${connection} ${health} long after all has healed`);
    }
  }

  #lookAt(replica: SimulatedReplica, live: Uint8Array): void {
    const { invariants, record } = this.#simulation;
    const isJudging = replica.isJudging && !this.#simulation.isStopped(replica);
    for (const held of replica.held.values()) {
      const { node, stream, epoch, watch } = held;
      if (isJudging) invariants.checkJudged(replica.time.observer, node, watch.health);
      if (stream === null || stream.state.kind !== "open") continue;
      if (record.sessions[node]?.epoch !== stream.state.epoch) continue;
      if (epoch !== stream.state.epoch) invariants.fail(`node ${node} has a stream of another epoch`);
      live[node] = (live[node] ?? 0) + 1;
      if (live[node] === 2) invariants.fail(`node ${node} has two live sessions`);
    }
  }

  #compare(session: RecordedSession): void {
    const { node, replica: instance, health, connection } = session;
    const { schedule, network, invariants } = this.#simulation;
    const owner = instance === null ? null : this.#simulation.replicaNamed(instance);
    const isReachable =
      owner?.mayOpen === true && !this.#simulation.isStopped(owner) && network.reachesRecord(owner.slot);
    const held = owner?.held.get(node);
    const agrees = held?.watch.health === health && held.connection === connection;
    if (!isReachable || agrees) {
      this.#differsSinceMs[node] = -1;
      return;
    }
    const sinceMs = this.#differsSinceMs[node] ?? -1;
    if (sinceMs < 0) this.#differsSinceMs[node] = schedule.nowMs;
    else if (schedule.nowMs - sinceMs > LONGEST_LAG_MS) {
      const known = held === undefined ? "knows nothing of it" : `says ${held.watch.health}`;
      invariants.fail(`node ${node} is ${health} in the record; its owner ${known}`);
    }
  }
}
