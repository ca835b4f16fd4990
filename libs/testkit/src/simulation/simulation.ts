import { AWAITING_HELLO } from "@rollcall/domain";
import { seededRandom } from "../seeded-random.ts";
import { FaultPlan } from "./fault-plan.ts";
import { InvariantBroken, Invariants } from "./invariants.ts";
import { Schedule } from "./schedule.ts";
import { SimulatedAgent } from "./simulated-agent.ts";
import { SimulatedNetwork } from "./simulated-network.ts";
import { SimulatedRecord } from "./simulated-record.ts";
import { SimulatedReplica } from "./simulated-replica.ts";
import type { SimulatedStream } from "./simulated-stream.ts";
import { type SimulationOptions, STEP_MS } from "./simulation-options.ts";
import { StateCheck } from "./state-check.ts";
import type { World } from "./world.ts";

/** What a simulation came to. */
export interface SimulationVerdict {
  readonly steps: number;
  readonly simulatedMs: number;
  /** Changes in the record, each with its event. */
  readonly transitions: number;
  /** Nodes declared UNHEALTHY or UNKNOWN by a replica. */
  readonly declarations: number;
  /** Of these, and of goodbyes, what came to be in the record. */
  readonly recordedLosses: number;
  readonly faults: number;
  readonly checks: number;
  /** What happened that must never happen; null when nothing did. */
  readonly violation: string | null;
}

const LOOK_EVERY_STEPS = 1_000 / STEP_MS;
const START_WITHIN_MS = 60_000;
const ANSWER_LOST_AFTER_MS = 4_000;
const ANSWER_LOST_SHARE = 0.01;
const REQUEST_LOST_SHARE = 0.005;
/** Long enough for everybody to come back or be declared UNKNOWN, a failover included. */
const SETTLE_MS = 600_000;
const COMPACT_EVERY_STEPS = 4_000;

/** Run a simulation to its end, or to the first thing that must never happen. */
export function simulate(options: SimulationOptions): SimulationVerdict {
  const simulation = new Simulation(options);
  try {
    simulation.run();
    return simulation.verdict(null);
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
    return simulation.verdict(error.message);
  }
}

