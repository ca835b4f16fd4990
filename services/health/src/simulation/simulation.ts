import { seededRandom } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { AgentSession } from "../session/agent-session.ts";
import { FaultPlan } from "./fault-plan.ts";
import { InvariantBroken, Invariants } from "./invariants.ts";
import { Schedule } from "./schedule.ts";
import { SimulatedAgent } from "./simulated-agent.ts";
import { SimulatedCaller } from "./simulated-caller.ts";
import { SimulatedNetwork } from "./simulated-network.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { SimulatedRecord } from "./simulated-record.ts";
import { SimulatedStream } from "./simulated-stream.ts";
import type { Reached, SimulatedWork, WorkWorld } from "./simulated-work.ts";
import { type SimulationOptions, STEP_MS } from "./simulation-options.ts";
import { StateCheck } from "./state-check.ts";
import type { World, WorldAgent } from "./world.ts";

/** The result of a simulation. */
export interface SimulationVerdict {
  readonly steps: number;
  readonly simulatedMs: number;
  /** Changes in the record, each with its event. */
  readonly transitions: number;
  /** Nodes declared UNHEALTHY or UNKNOWN by a replica. */
  readonly declarations: number;
  /** How many of these, and of goodbyes, were written to the record. */
  readonly recordedLosses: number;
  readonly faults: number;
  readonly checks: number;
  /** What came of work, for people; "" without. */
  readonly work: string;
  /** The broken invariant; null for none. */
  readonly violation: string | null;
}

/** One agent in so many calls instead of holding a stream. */
const CALLER_EVERY = 5;
const LOOK_EVERY_STEPS = 1_000 / STEP_MS;
const START_WITHIN_MS = 60_000;
const ANSWER_LOST_AFTER_MS = 4_000;
const ANSWER_LOST_SHARE = 0.01;
const REQUEST_LOST_SHARE = 0.005;
/**
 * Long enough for every agent to come back or be declared UNKNOWN, a failover included, after the last fault has ended:
 * the record may be away for ten minutes.
 */
const SETTLE_MS = 1_200_000;
/** Long enough for what waits to be retried, too. */
const SETTLE_WORK_MS = 1_800_000;
const COMPACT_EVERY_STEPS = 4_000;

/** Makes what schedules and runs work on the nodes of a simulation. */
export type CreateWork = (world: WorkWorld) => SimulatedWork;

/** Run a simulation to its end, or to the first broken invariant. Without `createWork` its nodes run no work. */
export async function simulate(options: SimulationOptions, createWork?: CreateWork): Promise<SimulationVerdict> {
  const simulation = new Simulation(options, createWork);
  try {
    await simulation.run();
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
  }
  return simulation.verdict();
}

/** Agents, replicas, their record and the network between them, in steps of virtual time. */
class Simulation implements World, WorkWorld {
  readonly schedule = new Schedule(STEP_MS);
  readonly invariants: Invariants;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly agents: readonly WorldAgent[];
  readonly random: () => number;
  readonly work: SimulatedWork | null;
  readonly #options: SimulationOptions;
  readonly #faults: FaultPlan;
  readonly #check: StateCheck;
  readonly #processes: (SimulatedProcess | null)[];
  readonly #stopped = new Map<Reached, { sinceMs: number; waiting: (() => void)[] }>();
  /** By the number of their node. */
  readonly #clones = new Map<number, SimulatedAgent>();
  #started = 0;

  constructor(options: SimulationOptions, createWork: CreateWork | undefined) {
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.invariants = new Invariants(options.agents);
    this.network = new SimulatedNetwork(this.schedule, this.random);
    this.record = new SimulatedRecord(options.agents, {
      ...{ invariants: this.invariants, broken: options.broken },
      nowMs: () => this.schedule.nowMs,
    });
    this.#processes = new Array<SimulatedProcess | null>(options.replicas).fill(null);
    this.work = createWork?.(this) ?? null;
    this.invariants.listener = (event) => this.work?.onEvent(event);
    this.agents = Array.from({ length: options.agents }, (_, index) => {
      return this.runsWork(index) ? new SimulatedAgent(index, this) : new SimulatedCaller(index, this);
    });
    this.#faults = new FaultPlan(this, options);
    this.#check = new StateCheck(this);
  }

  get slots(): number {
    return this.#processes.length;
  }

  get agentCount(): number {
    return this.#options.agents;
  }

  /** Agents that call run none. */
  runsWork(agent: number): boolean {
    return agent % CALLER_EVERY !== CALLER_EVERY - 1;
  }

  async run(): Promise<void> {
    for (let slot = 0; slot < this.slots; slot += 1) this.startReplica(slot);
    for (const agent of this.agents) agent.start(START_WITHIN_MS);
    this.work?.begin();
    this.#faults.begin();
    await this.#passUntil(this.#options.durationMs);
    this.#faults.end();
    this.network.isCalm = true;
    this.work?.calm();
    await this.#passUntil(this.schedule.nowMs + (this.work === null ? SETTLE_MS : SETTLE_WORK_MS));
    if (this.invariants.violation !== null) return;
    this.#check.settled();
    this.work?.settled();
  }

  verdict(): SimulationVerdict {
    const { events: transitions, declarations, recordedLosses, violation } = this.invariants;
    const { steps, nowMs: simulatedMs } = this.schedule;
    const { count: faults } = this.#faults;
    const { checks } = this.#check;
    return {
      ...{ steps, simulatedMs, transitions, declarations, recordedLosses },
      ...{ faults, checks, violation, work: this.work?.describe() ?? "" },
    };
  }

  processAt(slot: number): SimulatedProcess | null {
    return this.#processes[slot] ?? null;
  }

  processNamed(instance: string): SimulatedProcess | null {
    return this.#processes.find((process) => process?.instance === instance) ?? null;
  }

