import { isOfInterest, WorkMemory } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { type Logger, silentLogger, superviseTasks } from "@rollcall/process";
import { Leader, type LeaderMetrics, type LeaderOptions, type LeaderStore } from "@rollcall/scheduler/leader";
import {
  type Following,
  type FollowOptions,
  leasedTaskOf,
  SCHEDULER_LEASE,
  SCHEDULER_LEASE_TIMING,
} from "@rollcall/store";
import { createVirtualClock, type Reached, type WorkWorld } from "../health/index.ts";
import { leaderReads } from "./leader-view.ts";
import type { SimulatedLease } from "./simulated-lease.ts";
import type { WorkTables } from "./work-tables.ts";

/** The part of the simulated world that a scheduler uses. */
export interface SchedulerWorld {
  readonly world: WorkWorld;
  readonly tables: WorkTables;
  readonly lease: SimulatedLease;
  /** Write a commit of this instance, with no other transaction in between. */
  readonly commit: (instance: string, commit: Parameters<LeaderStore["commitWork"]>[0]) => Committed;
}

type Committed = Awaited<ReturnType<LeaderStore["commitWork"]>>;

interface Follower {
  readonly options: FollowOptions;
  position: number;
}

const POLL_MS = 1_000;
const GATHER_MS = 250;
/** The share of steps after which a leader crashes while faults are enabled. */
const CRASH_SHARE = 0.0005;

/** One scheduler: the shipped leader with its lease, on a virtual clock and a simulated store. */
export class SimulatedScheduler implements Reached {
  readonly instance: string;
  readonly slot: number;
  isAlive = true;
  readonly #options: SchedulerWorld;
  readonly #followers = new Set<Follower>();
  readonly #wakers = new Set<() => void>();
  readonly #ending = new AbortController();
  readonly #leader: Leader;

  constructor(options: SchedulerWorld, instance: string, slot: number) {
    this.#options = options;
    this.instance = instance;
    this.slot = slot;
    const { world, lease } = options;
    const clock = createVirtualClock(world.schedule, (run) => world.deliver(this, run));
    const log = complainingLog(world, instance);
    const random = () => world.random();
    const leaderOptions: LeaderOptions = {
      ...{ instance, clock, log, random, record: this.#record() },
      feed: { follow: (follow) => this.#follow(follow) },
      signals: { follow: (_side, wake) => this.#onSignal(wake) },
      timing: { pollMs: POLL_MS, gatherMs: GATHER_MS, clockEveryMs: 10_000, ...SCHEDULER_LEASE_TIMING },
      afterStep: () => {
        if (!world.network.isCalm && world.random() < CRASH_SHARE) throw new StoreUnavailableError("crash of a step");
      },
    };
    this.#leader = new Leader(leaderOptions, NO_METRICS, () => new WorkMemory());
    const call = <T>(carryOut: () => T) => world.callRecord(this, carryOut);
    const leading = leasedTaskOf(
      {
        take: () => call(() => lease.take(instance)),
        read: () => call(() => lease.read()),
        renew: () => call(() => lease.renew(instance)),
        expire: (other) => call(() => lease.expire(other)),
        release: () => call(() => lease.release(instance)),
      },
      {
        ...{ clock, log, ...SCHEDULER_LEASE_TIMING },
        claim: { name: SCHEDULER_LEASE, instance, service: "scheduler", address: instance },
        work: (signal, succeeded) => this.#leader.run(signal, succeeded),
      },
    );
    void superviseTasks([leading], { log, clock, random, signal: this.#ending.signal }).done;
  }

  get isLeading(): boolean {
    return this.#leader.isLeading;
  }

  /** The revision up to which the scheduler has read the log; null if it follows nothing. */
  get readRevision(): number | null {
    const positions = [...this.#followers].map(({ position }) => position);
    return positions.length === 0 ? null : Math.min(...positions);
  }

  /** Die. From now on, nothing reaches the scheduler. */
  kill(): void {
    this.isAlive = false;
    this.#followers.clear();
    this.#wakers.clear();
  }

  /** Read new entries of the log. Do nothing if the read fails. */
  follow(): void {
    const { world } = this.#options;
    if (!this.isAlive || world.isStopped(this) || !world.network.reachesRecord(this.slot)) return;
    for (const follower of this.#followers) {
      if (follower.position === world.record.revision || world.random() < 0.5) continue;
      const { interest, deliver } = follower.options;
      const all = world.record.eventsAfter(follower.position, { types: null, displaced: new Set() });
      follower.position = world.record.revision;
      const wanted = all.filter((event) => interest === undefined || isOfInterest(interest, event));
      deliver(wanted, BigInt(follower.position));
    }
  }

  /** Wake the scheduler, because a node's observations of its executions have changed. */
  notified(): void {
    for (const wake of this.#wakers) wake();
  }

  #record(): LeaderStore {
    const { world, tables, commit } = this.#options;
    const call = <T>(carryOut: () => T) => world.callRecord(this, carryOut);
    return {
      ...leaderReads(tables, call),
      currentRevision: () => call(() => BigInt(world.record.revision)),
      commitWork: (work) => call(() => commit(this.instance, work)),
    };
  }

  #follow(options: FollowOptions): Omit<Following, "caughtUpTo"> {
    const follower: Follower = { options, position: Number(options.after ?? 0n) };
    this.#followers.add(follower);
    return {
      get position() {
        return BigInt(follower.position);
      },
      caughtUp: Promise.resolve(),
      leave: () => this.#followers.delete(follower),
    };
  }

  #onSignal(wake: () => void): () => void {
    this.#wakers.add(wake);
    return () => this.#wakers.delete(wake);
  }
}

const ignore = () => {};
const NO_METRICS: LeaderMetrics = {
  ...{ planned: ignore, committed: ignore, changed: ignore, loaded: ignore, setWork: ignore },
};

/**
 * Create a logger for the shipped code. It treats a logged error as a bug, unless another process holds the lease or
 * the store is unavailable.
 */
function complainingLog({ invariants }: WorkWorld, instance: string): Logger {
  const complain = ({ err }: { err?: unknown }, message: string) => {
    if (err instanceof Error && /another process holds the scheduler's lease/.test(err.message)) return;
    invariants.note(`${instance} logged "${message}": ${err instanceof Error ? err.stack : String(err)}`);
  };
  const log: Logger = {
    ...silentLogger,
    error: complain,
    warn: (fields, message) => {
      if (message === "task failed") complain(fields, message);
    },
    child: () => log,
  };
  return log;
}