/** Agents, replicas, their record and what lies between them, in steps of a time of its own. */
export class Simulation implements World {
  readonly schedule = new Schedule(STEP_MS);
  readonly invariants: Invariants;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly agents: readonly SimulatedAgent[];
  readonly broken: SimulationOptions["broken"];
  readonly random: () => number;
  readonly #options: SimulationOptions;
  readonly #faults: FaultPlan;
  readonly #check: StateCheck;
  readonly #replicas: (SimulatedReplica | null)[];
  readonly #stopped = new Map<SimulatedReplica, { sinceMs: number; waiting: (() => void)[] }>();
  #started = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.broken = options.broken;
    this.invariants = new Invariants(options.agents);
    this.network = new SimulatedNetwork(this.schedule, this.random);
    this.record = new SimulatedRecord(options.agents, this.invariants, options.broken);
    this.agents = Array.from({ length: options.agents }, (_, index) => {
      return new SimulatedAgent(index, this);
    });
    this.#replicas = new Array<SimulatedReplica | null>(options.replicas).fill(null);
    this.#faults = new FaultPlan(this, options);
    this.#check = new StateCheck(this);
  }

  get slots(): number {
    return this.#replicas.length;
  }

  run(): void {
    for (let slot = 0; slot < this.slots; slot += 1) this.startReplica(slot);
    for (const agent of this.agents) agent.start(START_WITHIN_MS);
    this.#faults.begin();
    while (this.schedule.nowMs < this.#options.durationMs) this.#step();
    this.#faults.end();
    const settledAtMs = this.schedule.nowMs + SETTLE_MS;
    this.network.isCalm = true;
    while (this.schedule.nowMs < settledAtMs) this.#step();
    this.#check.settled();
  }

  verdict(violation: string | null): SimulationVerdict {
    const { events: transitions, declarations, recordedLosses } = this.invariants;
    const { steps, nowMs: simulatedMs } = this.schedule;
    const { count: faults } = this.#faults;
    const { checks } = this.#check;
    return {
      ...{ steps, simulatedMs, transitions, declarations, recordedLosses },
      ...{ faults, checks, violation },
    };
  }

  createStream(agent: SimulatedAgent, replica: SimulatedReplica): SimulatedStream {
    return { agent, replica, state: AWAITING_HELLO };
  }

  replicaAt(slot: number): SimulatedReplica | null {
    return this.#replicas[slot] ?? null;
  }

  replicaNamed(instance: string): SimulatedReplica | null {
    return this.#replicas.find((replica) => replica?.instance === instance) ?? null;
  }

  isStopped(replica: SimulatedReplica): boolean {
    return this.#stopped.has(replica);
  }

  deliver(replica: SimulatedReplica, run: () => void): void {
    if (this.#replicas[replica.slot] !== replica) return;
    const stopped = this.#stopped.get(replica);
    if (stopped === undefined) run();
    else stopped.waiting.push(run);
  }

  callRecord<T>(replica: SimulatedReplica, carryOut: () => T, done: (result: T | null) => void): void {
    const answer = (afterMs: number, result: T | null): void => {
      this.schedule.after(afterMs, () => this.deliver(replica, () => done(result)));
    };
    this.schedule.after(this.network.callDelayMs(), () => {
      const { isCalm } = this.network;
      const isLost = !isCalm && this.random() < REQUEST_LOST_SHARE;
      if (isLost || !this.network.reachesRecord(replica.slot)) {
        answer(ANSWER_LOST_AFTER_MS, null);
        return;
      }
      const result = carryOut();
      if (!isCalm && this.random() < ANSWER_LOST_SHARE) answer(ANSWER_LOST_AFTER_MS, null);
      else answer(this.network.callDelayMs(), result);
    });
  }

  /** Start a process there, unless one runs. */
  startReplica(slot: number): void {
    if (this.#replicas[slot] !== null) return;
    this.#started += 1;
    const replica = new SimulatedReplica(this, `h${slot}-${this.#started}`, slot);
    this.#replicas[slot] = replica;
    replica.work.start();
  }

  /** Kill the process there. Its agents learn of it, as far as anything reaches them. */
  crashReplica(slot: number): void {
    const replica = this.#replicas[slot];
    if (replica === null || replica === undefined) return;
    this.#stopped.delete(replica);
    for (const { stream } of replica.held.values()) {
      const { agent } = stream ?? {};
      if (stream === null || agent === undefined) continue;
      this.network.sendFrame(agent.index, slot, () => agent.onEnd(stream, 0));
    }
    this.#replicas[slot] = null;
  }

  /** End the process there in order: streams first, then its lease. */
  closeReplica(slot: number): void {
    const replica = this.#replicas[slot];
    if (replica === null || replica === undefined || this.isStopped(replica)) return;
    replica.close();
    if (this.network.reachesRecord(slot)) this.record.leases.delete(replica.instance);
    this.#replicas[slot] = null;
  }

  /** Let a process stand still for a while; what reaches it waits. */
  stopReplica(slot: number, ms: number): void {
    const replica = this.#replicas[slot];
    if (replica === null || replica === undefined || this.isStopped(replica)) return;
    const stop = { sinceMs: this.schedule.nowMs, waiting: [] };
    this.#stopped.set(replica, stop);
    this.schedule.after(ms, () => this.#resumeReplica(replica));
  }

  #resumeReplica(replica: SimulatedReplica): void {
    const stopped = this.#stopped.get(replica);
    if (stopped === undefined) return;
    this.#stopped.delete(replica);
    replica.time.observer.stopped(stopped.sinceMs, this.schedule.nowMs);
    for (const run of stopped.waiting) run();
  }

  #step(): void {
    this.schedule.advance();
    this.invariants.nowMs = this.schedule.nowMs;
    for (const replica of this.#replicas) {
      if (replica !== null && !this.isStopped(replica)) replica.tick();
    }
    const { steps } = this.schedule;
    if (steps % LOOK_EVERY_STEPS === 0) {
      for (const agent of this.agents) agent.look();
      this.#check.look();
    }
    if (steps % COMPACT_EVERY_STEPS === 0) this.#compact();
  }

  #compact(): void {
    const read = this.#replicas.flatMap((replica) => replica?.work.readRevision ?? []);
    this.record.compact(Math.min(this.record.revision, ...read));
  }
}
