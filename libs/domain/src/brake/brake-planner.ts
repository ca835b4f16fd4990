import {
  BRAKE_CLUSTER,
  type BrakeCounts,
  type BrakeMode,
  type BrakeState,
  brakeCounts,
  decideBrake,
  isCalm,
} from "./brake.ts";
import { BrakeHistory } from "./brake-history.ts";
import { brakeStateOf, lossesByGroup, ownWindows, windowLossOf } from "./brake-losses.ts";
import { isHeldByFreeze } from "./brake-orders.ts";
import { ReleasePace } from "./brake-pace.ts";
import type { BrakeChange, BrakeMarks, BrakePlan, BrakeReading, BrakeRelease, BrakeRow } from "./brake-plan.ts";
import { addBrakeSums, type GroupSum } from "./brake-sums.ts";

/** Maximum number of groups with their own brake. Nodes of other groups are subject only to the cluster's brake. */
export const MOST_BRAKE_GROUPS = 1_000;

/** The planner's state of one group's brake. */
interface Group {
  mode: BrakeMode;
  /** The size of the group when the storm began. Valid while the mode is not NORMAL. */
  size: number;
  /** Losses up to this number no longer count. */
  windowLoss: number;
  pace: ReleasePace | null;
  counts: BrakeCounts;
  pending: number;
}

/**
 * Decides which brakes are set and how many reactions can be released, from the counts of all replicas and the losses
 * in the store. Only one process in the cluster runs a planner. When another process takes over, its planner starts
 * with the brakes in the store, and releases nothing until every replica has reported again.
 */
export class BrakePlanner {
  readonly #history: BrakeHistory;
  readonly #groups = new Map<string, Group>();
  #rows: ReadonlyMap<string, BrakeRow> = new Map();

  /**
   * @param start `lossBefore` is the number of the last loss before the window. `atMs` is on the same clock as every
   *   scan. This clock stops while the process is stopped.
   */
  constructor(start: {
    readonly atMs: number;
    readonly lossBefore: number;
    readonly rows: readonly BrakeRow[];
  }) {
    this.#history = new BrakeHistory(start);
    this.#rows = new Map(start.rows.map((row) => [row.group, row]));
    for (const { group, mode, size, windowLoss } of start.rows) {
      const pace = mode === "NORMAL" ? null : new ReleasePace(size, start.atMs);
      this.#groups.set(group, { ...newGroup(), mode, size, windowLoss, pace });
    }
  }

