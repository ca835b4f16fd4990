import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema, JobType, ProcessTaskSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { type Execution, type HealthState, type PlacedNode, type Reaction, WorkMemory } from "@rollcall/domain";
import { silentLogger, systemClock } from "@rollcall/process";
import { Leader, type LeaderMetrics, type LeaderOptions } from "@rollcall/scheduler/leader";
import type { EventRow, FollowOptions } from "@rollcall/store";
import { commitPlan } from "./commit-plan.ts";
import { leaderReads } from "./leader-view.ts";
import { WorkOperator } from "./work-operator.ts";
import { WorkTables } from "./work-tables.ts";

type Step = Parameters<LeaderOptions["afterStep"]>[0];

const ORDERS = 120;
const WORK = {
  ...{ executors: ["process"], millicores: 1_000, memoryBytes: "8589934592", diskBytes: "8589934592" },
  ...{ portMin: 20_000, portMax: 20_099, limits: ["cpu", "memory"] },
} as const;

/**
 * A leader and a store with two nodes. Node n0 runs the only execution of a service, and n1 runs many executions that
 * the store does not know.
 */
class OrdersWorld {
  readonly tables: WorkTables;
  /** Called after each step, before the leader continues. */
  onStep: (step: Step) => void = () => {};
  /** The time of the store's clock. */
  nowMs = 1_700_000_000_000;
  readonly #states = new Map<string, { readonly health: HealthState; readonly reaction: Reaction | null }>();
  readonly #ending = new AbortController();
  #follower: FollowOptions | null = null;

  constructor() {
    for (const id of ["n0", "n1"]) this.#states.set(id, { health: "HEALTHY", reaction: null });
    this.tables = new WorkTables({ wallMs: () => this.nowMs, nodeOf: (id) => this.#nodeOf(id), epochOf: () => 1 });
    const { tables } = this;
    for (const id of this.#states.keys()) tables.allocation(id);
    const operator = new WorkOperator({ tables, random: Math.random, append: () => {}, nodeIds: ["n0", "n1"] });
    const value = create(ProcessTaskSchema, { command: ["serve"] });
    const task = { case: "process", value } as const;
    operator.submit(create(JobSpecSchema, { name: "web", type: JobType.SERVICE, count: 1, task }));
    this.#insert("web-0", "n0", false);
    for (let at = 0; at < ORDERS; at += 1) this.#insert(`orphan-${String(at).padStart(3, "0")}`, "n1", true);
  }

  /** The number of remaining orders. */
  get orders(): number {
    return [...this.tables.rows.executions.values()].filter(({ order }) => order !== null).length;
  }

  get service(): Execution | undefined {
    return this.tables.rows.executions.get("web-0")?.record;
  }

  /** Set, in the tables and in the log, the health of n0 and whether a reaction to it is allowed. */
  set(health: HealthState, reaction: Reaction | null): void {
    this.#states.set("n0", { health, reaction });
    const type = reaction === null ? "node.health.changed" : "node.reactions.allowed";
    this.#follower?.deliver([{ type, subject: "n0", after: null } as EventRow], 1n);
  }

  /** Lead until end() is called. */
  async lead(): Promise<void> {
    const { tables } = this;
    const call = async <T>(carryOut: () => T) => carryOut();
    const leader = new Leader(
      {
        ...{
          instance: "s0",
          clock: { ...systemClock, nowMs: () => this.nowMs },
          log: silentLogger,
          random: Math.random,
        },
        timing: { pollMs: 2, gatherMs: 1, clockEveryMs: 0, renewEveryMs: 1_000, expiryMs: 4_000 },
        record: {
          ...leaderReads(tables, call),
          currentRevision: async () => 0n,
          commitWork: async (commit) => commitPlan(tables, commit, { isBusy: () => false, onPlan: () => {} }),
        },
        feed: {
          follow: (options) => {
            this.#follower = options;
            return { position: 0n, caughtUp: Promise.resolve(), leave: () => {} };
          },
        },
        signals: { follow: () => () => {} },
        afterStep: (step) => this.onStep(step),
      },
      NO_METRICS,
      () => new WorkMemory(),
    );
    await leader.run(this.#ending.signal, () => {});
  }

  end(): void {
    this.#ending.abort();
  }

  #insert(id: string, nodeId: string, isOrphan: boolean): void {
    const record: Execution = {
      ...{ id, job: "web", version: 1, run: 1, index: 0, nodeId, desired: "RUN", holds: !isOrphan, previous: null },
      ...{ replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: 1_000 },
      ...{ lostAtMs: null, endedAtMs: null },
      grant: { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
    };
    const order = isOrphan ? ({ kind: "STOP", actor: "operator", message: "" } as const) : null;
    this.tables.insert({ record, isOrphan, specDigest: Buffer.alloc(32), order, generation: 1n });
  }

  #nodeOf(id: string): PlacedNode | null {
    const state = this.#states.get(id);
    if (state === undefined) return null;
    const stated = { sinceMs: 0, reason: "SIMULATED", message: "", actor: "system" } as const;
    return {
      ...{ id, type: "COMPUTE", holds: [], disturbedAtMs: null, labels: [] },
      membership: { ...stated, state: "APPROVED" },
      connection: { ...stated, state: "CONNECTED" } as unknown as PlacedNode["connection"],
      health: { ...stated, state: state.health } as unknown as PlacedNode["health"],
      info: { agentVersion: "0.2.0", os: { family: "linux", architecture: "x64" }, work: WORK },
      loss: { reaction: state.reaction, number: null, group: null, sinceMs: null },
    };
  }
}

const ignore = () => {};
const NO_METRICS: LeaderMetrics = {
  ...{ planned: ignore, committed: ignore, changed: ignore, loaded: ignore, setWork: ignore },
};

describe("a leader with many orders", () => {
  it("should record no loss of a node that is back once it has handled the first orders", async () => {
    const world = new OrdersWorld();
    world.onStep = (step) => {
      if (step === "loaded") world.set("UNHEALTHY", "ALLOWED");
      if (step === "committed" && world.orders === ORDERS - 1) world.set("HEALTHY", null);
      if (step === "planned" && world.orders === 0) world.end();
    };
    await world.lead();
    expect(world.service).toMatchObject({ state: "LIVE", desired: "RUN", replacedBy: null });
    expect(world.tables.ofNode("n1").every(({ record }) => record.desired === "STOP")).toBe(true);
  });

  it("should react to a loss during its orders but not after the last one, and record the time of the loss", async () => {
    const world = new OrdersWorld();
    let leftAtLoss: number | null = null;
    let plannedAtMs = 0;
    world.onStep = (step) => {
      if (step === "loaded") world.set("UNHEALTHY", "ALLOWED");
      if (step === "committed") world.nowMs += 1_000;
      if (world.service?.state === "LOST") leftAtLoss ??= world.orders;
      if (step === "planned" && leftAtLoss === null) plannedAtMs = world.nowMs;
      if (step === "planned" && world.orders === 0) world.end();
    };
    await world.lead();
    expect(world.service).toMatchObject({ state: "LOST", reason: "NODE_LOST", desired: "STOP" });
    expect(leftAtLoss).toBeGreaterThan(0);
    expect(world.service?.lostAtMs).toBeGreaterThanOrEqual(plannedAtMs);
  });
});
