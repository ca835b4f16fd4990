import { AgentSession } from "@rollcall/health/parts";
import type { SimulatedSession } from "./invariants.ts";
import { nodeIdOf } from "./simulation-options.ts";
import type { World, WorldProcess } from "./world.ts";

/**
 * How long the store can lag behind an owner that can reach it. This is enough for a lost response and a few retries.
 */
const LONGEST_LAG_MS = 60_000;

/**
 * How long a node of a lost process can remain without an owner, even with further faults. Another replica adopts the
 * node after the lease has expired.
 */
const LONGEST_ORPHANED_MS = 150_000;

/**
 * Maximum number of nodes to check per second. Larger clusters are checked in rotation: 10,000 nodes take ten seconds.
 */
const NODES_PER_SCAN = 1_000;

/** Compares every node and every replica with the store. */
export class StateCheck {
  readonly #simulation: World;
  /**
   * For each node, since when its state in the store and at its owner differ although the owner can reach the store;
   * -1 while they agree.
   */
  readonly #differsSinceMs: Float64Array;
  #checks = 0;
  #turn = 0;

  constructor(simulation: World) {
    this.#simulation = simulation;
    this.#differsSinceMs = new Float64Array(simulation.agents.length).fill(-1);
  }

  /** Number of node checks so far. */
  get checks(): number {
    return this.#checks;
  }

  look(): void {
    const { record, slots, invariants } = this.#simulation;
    const processes: WorldProcess[] = [];
    for (let slot = 0; slot < slots; slot += 1) {
      const process = this.#simulation.processAt(slot);
      if (process !== null) processes.push(process);
    }
    const turns = Math.ceil(record.sessions.length / NODES_PER_SCAN);
    this.#turn = (this.#turn + 1) % turns;
    for (let node = this.#turn; node < record.sessions.length; node += turns) {
      const session = record.sessions[node] as SimulatedSession;
      let live = 0;
      for (const process of processes) if (this.#scanNow(process, session)) live += 1;
      if (live > 1) invariants.fail(`node ${node} has two live sessions`);
      invariants.checkRecorded(session);
      this.#compare(session);
      this.#checks += 1;
    }
  }

  /** Check that a replica relies on its lease only while no other process can have ended the lease. */
  trust(process: WorldProcess): void {
    const { invariants, schedule } = this.#simulation;
    if (!process.core.replica.mayOpen || this.#simulation.isStopped(process)) return;
    if (process.observer.isSure(schedule.nowMs)) return;
    invariants.fail(`${process.instance} relies on a lease that may have expired`);
  }

  /** Check that every node is healthy in the store after all faults have ended. */
  settled(): void {
    const { record, invariants, agents } = this.#simulation;
    for (const session of record.sessions) {
      const { node } = session;
      const { state: health } = session.health;
      const { state: connection } = session.connection;
      if (agents[node]?.isUp !== true) continue;
      if (health === "HEALTHY" && connection === "CONNECTED") continue;
      invariants.fail(`node ${node} is ${connection} ${health} long after all faults have ended`);
    }
  }

  /** Check a node's state on a replica. Returns whether the node's session there has the epoch in the store. */
  #scanNow(process: WorldProcess, session: SimulatedSession): boolean {
    const { invariants } = this.#simulation;
    const { node } = session;
    const { nodes, mayOpen, isClosing } = process.core.replica;
    const held = nodes.find(nodeIdOf(node));
    if (held === undefined) return false;
    const { stream, epoch, timing, connection } = held;
    // During shutdown, a process does not update its nodes' connections, so do not compare them.
    if (!isClosing && (connection.state === "CONNECTED") !== (stream !== null)) {
      invariants.fail(`node ${node} is ${connection.state}, and ${stream === null ? "has no" : "has a"} stream`);
    }
    if (mayOpen && !this.#simulation.isStopped(process)) {
      invariants.checkEvaluated(process.observer, node, timing.health);
    }
    const openEpoch = stream instanceof AgentSession ? stream.openEpoch : null;
    if (openEpoch === null || session.epoch !== openEpoch) return false;
    if (epoch !== openEpoch) invariants.fail(`node ${node} has a stream of another epoch`);
    return true;
  }

  #compare(session: SimulatedSession): void {
    const { node, replica: instance } = session;
    const { schedule, invariants } = this.#simulation;
    const { state: health } = session.health;
    const owner = instance === null ? null : this.#simulation.processNamed(instance);
    if (instance !== null && owner === null) {
      this.#checkOrphan(node, instance);
      return;
    }
    const isReachable = owner !== null && this.#isAble(owner);
    const held = owner?.core.replica.nodes.find(nodeIdOf(node));
    const agrees = held?.timing.health === health && held.connection.state === session.connection.state;
    if (!isReachable || agrees) {
      this.#differsSinceMs[node] = -1;
      return;
    }
    const sinceMs = this.#differsSinceMs[node] ?? -1;
    if (sinceMs < 0) this.#differsSinceMs[node] = schedule.nowMs;
    else if (schedule.nowMs - sinceMs > LONGEST_LAG_MS) {
      const known = held === undefined ? "does not know it" : `says ${held.timing.health}`;
      invariants.fail(`node ${node} is ${health} in the store; its owner ${known}`);
    }
  }

  /** Check that a node whose owner is gone is adopted if some replica could adopt it. */
  #checkOrphan(node: number, instance: string): void {
    const { slots, schedule, invariants } = this.#simulation;
    const others = Array.from({ length: slots }, (_, slot) => this.#simulation.processAt(slot));
    const sinceMs = this.#differsSinceMs[node] ?? -1;
    if (!others.some((process) => process !== null && this.#isAble(process))) this.#differsSinceMs[node] = -1;
    else if (sinceMs < 0) this.#differsSinceMs[node] = schedule.nowMs;
    else if (schedule.nowMs - sinceMs > LONGEST_ORPHANED_MS) {
      invariants.fail(`node ${node} is not adopted from ${instance}, which is gone`);
    }
  }

  #isAble(process: WorldProcess): boolean {
    const { network } = this.#simulation;
    return process.core.replica.mayOpen && !this.#simulation.isStopped(process) && network.reachesRecord(process.slot);
  }
}
