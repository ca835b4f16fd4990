import {
  BRAKE_CLUSTER,
  BRAKE_WINDOW_MS,
  type BrakePlan,
  BrakePlanner,
  type BrakeReading,
  type BrakeRelease,
  type BrakeRow,
  type BrakeState,
  isHeldByFreeze,
  ObservedTime,
} from "@rollcall/domain";
import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { BRAKE_LEASE, type LeasedTask, type LeasedTaskOptions, leasedTask } from "@rollcall/store";
import { type BrakeMetrics, createBrakeMetrics } from "./brake-metrics.ts";
import type { BrakeStore } from "./brake-store.ts";

export interface BrakeDeciderOptions {
  /** The store, which accepts writes only while this process holds the lease of the brake. */
  readonly record: BrakeStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Time between two reads of the store; default 1000. */
  readonly everyMs?: number;
}

const DEFAULT_EVERY_MS = 1_000;
/**
 * Maximum number of intervals that count for one tick. If more time has passed since the last tick, the rest is
 * ignored, because no reaction could be released during it.
 */
const INTERVALS_IN_GAP = 3;
/** Maximum number of releases per tick, so that a storm is noticed while releases continue. */
const MAX_PER_SCAN = 2_000;
const MOST_A_CHANGE = 500;

/** Sets the brake and releases reactions while this process holds the brake's lease. */
export class BrakeDecider {
  readonly #options: BrakeDeciderOptions;
  readonly #metrics: BrakeMetrics;
  #planner: BrakePlanner | null = null;
  #failures = 0;

  constructor(options: BrakeDeciderOptions) {
    this.#options = options;
    this.#metrics = createBrakeMetrics(options.metrics, () => this.states());
  }

  /** The current brakes; empty while another process decides. */
  states(): ReadonlyMap<string, BrakeState> {
    return this.#planner?.states() ?? new Map();
  }

  /** Decide until the signal aborts. Throws when another process holds the lease. */
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, everyMs = DEFAULT_EVERY_MS } = this.#options;
    const maxGapMs = everyMs * INTERVALS_IN_GAP;
    const time = new ObservedTime({ startMs: clock.nowMs(), maxGapMs });
    try {
      // Do not use a Loop, because a tick without the store is not a success, but does not fail the task either.
      while (!signal.aborted) {
        time.advance(clock.nowMs());
        if (await this.#look(time.at(clock.nowMs()), signal)) succeeded();
        await clock.sleep(everyMs, signal);
      }
    } finally {
      this.#planner = null;
    }
  }

  /**
   * Plan and carry out one tick. Returns false when the store is unavailable; the next tick then begins with a new
   * planner.
   */
  async #look(nowMs: number, signal: AbortSignal): Promise<boolean> {
    const { record, log } = this.#options;
    try {
      this.#planner ??= await this.#begin(nowMs);
      const reading = await record.read(this.#planner.marks());
      const plan = this.#planner.plan(reading, nowMs);
      await this.#carryOut(plan, reading, nowMs, signal);
      if (this.#failures > 0) log.info({ failures: this.#failures }, "the brake can reach the store again");
      this.#failures = 0;
      return true;
    } catch (err) {
      this.#planner = null;
      if (!isStoreUnavailable(err)) throw err;
      this.#failures += 1;
      if (this.#failures === 1) log.warn({ err }, "the brake cannot reach the store; reactions wait");
      return false;
    }
  }

  async #begin(atMs: number): Promise<BrakePlanner> {
    const { record } = this.#options;
    const [rows, last] = await Promise.all([record.list(), record.lossBefore(BRAKE_WINDOW_MS)]);
    return new BrakePlanner({ atMs, rows, lossBefore: last });
  }

  async #carryOut(plan: BrakePlan, reading: BrakeReading, nowMs: number, signal: AbortSignal): Promise<void> {
    const { record } = this.#options;
    const { changes, forgotten, orders, releases } = plan;
    // Set brakes first, then release.
    if (changes.length > 0) await record.saveChanges(changes);
    if (forgotten.length > 0) await record.forget(forgotten);
    for (const order of orders) await this.#follow(order, reading, signal);
    let left = MAX_PER_SCAN;
    while (left > 0 && !signal.aborted) {
      const part = take(releases, MAX_PER_SCAN - left, Math.min(left, MOST_A_CHANGE));
      if (part.length === 0) return;
      left -= part.reduce((sum, { most }) => sum + most, 0);
      const allowed = await record.release(part);
      for (const { group } of allowed) this.#planner?.released(group, 1, nowMs);
      for (const { reason } of allowed) this.#metrics.allowed(reason, 1);
    }
  }

  /**
   * Release everything that an operator's order covers, except what an operator has frozen since. If this process stops
   * halfway, the next decider repeats the order.
   */
  async #follow(order: BrakeRow, reading: BrakeReading, signal: AbortSignal): Promise<void> {
    const groups = reading.losses
      .filter(({ group, pending }) => pending > 0 && !isHeldByFreeze(reading.rows, group))
      .map(({ group }) => group)
      .filter((group) => order.group === BRAKE_CLUSTER || order.group === group);
    for (const group of groups) {
      const part = { group, most: MOST_A_CHANGE, upTo: order.orderedLoss };
      for (;;) {
        signal.throwIfAborted();
        const count = await this.#options.record.releaseOrdered(part, order);
        this.#metrics.allowed("OPERATOR_RELEASED", count);
        if (count < MOST_A_CHANGE) break;
      }
    }
    await this.#options.record.saveFollowed(order);
  }
}

/** Return up to `most` reactions of the releases, without the first `skipped` ones. */
function take(releases: readonly BrakeRelease[], skipped: number, most: number): readonly BrakeRelease[] {
  let ahead = skipped;
  let left = most;
  const part: BrakeRelease[] = [];
  for (const release of releases) {
    const past = Math.min(ahead, release.most);
    ahead -= past;
    const count = Math.min(release.most - past, left);
    left -= count;
    if (count > 0) part.push({ ...release, most: count });
  }
  return part;
}

/** Run the decider in one health process at a time. */
export function decideBrakeTask(
  decider: BrakeDecider,
  options: Pick<LeasedTaskOptions, "store" | "clock" | "log" | "renewEveryMs" | "expiryMs"> & {
    readonly instance: string;
  },
): LeasedTask {
  const { instance, ...shared } = options;
  return leasedTask({
    ...shared,
    claim: { name: BRAKE_LEASE, instance, service: "health", address: "" },
    work: (signal, succeeded) => decider.run(signal, succeeded),
  });
}
