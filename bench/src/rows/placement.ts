import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type Execution,
  type Job,
  type JobSpec,
  type Plan,
  seededRandom,
  WorkMemory,
  type WorkNode,
} from "@rollcall/domain";
import type { Bench, BenchContext } from "../bench-context.ts";

const FEW_NODES = 500;
const PLACEMENTS = 20_000;
const PLACED_A_PLAN = 1_000;
const ROUNDS = 3;
const LOST_EXECUTIONS = 1_000;
const GIB = 2 ** 30;

/** Measures the CPU that the scheduler's rules need for placements in memory, without a store. */
export const placement: Bench = {
  name: "placement",
  title: "executions placed in memory on one core, in a fleet that is half full",
  async run(context) {
    const { nodes, seed } = context.size;
    context.progress(`seed ${seed}`);
    const figures = (["bin-pack", "spread", "even"] as const).flatMap((strategy) => {
      const [many = 0, few = 0] = leastOf(context, [
        () => placeAll(nodes, strategy, seed),
        () => placeAll(FEW_NODES, strategy, seed),
      ]);
      const perSecond = 1_000_000 / many;
      return [
        {
          ...{ figure: `placements a second, ${strategy}`, measured: perSecond, unit: "/s" },
          ...{ against: "aim", compared: 10_000, target: "1 or more" },
        },
        {
          ...{ figure: `a placement among ${nodes} nodes, ${strategy}`, measured: many, unit: "µs" },
          ...{ against: `among ${FEW_NODES}`, compared: few, target: "2 or less" },
        },
      ];
    });
    const [lostMs = 0] = leastOf(context, [() => replaceLost(seed)]);
    return [
      ...figures,
      {
        ...{ figure: `${LOST_EXECUTIONS} executions of a lost node replaced`, measured: lostMs, unit: "ms" },
        ...{ against: "aim", compared: 3_000, target: "1 or less" },
      },
    ];
  },
};

/**
 * Return the shortest time of each measurement. The measurements alternate, so that a machine that slows down slows
 * all of them.
 */
function leastOf(context: BenchContext, measures: readonly (() => number)[]): readonly number[] {
  const rounds = Array.from({ length: ROUNDS }, () => measures.map((measure) => measure()));
  for (const times of rounds) context.progress(times.map((time) => time.toFixed(1)).join(", "));
  return measures.map((_, index) => Math.min(...rounds.map((times) => times[index] ?? Number.POSITIVE_INFINITY)));
}

/** Place all executions. Returns the CPU per placement in microseconds. */
function placeAll(nodes: number, strategy: JobSpec["strategy"], seed: number): number {
  const memory = fleet(nodes, seed);
  const newId = ids();
  memory.applyJob(job({ count: PLACEMENTS, strategy }));
  collectGarbage();
  let placed = 0;
  const before = process.cpuUsage();
  for (let plan = planOnce(memory, newId); plan.executions.length > 0; plan = planOnce(memory, newId)) {
    placed += plan.executions.length;
  }
  const { user, system } = process.cpuUsage(before);
  if (placed !== PLACEMENTS) throw new Error(`${placed} were placed instead of ${PLACEMENTS}`);
  return (user + system) / placed;
}

/** Place all executions of a lost node elsewhere. Returns the CPU in milliseconds. */
function replaceLost(seed: number): number {
  const memory = fleet(FEW_NODES, seed);
  const newId = ids();
  memory.applyJob(job({ count: LOST_EXECUTIONS, strategy: "bin-pack" }));
  const lost = { ...node(FEW_NODES, seededRandom(seed)), id: "lost" };
  const { grant } = planOnce(memory, newId).executions[0]?.after ?? {};
  if (grant === undefined) throw new Error("nothing was placed");
  memory.applyNode(lost);
  memory.applyJob(job({ name: "there", count: LOST_EXECUTIONS, strategy: "bin-pack" }));
  for (let index = 0; index < LOST_EXECUTIONS; index += 1) {
    memory.applyExecution(
      execution({ id: newId(), index, nodeId: lost.id, grant: { ...grant, millicores: 10 } }),
      null,
    );
  }
  planOnce(memory, newId);
  memory.applyNode({ ...lost, health: "UNHEALTHY", reactionAllowed: true });
  collectGarbage();
  const before = process.cpuUsage();
  let replaced = 0;
  for (let plan = planOnce(memory, newId); plan.executions.length > 0; plan = planOnce(memory, newId)) {
    replaced += plan.executions.filter(({ kind }) => kind === "PLACED").length;
  }
  const { user, system } = process.cpuUsage(before);
  if (replaced !== LOST_EXECUTIONS) throw new Error(`${replaced} were replaced instead of ${LOST_EXECUTIONS}`);
  return (user + system) / 1_000;
}

