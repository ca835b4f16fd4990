import { BRAKE_CLUSTER } from "../brake/brake.ts";
import { isHeldByFreeze } from "../brake/brake-orders.ts";
import type { BrakePlan, BrakeRow } from "../brake/brake-plan.ts";
import { BrakePlanner } from "../brake/brake-planner.ts";
import type { BrakeSums, GroupSum } from "../brake/brake-sums.ts";

/** A node as the brake sees it. */
export interface FleetNode {
  readonly group: string;
  state: "HEALTHY" | "SILENT" | "LOST";
  loss: number;
  reaction: null | "PENDING" | "ALLOWED";
}

/** Simulates a store with nodes and brakes, and one reporting replica. */
export class Fleet {
  readonly nodes: FleetNode[] = [];
  readonly rows = new Map<string, BrakeRow>();
  planner: BrakePlanner;
  nowMs = 0;
  #lastLoss = 0;
  #sums: BrakeSums = { sequence: 0, groups: new Map() };

  constructor(sizes: Readonly<Record<string, number>>) {
    for (const [group, size] of Object.entries(sizes)) {
      for (let index = 0; index < size; index++) this.nodes.push({ group, state: "HEALTHY", loss: 0, reaction: null });
    }
    this.planner = this.restart();
    this.report();
  }

  restart(): BrakePlanner {
    this.planner = new BrakePlanner({
      atMs: this.nowMs,
      lossBefore: 0,
      rows: [...this.rows.values()],
    });
    return this.planner;
  }

  of(group: string): readonly FleetNode[] {
    return this.nodes.filter((node) => node.group === group);
  }

  silence(nodes: readonly FleetNode[]): void {
    for (const node of nodes) if (node.state === "HEALTHY") node.state = "SILENT";
  }

  lose(nodes: readonly FleetNode[]): void {
    for (const node of nodes) {
      if (node.state === "LOST") continue;
      this.#lastLoss += 1;
      Object.assign(node, { state: "LOST", loss: this.#lastLoss, reaction: "PENDING" });
    }
  }

  recover(nodes: readonly FleetNode[]): void {
    for (const node of nodes) Object.assign(node, { state: "HEALTHY", loss: 0, reaction: null });
  }

  report(): void {
    const groups = new Map<string, GroupSum>();
    for (const { group, state } of this.nodes) {
      if (state === "LOST") continue;
      for (const name of [group, BRAKE_CLUSTER]) {
        const { healthy, silent } = groups.get(name) ?? { healthy: 0, silent: 0 };
        groups.set(name, { healthy: healthy + 1, silent: silent + (state === "SILENT" ? 1 : 0) });
      }
    }
    this.#sums = { sequence: this.#sums.sequence + 1, groups };
  }

  set(group: string, change: Partial<BrakeRow>): void {
    this.rows.set(group, { ...(this.rows.get(group) ?? rowOf(group)), ...change });
  }

  /**
   * Advance by one second, scan, and carry out the plan. Returns the plan and the nodes whose reactions were released.
   */
  look(): { readonly plan: BrakePlan; readonly went: readonly FleetNode[] } {
    this.nowMs += 1_000;
    const marks = this.planner.marks();
    const count = (group: string, test: (node: FleetNode) => boolean) =>
      this.of(group).filter((node) => node.state === "LOST" && test(node)).length;
    const windowOf = (group: string) => marks.windows.get(group) ?? marks.window;
    const losses = [...new Set(this.nodes.map(({ group }) => group))].map((group) => ({
      group,
      lost: count(group, ({ loss }) => loss > windowOf(group)),
      lostOfCluster: count(group, ({ loss }) => loss > windowOf(BRAKE_CLUSTER)),
      unsettled: count(group, ({ loss }) => loss > marks.settled),
      pending: count(group, ({ reaction }) => reaction === "PENDING"),
    }));
    const reports = new Map([["r1", this.#sums]]);
    const rows = [...this.rows.values()];
    const plan = this.planner.plan({ reports, losses, lastLoss: this.#lastLoss, rows }, this.nowMs);
    for (const { group, after, size, windowLoss } of plan.changes) this.set(group, { mode: after, size, windowLoss });
    for (const group of plan.forgotten) this.rows.delete(group);
    return { plan, went: this.#release(plan) };
  }

  /** Report and scan once per second for this many seconds. Returns the nodes whose reactions were released. */
  run(seconds: number): readonly FleetNode[] {
    const went: FleetNode[] = [];
    for (let second = 0; second < seconds; second++) {
      this.report();
      went.push(...this.look().went);
    }
    return went;
  }

  mode(group: string): string {
    return this.planner.states().get(group) ?? "NORMAL";
  }

  #release({ orders, releases }: BrakePlan): readonly FleetNode[] {
    const went: FleetNode[] = [];
    const allow = (nodes: readonly FleetNode[]) => {
      for (const node of nodes) node.reaction = "ALLOWED";
      went.push(...nodes);
      return nodes.length;
    };
    const pending = (group: string, upTo: number) =>
      this.of(group)
        .filter(({ reaction, loss }) => reaction === "PENDING" && loss <= upTo)
        .sort((one, other) => one.loss - other.loss);
    for (const { group, orders: followed, orderedLoss } of orders) {
      const groups = group === BRAKE_CLUSTER ? new Set(this.nodes.map((it) => it.group)) : [group];
      for (const name of groups) if (!isHeldByFreeze([...this.rows.values()], name)) allow(pending(name, orderedLoss));
      this.set(group, { followed });
    }
    for (const { group, most, upTo } of releases) {
      const count = allow(pending(group, upTo).slice(0, most));
      this.planner.released(group, count, this.nowMs);
    }
    return went;
  }
}

function rowOf(group: string): BrakeRow {
  return {
    group,
    mode: "NORMAL",
    sinceMs: 0,
    size: 0,
    windowLoss: 0,
    frozen: null,
    orders: 0,
    followed: 0,
    orderedLoss: 0,
    orderedBy: "token:t",
    orderReason: "",
  };
}
