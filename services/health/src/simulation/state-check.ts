import { AgentSession } from "../session/agent-session.ts";
import type { SimulatedSession } from "./invariants.ts";
import { nodeIdOf } from "./simulation-options.ts";
import type { World, WorldProcess } from "./world.ts";

/** How long the record may lag behind an owner that can reach it: an answer that never came, and a few tries more. */
const LONGEST_LAG_MS = 60_000;

/**
 * How long it may take until the lease of a lost process has run out and its nodes are adopted, with faults meanwhile.
 */
const LONGEST_ORPHANED_MS = 150_000;

/** Nodes of larger fleets are looked at in turns, so many a second: each of 10,000 every ten seconds. */
const NODES_A_LOOK = 1_000;

/** Looks at every node and every replica, by plain comparison. */
export class StateCheck {
  readonly #simulation: World;
  /** Since when a node's record and its owner differ though nothing is between them; -1 while they agree. */
  readonly #differsSinceMs: Float64Array;
  #checks = 0;
  #turn = 0;

  constructor(simulation: World) {
    this.#simulation = simulation;
    this.#differsSinceMs = new Float64Array(simulation.agents.length).fill(-1);
  }

  /** Nodes looked at so far. */
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
    const turns = Math.ceil(record.sessions.length / NODES_A_LOOK);
    this.#turn = (this.#turn + 1) % turns;
    for (let node = this.#turn; node < record.sessions.length; node += turns) {
      const session = record.sessions[node] as SimulatedSession;
      let live = 0;
      for (const process of processes) if (this.#lookAt(process, session)) live += 1;
      if (live > 1) invariants.fail(`node ${node} has two live sessions`);
      invariants.checkRecorded(session);
      this.#compare(session);
      this.#checks += 1;
    }
  }

  /** A replica counts on its lease for as long as no other can have ended it, and no longer. */
  trust(process: WorldProcess): void {
    const { invariants, schedule } = this.#simulation;
    if (!process.core.replica.mayOpen || this.#simulation.isStopped(process)) return;
    if (process.observer.isSure(schedule.nowMs)) return;
    invariants.fail(`${process.instance} counts on a lease that may have run out`);
  }

  /** After everything has healed, every node is healthy, and the record says so. */
  settled(): void {
    const { record, invariants, agents } = this.#simulation;
    for (const session of record.sessions) {
      const { node } = session;
      const { state: health } = session.health;
      const { state: connection } = session.connection;
      if (agents[node]?.isUp !== true) continue;
      if (health === "HEALTHY" && connection === "CONNECTED") continue;
      invariants.fail(`node ${node} is ${connection} ${health} long after all has healed`);
    }
  }

  /** Look at a node as a replica has it. Whether its session there is of the record's epoch. */
  #lookAt(process: WorldProcess, session: SimulatedSession): boolean {
    const { invariants } = this.#simulation;
    const { node } = session;
    const { nodes, mayOpen, isClosing } = process.core.replica;
    const held = nodes.find(nodeIdOf(node));
    if (held === undefined) return false;
    const { stream, epoch, timing, connection } = held;
    // The end of a process says nothing about its nodes.
    if (!isClosing && (connection.state === "CONNECTED") !== (stream !== null)) {
      invariants.fail(`node ${node} is ${connection.state}, and ${stream === null ? "has no" : "has a"} stream`);
    }
    if (mayOpen && !this.#simulation.isStopped(process)) {
      invariants.checkJudged(process.observer, node, timing.health);
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
      const known = held === undefined ? "knows nothing of it" : `says ${held.timing.health}`;
      invariants.fail(`node ${node} is ${health} in the record; its owner ${known}`);
    }
  }

  /** A node whose owner is gone is adopted, as long as some replica could. */
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
