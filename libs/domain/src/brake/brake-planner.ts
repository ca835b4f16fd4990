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
import { ReleasePace } from "./brake-pace.ts";
import type { BrakeChange, BrakeMarks, BrakePlan, BrakeReading, BrakeRelease, BrakeRow } from "./brake-plan.ts";
import { addBrakeSums, type GroupSum } from "./brake-sums.ts";

/** Groups at most that have a brake of their own; the nodes of others have the cluster's alone. */
export const MOST_BRAKE_GROUPS = 1_000;

/** One group's brake as its planner knows it. */
interface Group {
  mode: BrakeMode;
  /** While the mode is not NORMAL: the size and the losses of the window in which the storm began. */
  size: number;
  /** Losses up to it no longer count. */
  windowLoss: number;
  pace: ReleasePace | null;
  counts: BrakeCounts;
  pending: number;
}

/**
 * Decides, from what all replicas count and what the record has of losses, which brake is set and how many reactions
 * may go. It is one process's; the next one begins with what the record keeps of brakes, and lets nothing go before
 * every replica has reported again.
 */
export class BrakePlanner {
  readonly #history: BrakeHistory;
  readonly #groups = new Map<string, Group>();
  #rows: ReadonlyMap<string, BrakeRow> = new Map();

  /**
   * @param start `lossBefore` is the last loss older than the window, `atMs` of the same clock as every look: it stands
   * still
   *   while this process does.
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

  /** Which losses to count at the next look. */
  marks(): BrakeMarks {
    const window = this.#history.windowLoss;
    return { settled: this.#history.settledLoss, window, windows: ownWindows(this.#groups, window) };
  }

  /** The brakes as they are, for people: the cluster's, and those of all groups that are known. */
  states(): ReadonlyMap<string, BrakeState> {
    return new Map([...this.#groups.keys()].map((group) => [group, this.#state(group)]));
  }

  /** Decide again. `reading` was made with the last `marks()`. */
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
        return order === undefined || this.#isFrozen(group) ? [] : [[group, order] as const];
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

  /** So many of a group's reactions were let through by the last plan. `group` is "" for nodes of none. */
  released(group: string, count: number, nowMs: number): void {
    for (const name of new Set([group, BRAKE_CLUSTER])) {
      this.#groups.get(name)?.pace?.spend(count, nowMs);
    }
  }

  /**
   * A group's size: nodes that were HEALTHY when the window began, or as many as are HEALTHY now or were lost since, if
   * those are more: a minute ago this process may not have looked yet, or some nodes have been between two replicas.
   */
  #takeIn({ losses }: BrakeReading, totals: ReadonlyMap<string, GroupSum>): void {
    const byGroup = lossesByGroup(losses);
    const names = [BRAKE_CLUSTER, ...this.#groups.keys(), ...totals.keys(), ...byGroup.keys()];
    for (const name of names) {
      if (name === "" || (this.#groups.size > MOST_BRAKE_GROUPS && !this.#groups.has(name))) continue;
      const it = this.#groups.get(name) ?? newGroup();
      it.pending = byGroup.get(name)?.pending ?? 0;
      // A group that has grown since a storm began in it is not all gone when as many are lost as it had then.
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
    // The deaths that are few by themselves come first: a storm elsewhere must not use up what the cluster lets
    // through.
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
        // Time that passes now earns nothing for later.
        it.pace?.allowance(nowMs);
        return 0;
    }
  }

  /** Forget groups of which there is nothing left, and name those of which the record need keep nothing. */
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