  /** Which losses to count in the next scan. */
  marks(): BrakeMarks {
    const window = this.#history.windowLoss;
    return { settled: this.#history.settledLoss, window, windows: ownWindows(this.#groups, window) };
  }

  /** The current state of the cluster's brake and of all known groups' brakes, for people. */
  states(): ReadonlyMap<string, BrakeState> {
    return new Map([...this.#groups.keys()].map((group) => [group, this.#state(group)]));
  }

  /** Update the brakes from one scan. `reading` must use the marks that `marks()` returned last. */
  plan(reading: BrakeReading, nowMs: number): BrakePlan {
    const { reports, losses, rows, lastLoss } = reading;
    this.#rows = new Map(rows.map((row) => [row.group, row]));
    const totals = addBrakeSums([...reports.values()]);
    this.#history.observe({ lastLoss, reports, totals }, nowMs);
    this.#takeIn(reading, totals);
    const orders = rows.filter((row) => row.orders > row.followed);
    const ordered = new Map(
      [...this.#groups.keys()].flatMap((group) => {
        const order = orders.find((it) => it.group === group || it.group === BRAKE_CLUSTER);
        // A freeze after an order cancels what the order has not released yet.
        return order === undefined || isHeldByFreeze(rows, group) ? [] : [[group, order] as const];
      }),
    );
    const changes = [...this.#groups].flatMap(([group, it]) =>
      this.#decide(group, it, ordered.get(group) ?? null, nowMs),
    );
    const ungrouped = losses.find(({ group }) => group === "")?.pending ?? 0;
    return {
      changes,
      orders,
      releases: this.#release(ungrouped, nowMs),
      forgotten: this.#forget(totals),
    };
  }

  /** Record how many reactions of a group the last plan released. `group` is "" for nodes without a group. */
  released(group: string, count: number, nowMs: number): void {
    for (const name of new Set([group, BRAKE_CLUSTER])) {
      this.#groups.get(name)?.pace?.spend(count, nowMs);
    }
  }

  /**
   * Update the counts of every group. A group's size is the larger of two numbers: the nodes that were HEALTHY when the
   * window began, and the nodes that are HEALTHY now or were lost since. The first number can be too low, because this
   * process may have made its first scan less than a minute ago, or because nodes were moving between two replicas.
   */
  #takeIn({ losses }: BrakeReading, totals: ReadonlyMap<string, GroupSum>): void {
    const byGroup = lossesByGroup(losses);
    const names = [BRAKE_CLUSTER, ...this.#groups.keys(), ...totals.keys(), ...byGroup.keys()];
    for (const name of names) {
      if (name === "" || (this.#groups.size > MOST_BRAKE_GROUPS && !this.#groups.has(name))) continue;
      const it = this.#groups.get(name) ?? newGroup();
      it.pending = byGroup.get(name)?.pending ?? 0;
      // During a storm, use the group's size at the start of the storm. If the group has grown since, brakeCounts()
      // uses the larger current size. Otherwise, the loss of the initial number of nodes would look like the loss of
      // the whole group.
      const known = it.mode === "NORMAL" ? this.#history.healthyAtStart(name) : it.size;
      it.counts = brakeCounts(known, totals.get(name), byGroup.get(name));
      this.#groups.set(name, it);
    }
  }

  #decide(group: string, it: Group, order: BrakeRow | null, nowMs: number): readonly BrakeChange[] {
    const before = it.mode;
    const after = order === null ? decideBrake(before, it.counts) : "NORMAL";
    if (order !== null) it.windowLoss = Math.max(it.windowLoss, order.orderedLoss);
    if (after === before && order === null) return [];
    if (before === "NORMAL" && after !== "NORMAL") {
      it.size = it.counts.size;
      it.windowLoss = windowLossOf(it, this.#history.windowLoss);
    }
    if (before === "NORMAL" || after === "NORMAL") {
      it.pace = after === "NORMAL" ? null : new ReleasePace(it.size, nowMs);
    }
    it.mode = after;
    const { size, windowLoss, counts } = it;
    const isShown = after !== before && !this.#isFrozen(group);
    return [{ group, before, after, isShown, size, windowLoss, counts, order }];
  }

  #release(ungrouped: number, nowMs: number): readonly BrakeRelease[] {
    const settled = this.#history.settledLoss;
    let left = this.#allowance(BRAKE_CLUSTER, nowMs);
    const pending = [...this.#groups]
      .filter(([group]) => group !== BRAKE_CLUSTER)
      .map(([group, it]) => ({ group, count: it.pending }));
    // Serve groups with the fewest losses first, so that a storm elsewhere does not use up the cluster's allowance.
    const waiting = [...pending, { group: "", count: ungrouped }]
      .filter(({ count }) => count > 0)
      .sort((one, other) => one.count - other.count);
    const releases: BrakeRelease[] = [];
    for (const { group, count } of waiting) {
      const allowed = group === "" ? count : this.#allowance(group, nowMs);
      const most = Math.min(count, allowed, left);
      if (most <= 0) continue;
      left -= most;
      const states = [this.#state(group), this.#state(BRAKE_CLUSTER)];
      const brake = states.includes("PARTIAL") ? "PARTIAL" : "NORMAL";
      releases.push({ group, most, upTo: settled, brake });
    }
    return releases;
  }

  #allowance(group: string, nowMs: number): number {
    const it = this.#groups.get(group);
    if (it === undefined) return Number.POSITIVE_INFINITY;
    switch (this.#state(group)) {
      case "NORMAL":
        return isCalm(it.counts) ? Number.POSITIVE_INFINITY : 0;
      case "PARTIAL":
        return it.pace?.allowance(nowMs) ?? 0;
      case "FULL":
      case "FROZEN":
        // This call discards the credit earned while nothing is released, so that it cannot be spent later.
        it.pace?.allowance(nowMs);
        return 0;
    }
  }

  /** Forget groups without nodes or losses, and return the groups whose row the store can delete. */
  #forget(totals: ReadonlyMap<string, GroupSum>): readonly string[] {
    const forgotten: string[] = [];
    for (const [group, { mode, counts, pending, windowLoss }] of this.#groups) {
      if (mode !== "NORMAL" || this.#isFrozen(group)) continue;
      if (counts.lost + pending > 0 || windowLoss > this.#history.windowLoss) continue;
      const row = this.#rows.get(group);
      if (row !== undefined && row.orders === row.followed) forgotten.push(group);
      const isGone = !totals.has(group) && this.#history.healthyAtStart(group) === 0;
      if (isGone && group !== BRAKE_CLUSTER) this.#groups.delete(group);
    }
    return forgotten;
  }

  #isFrozen(group: string): boolean {
    return (this.#rows.get(group)?.frozen ?? null) !== null;
  }

  #state(group: string): BrakeState {
    const frozen = this.#rows.get(group)?.frozen ?? null;
    return brakeStateOf({ mode: this.#groups.get(group)?.mode ?? "NORMAL", frozen });
  }
}

function newGroup(): Group {
  const counts: BrakeCounts = { size: 0, silent: 0, lost: 0, unsettled: 0 };
  return { mode: "NORMAL", size: 0, windowLoss: 0, pace: null, counts, pending: 0 };
}