/**
 * Collect the garbage from creating the fleet now. Otherwise it would be collected during the placement, mostly for
 * the largest fleet.
 */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
}

function planOnce(memory: WorkMemory, newId: () => string): Plan {
  return memory.plan({ nowMs: 0, newId, mostPlaced: PLACED_A_PLAN });
}

/** Create nodes of two sizes in five zones, with about half of their resources allocated. */
function fleet(nodes: number, seed: number): WorkMemory {
  const memory = new WorkMemory();
  const random = seededRandom(seed);
  memory.applyJob(job({ name: "before", selector: "zone in (z0, z1, z2, z3, z4)", count: 0 }));
  for (let index = 0; index < nodes; index += 1) {
    const one = node(index, random);
    memory.applyNode(one);
    const taken = Math.floor(random() * 32);
    const grant = {
      ...{ millicores: taken * 1_000, memoryBytes: taken * 3 * GIB, diskBytes: 0, ports: {}, gpuUuids: [] },
    };
    const id = `a${String(index).padStart(25, "0")}`;
    memory.applyExecution(execution({ id, job: "before", index, nodeId: one.id, grant, desired: "STOP" }), null);
  }
  // Do the first scan of a new leader now, because it is not part of a placement.
  while (planOnce(memory, ids()).more);
  return memory;
}

function node(index: number, random: () => number): WorkNode {
  const labels = new Map([["zone", `z${index % 5}`]]);
  const isLarge = index % 2 === 0;
  return {
    ...{ id: `node-${index}`, type: "COMPUTE", membership: "APPROVED", connection: "CONNECTED", health: "HEALTHY" },
    ...{ holds: [], conditionSinceMs: null, disturbedUntilMs: null, unknown: [], reactionAllowed: false },
    ...{ labels, grantedLabels: labels, os: "linux", architecture: "x64" },
    ...{ agentVersion: "0.2.0", gpus: [] },
    capacity: {
      ...{
        executors: ["process"],
        millicores: isLarge ? 64_000 : 48_000,
        diskBytes: 0,
        portMin: 20_000,
        portMax: 30_000,
      },
      memoryBytes: (isLarge ? 256 : 128) * GIB - Math.floor(random() * GIB),
      ...{ limits: [], users: [], directories: [], lacks: [], secrets: [] },
    },
  };
}

function job(part: { name?: string; count: number; selector?: string; strategy?: JobSpec["strategy"] }): Job {
  const { name = "web", count, selector = "zone != z4", strategy = "bin-pack" } = part;
  const spec: JobSpec = {
    ...{ name, type: "service", count, selector, matchAgentLabels: false, strategy, maxPerNode: 0 },
    constraints: { nodeId: null, gpuModel: null, gpuIndices: [], minAgentVersion: null, os: null, architecture: null },
    resources: { millicores: 100, memoryBytes: GIB / 4, diskBytes: 0, gpus: 0, ports: {} },
    ...{
      executor: "process",
      user: null,
      directory: null,
      checked: false,
      owner: "token:bench",
      secrets: [],
      queueTimeoutMs: null,
      stopGraceMs: 5_000,
    },
    loss: { lostAfterMs: 0, stopOnAgentAfterMs: null, replace: true, reconcile: "keep-replacement" },
    retry: { attempts: null, backoff: "exponential", intervalMs: 5_000, maxMs: 300_000 },
    update: { maxParallel: 1, maxSurge: 0, minReadyMs: 10_000, readyDeadlineMs: 300_000, autoRevert: false },
  };
  return {
    ...{ name, version: 1, state: "ACTIVE", message: "", count, spec, submittedAtMs: 0, run: 1 },
    ...{ placed: false, halted: null, readyVersion: null, rolledOut: false, waitingNodes: 0 },
  };
}

function execution(part: Partial<Execution> & Pick<Execution, "id" | "grant">): Execution {
  return {
    ...{ job: "there", version: 1, run: 1, index: 0, nodeId: "", desired: "RUN", holds: true, previous: null },
    ...{ replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: 0 },
    ...{ lostAtMs: null, endedAtMs: null },
    ...part,
  };
}

function ids(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `e${String(count).padStart(25, "0")}`;
  };
}