  isStopped(process: Reached): boolean {
    return this.#stopped.has(process);
  }

  deliver(process: Reached, run: () => void): void {
    if (!process.isAlive) return;
    const stopped = this.#stopped.get(process);
    if (stopped === undefined) run();
    else stopped.waiting.push(run);
  }

  callRecord<T>(process: Reached, carryOut: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const lose = () => {
        this.schedule.after(ANSWER_LOST_AFTER_MS, () => this.deliver(process, () => reject(CONNECTION_BROKEN)));
      };
      this.schedule.afterSteps(this.#wayInSteps(), () => {
        const { isCalm } = this.network;
        const isLost = !isCalm && this.random() < REQUEST_LOST_SHARE;
        if (isLost || !this.network.reachesRecord(process.slot)) {
          lose();
          return;
        }
        const result = carryOut();
        if (!isCalm && this.random() < ANSWER_LOST_SHARE) lose();
        else this.schedule.afterSteps(this.#wayInSteps(), () => this.deliver(process, () => resolve(result)));
      });
    });
  }

  /** Start a process there, unless one runs. */
  startReplica(slot: number): void {
    if (this.#processes[slot] !== null) return;
    this.#started += 1;
    this.#processes[slot] = new SimulatedProcess(this, `h${slot}-${this.#started}`, slot);
  }

  cloneAgent(index: number, ms: number): void {
    // Agents that call have no stream of which another could be the clone, and one clone a node is enough.
    if (!this.runsWork(index) || this.#clones.has(index)) return;
    const clone = new SimulatedAgent(index, this, true);
    this.#clones.set(index, clone);
    this.invariants.onCloned(index, this.schedule.nowMs + ms);
    clone.start(0);
    this.schedule.after(ms, () => {
      clone.crash();
      this.#clones.delete(index);
    });
  }

  /** Kill the process there. Agents that can be reached learn of it. */
  crashReplica(slot: number): void {
    const process = this.#processes[slot];
    if (process === null || process === undefined) return;
    this.#stopped.delete(process);
    process.isAlive = false;
    for (const { stream } of process.core.replica.nodes.all()) {
      const link = stream instanceof AgentSession ? stream.link : null;
      if (!(link instanceof SimulatedStream)) continue;
      this.network.sendFrame(link.agent.index, slot, () => link.agent.onEnd(link, 0));
    }
    this.#processes[slot] = null;
  }

  /** End the process there in order, and start another one a while after it has ended. */
  restartReplica(slot: number, downMs: number): void {
    const process = this.#processes[slot];
    if (process === null || process === undefined || this.isStopped(process) || process.isHidden) return;
    void process.close().then(() => {
      process.isAlive = false;
      this.#processes[slot] = null;
      this.schedule.after(downMs, () => this.startReplica(slot));
    });
  }

  /** Let a process stand still for a while; what reaches it waits. */
  stopReplica(slot: number, ms: number): void {
    const process = this.#processes[slot];
    if (process !== null && process !== undefined) this.stop(process, ms);
  }

  stop(process: Reached, ms: number): void {
    if (this.isStopped(process)) return;
    this.#stopped.set(process, { sinceMs: this.schedule.nowMs, waiting: [] });
    this.schedule.after(ms, () => this.#resume(process));
  }

  restartAllReplicas(downMs: number): void {
    for (let slot = 0; slot < this.slots; slot += 1) {
      this.crashReplica(slot);
      this.schedule.after(downMs, () => this.startReplica(slot));
    }
  }

  notifyReplicas(): void {
    for (const process of this.#processes) {
      if (process === null || !this.network.reachesRecord(process.slot)) continue;
      this.schedule.after(this.network.callDelayMs(), () => this.deliver(process, () => process.notified()));
    }
  }

  #resume(process: Reached): void {
    const stopped = this.#stopped.get(process);
    if (stopped === undefined) return;
    this.#stopped.delete(process);
    if (process instanceof SimulatedProcess) process.observer.stopped(stopped.sinceMs, this.schedule.nowMs);
    // One that was killed while it was stopped goes on with nothing.
    if (process.isAlive) for (const run of stopped.waiting) run();
  }

  async #passUntil(ms: number): Promise<void> {
    while (this.schedule.nowMs < ms && this.invariants.violation === null) await this.#step();
  }

  async #step(): Promise<void> {
    this.invariants.nowMs = this.schedule.nowMs + STEP_MS;
    for (const process of this.#processes) {
      if (process !== null && !this.isStopped(process)) process.follow();
    }
    this.work?.step();
    await this.schedule.advance();
    for (const process of this.#processes) if (process !== null) this.#check.trust(process);
    const { steps } = this.schedule;
    if (steps % LOOK_EVERY_STEPS === 0) {
      for (const agent of [...this.agents, ...this.#clones.values()]) agent.look();
      this.#check.look();
      this.#settleConditions();
      this.work?.look();
    }
    if (steps % COMPACT_EVERY_STEPS === 0) this.#compact();
  }

  #settleConditions(): void {
    for (const process of this.#processes) {
      if (process === null || this.isStopped(process) || !this.network.reachesRecord(process.slot)) continue;
      this.record.settleConditions(process.instance);
    }
  }

  /** How long one way to the record takes, in steps; usually 0. */
  #wayInSteps(): number {
    return Math.floor(this.network.callDelayMs() / STEP_MS + this.random());
  }

  #compact(): void {
    const read = this.#processes.flatMap((process) => process?.readRevision ?? []);
    this.record.compact(Math.min(this.record.revision, ...read, ...(this.work?.readRevisions() ?? [])));
  }
}

const CONNECTION_BROKEN = new StoreUnavailableError("Connection terminated unexpectedly");
