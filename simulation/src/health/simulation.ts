import { seededRandom } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { AgentSession } from "@rollcall/health/parts";
import { FaultPlan } from "./faults/fault-plan.ts";
import { InvariantBroken, Invariants } from "./invariants.ts";
import { Schedule } from "./schedule.ts";
import { SimulatedAgent } from "./simulated-agent.ts";
import { SimulatedCaller } from "./simulated-caller.ts";
import { SimulatedNetwork } from "./simulated-network.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { SimulatedStore } from "./simulated-store.ts";
import { SimulatedStream } from "./simulated-stream.ts";
import type { Reached, SimulatedWork, WorkWorld } from "./simulated-work.ts";
import { type SimulationOptions, STEP_MS } from "./simulation-options.ts";
import { StateCheck } from "./state-check.ts";
import type { World, WorldAgent } from "./world.ts";

export interface SimulationResult {
  readonly steps: number;
  readonly simulatedMs: number;
  /** Changes in the store, each with its event. */
  readonly transitions: number;
  /** Nodes declared UNHEALTHY or UNKNOWN by a replica. */
  readonly declarations: number;
  /** Number of declarations and goodbyes that were written to the store. */
  readonly recordedLosses: number;
  readonly faults: number;
  readonly checks: number;
  /** Human-readable result of the work; "" without work. */
  readonly work: string;
  /** The broken invariant; null for none. */
  readonly violation: string | null;
}

/** One in this many agents uses unary calls instead of a stream. */
const CALLER_EVERY = 5;
const SCAN_EVERY_STEPS = 1_000 / STEP_MS;
const START_WITHIN_MS = 60_000;
const ANSWER_LOST_AFTER_MS = 4_000;
const ANSWER_LOST_SHARE = 0.01;
const REQUEST_LOST_SHARE = 0.005;
/**
 * How long to run after the last fault has ended. This is enough for a failover, and for every agent to come back
 * or be declared UNKNOWN. The store can be unavailable for ten minutes.
 */
const SETTLE_MS = 1_200_000;
/** Like SETTLE_MS, for nodes that run work. This is enough for waiting work to be retried as well. */
const SETTLE_WORK_MS = 1_800_000;
const COMPACT_EVERY_STEPS = 4_000;

/** Creates the work on the nodes of a simulation. */
export type CreateWork = (world: WorkWorld) => SimulatedWork;

/** Run a simulation to its end, or to the first broken invariant. Without `createWork`, its nodes run no work. */
export async function simulate(options: SimulationOptions, createWork?: CreateWork): Promise<SimulationResult> {
  const simulation = new Simulation(options, createWork);
  try {
    await simulation.run();
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
  }
  return simulation.decision();
}

/** Agents, replicas, their store and the network between them, in steps of virtual time. */
class Simulation implements World, WorkWorld {
  readonly schedule = new Schedule(STEP_MS);
  readonly invariants: Invariants;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedStore;
  readonly agents: readonly WorldAgent[];
  readonly random: () => number;
  readonly work: SimulatedWork | null;
  readonly #options: SimulationOptions;
  readonly #faults: FaultPlan;
  readonly #check: StateCheck;
  readonly #processes: (SimulatedProcess | null)[];
  readonly #stopped = new Map<Reached, { sinceMs: number; waiting: (() => void)[] }>();
  /** Second agents, keyed by node index. */
  readonly #clones = new Map<number, SimulatedAgent>();
  #started = 0;

  constructor(options: SimulationOptions, createWork: CreateWork | undefined) {
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.invariants = new Invariants(options.agents);
    this.network = new SimulatedNetwork(this.schedule, this.random);
    this.record = new SimulatedStore(options.agents, {
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

  /** Agents with unary calls run no work. */
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

  decision(): SimulationResult {
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

  /** Start a process in a slot, unless one runs there. */
  startReplica(slot: number): void {
    if (this.#processes[slot] !== null) return;
    this.#started += 1;
    this.#processes[slot] = new SimulatedProcess(this, `h${slot}-${this.#started}`, slot);
  }

  cloneAgent(index: number, ms: number): void {
    // Skip agents with unary calls, because they have no stream that a clone could take over, and nodes that
    // already have a clone.
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

  /** Kill the process in a slot. Reachable agents notice. */
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

  /** Shut down the process in a slot gracefully, and start another one some time after it has ended. */
  restartReplica(slot: number, downMs: number): void {
    const process = this.#processes[slot];
    if (process === null || process === undefined || this.isStopped(process) || process.isHidden) return;
    void process.close().then(() => {
      process.isAlive = false;
      this.#processes[slot] = null;
      this.schedule.after(downMs, () => this.startReplica(slot));
    });
  }

  /** Pause a process for a while; deliveries to it wait. */
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
    // Do not resume a process that was killed while it was stopped.
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
    if (steps % SCAN_EVERY_STEPS === 0) {
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

  /** The one-way delay to the store, in steps; usually 0. */
  #wayInSteps(): number {
    return Math.floor(this.network.callDelayMs() / STEP_MS + this.random());
  }

  #compact(): void {
    const read = this.#processes.flatMap((process) => process?.readRevision ?? []);
    this.record.compact(Math.min(this.record.revision, ...read, ...(this.work?.readRevisions() ?? [])));
  }
}

const CONNECTION_BROKEN = new StoreUnavailableError("Connection terminated unexpectedly");
