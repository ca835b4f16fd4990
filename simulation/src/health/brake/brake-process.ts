import type { LeaseTiming } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { BrakeDecider, type BrakeStore } from "@rollcall/health/parts";
import { createMetrics, silentLogger, superviseTasks } from "@rollcall/process";
import { BRAKE_LEASE, type Lease, leasedTaskOf, type TaskLeaseStore } from "@rollcall/store";
import { createVirtualClock, type Schedule } from "../schedule.ts";
import { LEASE_EXPIRY_MS, RENEW_EVERY_MS } from "../simulation-options.ts";

const TIMING: LeaseTiming = { renewEveryMs: RENEW_EVERY_MS, expiryMs: LEASE_EXPIRY_MS };
const REQUEST_LOST_SHARE = 0.002;
const ANSWER_LOST_SHARE = 0.001;
const SLOW_SHARE = 0.02;
const MOST_SLOW_STEPS = 3;
const LOST_AFTER_MS = 4_000;
const AWAY = new StoreUnavailableError("Connection terminated unexpectedly");

/** The lease of the brake. Its methods have the same conditions as the store's statements. */
export class BrakeLease {
  #lease: Lease | null = null;

  get holder(): string | null {
    return this.#lease?.instance ?? null;
  }

  read(): Lease | null {
    return this.#lease;
  }

  renew(instance: string): number | null {
    if (this.#lease?.instance !== instance) return null;
    this.#lease = { ...this.#lease, counter: this.#lease.counter + 1 };
    return this.#lease.counter;
  }

  take(instance: string): number | null {
    this.#lease ??= { name: BRAKE_LEASE, instance, service: "health", address: "", counter: 0 };
    return this.renew(instance);
  }

  expire({ instance, counter }: Lease): boolean {
    if (this.#lease?.instance !== instance || this.#lease.counter !== counter) return false;
    this.#lease = null;
    return true;
  }

  release(instance: string): void {
    if (this.holder === instance) this.#lease = null;
  }
}

/** The simulation in which the brake's processes run. */
export interface BrakeWorld {
  readonly schedule: Schedule;
  readonly lease: BrakeLease;
  /** Numbers in [0, 1). */
  random(): number;
  /** The store without delays: each call is executed immediately. */
  recordOf(process: BrakeProcess): BrakeStore;
  fail(message: string): void;
}

/** A health process that sets the brake while it holds the lease: the decider and the leased task as they ship. */
export class BrakeProcess {
  readonly instance: string;
  /** The total number of writes when this process last began to decide. */
  begunAtWrite = 0;
  /** Whether the process is cut off from the store. */
  isCutOff = false;
  readonly #world: BrakeWorld;
  readonly #ending = new AbortController();
  readonly #done: Promise<void>;
  /** When the last successful renewal began. */
  #sureSinceMs = Number.NEGATIVE_INFINITY;
  #deciding: AbortSignal | null = null;
  #isAlive = true;
  /** Calls that wait until the process resumes; null while it is not stopped. */
  #waiting: (() => void)[] | null = null;

  constructor(world: BrakeWorld, instance: string) {
    this.#world = world;
    this.instance = instance;
    const clock = createVirtualClock(world.schedule, (run) => this.#deliver(run));
    const log = silentLogger;
    const decider = new BrakeDecider({
      record: this.#delayed(world.recordOf(this)),
      ...{ clock, log, metrics: createMetrics({ defaults: false }), everyMs: world.schedule.stepMs },
    });
    const task = leasedTaskOf(this.#leaseRecord(), {
      ...{ clock, log, ...TIMING },
      claim: { name: BRAKE_LEASE, instance, service: "health", address: "" },
      work: async (signal, succeeded) => {
        this.#deciding = signal;
        await decider.run(signal, succeeded);
      },
    });
    const random = () => world.random();
    this.#done = superviseTasks([task], { log, clock, random, signal: this.#ending.signal }).done;
  }

  /** Whether the process runs and considers itself the decider. */
  get isDeciding(): boolean {
    return this.isRunning && this.#deciding?.aborted === false && this.#world.lease.holder === this.instance;
  }

  get isRunning(): boolean {
    return this.#isAlive && this.#waiting === null;
  }

  /** Check that the process relies on its lease only while no other process can have ended the lease. */
  checkTrust(): void {
    if (!this.isRunning || this.#deciding === null || this.#deciding.aborted) return;
    if (this.#world.schedule.nowMs - this.#sureSinceMs < LEASE_EXPIRY_MS) return;
    this.#world.fail(`${this.instance} relies on the brake's lease, which may have expired`);
  }

  crash(): void {
    this.#isAlive = false;
    this.#waiting = null;
  }

  /** Shut down gracefully, as after SIGTERM. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#done;
    this.crash();
  }

  /** Pause the process for a while; calls to it wait. */
  stop(ms: number): void {
    if (!this.isRunning) return;
    const waiting: (() => void)[] = [];
    this.#waiting = waiting;
    this.#world.schedule.after(ms, () => {
      if (this.#waiting !== waiting) return;
      this.#waiting = null;
      for (const run of waiting) run();
    });
  }

  #deliver(run: () => void): void {
    if (!this.#isAlive) return;
    if (this.#waiting === null) run();
    else this.#waiting.push(run);
  }

  #leaseRecord(): TaskLeaseStore {
    const { lease, schedule } = this.#world;
    const { instance } = this;
    const proving = async (carryOut: () => number | null) => {
      const askedMs = schedule.nowMs;
      const counter = await this.#call(carryOut);
      if (counter !== null) this.#sureSinceMs = askedMs;
      return counter;
    };
    return {
      take: () => proving(() => lease.take(instance)),
      renew: () => proving(() => lease.renew(instance)),
      read: () => this.#call(() => lease.read()),
      expire: (observed) => this.#call(() => lease.expire(observed)),
      release: () => this.#call(() => lease.release(instance)),
    };
  }

  #delayed(record: BrakeStore): BrakeStore {
    const call = async <T>(carryOut: () => Promise<T>): Promise<T> => {
      const answer = await this.#call(() => {
        const result = carryOut();
        // Prevent an unhandled rejection, because the refusal can be delayed or lost.
        result.catch(() => {});
        return { result };
      });
      return answer.result;
    };
    return {
      list: () => call(() => record.list()),
      lossBefore: (ms) => call(() => record.lossBefore(ms)),
      read: (marks) => call(() => record.read(marks)),
      saveChanges: (changes) => call(() => record.saveChanges(changes)),
      forget: (groups) => call(() => record.forget(groups)),
      release: (releases) => call(() => record.release(releases)),
      releaseOrdered: (release, order) => call(() => record.releaseOrdered(release, order)),
      saveFollowed: (order) => call(() => record.saveFollowed(order)),
    };
  }

  #call<T>(carryOut: () => T): Promise<T> {
    const { schedule } = this.#world;
    return new Promise((resolve, reject) => {
      const lose = () => void schedule.after(LOST_AFTER_MS, () => this.#deliver(() => reject(AWAY)));
      schedule.afterSteps(this.#wayInSteps(), () => {
        if (this.isCutOff || this.#world.random() < REQUEST_LOST_SHARE) {
          lose();
          return;
        }
        const result = carryOut();
        if (this.#world.random() < ANSWER_LOST_SHARE) lose();
        else schedule.afterSteps(this.#wayInSteps(), () => this.#deliver(() => resolve(result)));
      });
    });
  }

  /** The one-way delay to the store, in steps; usually 0. */
  #wayInSteps(): number {
    return this.#world.random() < SLOW_SHARE ? Math.ceil(this.#world.random() * MOST_SLOW_STEPS) : 0;
  }
}
