import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ExecutionWait, ExecutionWaitSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { conditionsOf, describeConditions, isTerminal, type WaitFacts, type WaitScope } from "@rollcall/domain";
import {
  type Db,
  type ExecutionRow,
  getDrains,
  getNodes,
  type JobRow,
  readLatestEvents,
  readLease,
  readShownBrakes,
  SCHEDULER_LEASE,
  storeTimeMs,
} from "@rollcall/store";
import type { JobWait, ViewedJob } from "../jobs/node-view.ts";
import { viewJob } from "../jobs/view-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";

const NODES_A_READ = 500;
/** Maximum number of events to search for the halt of an update. */
const MOST_EVENTS = 50;

/** The executions and jobs to explain. */
export interface WaitSubject extends WaitScope {
  readonly jobs: readonly JobRow[];
  /** Further jobs, which should run on `nodeId` and have no execution there; absent for none. */
  readonly vacantJobs?: readonly JobRow[];
  /**
   * The executions among which to search for orphans, with or without a job; null to search the executions of
   * `jobs`.
   */
  readonly found: readonly ExecutionRow[] | null;
}

/** Read which executions of jobs wait, move or are lost, and why. */
export async function readWaits(
  { store, nodes }: SchedulerServices,
  { jobs, vacantJobs = [], found, ...scope }: WaitSubject,
  signal: AbortSignal,
): Promise<readonly JobWait[]> {
  const viewed: ViewedJob[] = [];
  for (const job of jobs) viewed.push(await viewJob(store.db, job, signal));
  for (const job of vacantJobs) viewed.push(await viewJob(store.db, job, signal, scope.nodeId));
  const facts = await readFacts(store.db, viewed);
  const halts = new Map<string, number | null>();
  for (const { name, halted } of [...jobs, ...vacantJobs])
    if (halted !== null) halts.set(name, await haltedAtMs(store.db, name));
  const factsOf = (job: string) => ({ ...facts, haltedAtMs: halts.get(job) ?? null });
  const waits = await nodes.explainWaits(viewed, factsOf, scope, signal);
  const orphans = orphanWaits(found ?? viewed.flatMap(({ executions }) => executions));
  return [...(await leaderWaits(store.db, waits)), ...waits, ...orphans];
}

/** The public message of a wait. */
export function waitToProto(wait: JobWait): ExecutionWait {
  const { sinceMs, untilMs, executionIds, nodeIds, ...said } = wait;
  return create(ExecutionWaitSchema, {
    ...said,
    ...(sinceMs === null ? {} : { since: timestampFromMs(sinceMs) }),
    ...(untilMs === null ? {} : { until: timestampFromMs(untilMs) }),
    executionIds: [...executionIds],
    nodeIds: [...nodeIds],
  });
}

/** The number of waiting executions as text; null for none. */
export function waitingText(waits: readonly JobWait[]): string | null {
  const count = waits.reduce((sum, { executions, reason }) => sum + (reason === LEADERLESS ? 0 : executions), 0);
  if (count === 0) return null;
  return count === 1 ? "1 execution is waiting, moving or lost" : `${count} executions are waiting, moving or lost`;
}

const LEADERLESS = "NO_SCHEDULER_LEADS";

async function readFacts(db: Db, viewed: readonly ViewedJob[]): Promise<Omit<WaitFacts, "haltedAtMs">> {
  const open = viewed
    .flatMap(({ executions }) => executions)
    .filter(({ execution, isOrphan }) => !isOrphan && (!isTerminal(execution.state) || execution.holds));
  const all = [...new Set(open.map(({ execution }) => execution.nodeId))];
  const troubled = open.filter((one) => !one.isNodeHealthy || !hasStarted(one) || one.execution.state === "LOST");
  const ids = [...new Set(troubled.map(({ execution }) => execution.nodeId))];
  const losses = new Map();
  const conditions = new Map<string, string>();
  for (let from = 0; from < ids.length; from += NODES_A_READ) {
    for (const { id, loss, info } of await getNodes(db, ids.slice(from, from + NODES_A_READ))) {
      losses.set(id, loss);
      const found = conditionsOf(info ?? undefined);
      if (found.length > 0) conditions.set(id, describeConditions(found));
    }
  }
  const drains = new Map();
  for (let from = 0; from < all.length; from += NODES_A_READ) {
    for (const [id, drain] of await getDrains(db, all.slice(from, from + NODES_A_READ))) {
      if (drain.drainedAtMs === null) drains.set(id, drain);
    }
  }
  const stops = open.flatMap(({ execution, stopOrderedAtMs: atMs }) =>
    atMs === null ? [] : [[execution.id, atMs] as const],
  );
  const isPending = [...losses.values()].some(({ reaction }) => reaction === "PENDING");
  return {
    ...{ losses, conditions, drains, stopsOrderedAtMs: new Map(stops) },
    brakes: isPending ? await readShownBrakes(db) : [],
    nowMs: await storeTimeMs(db),
  };
}

function hasStarted({ observation }: ExecutionRow): boolean {
  return observation !== null && observation.observed !== "STARTING" && observation.observed !== "ABSENT";
}

async function haltedAtMs(db: Db, job: string): Promise<number | null> {
  const events = await readLatestEvents(db, {
    ...{ subject: job, types: ["job.changed"], limit: MOST_EVENTS, before: null },
  });
  const halt = events.find(({ after }) => {
    const facts = after as { readonly halted?: unknown } | null;
    return typeof facts?.halted === "string";
  });
  return halt?.atMs ?? null;
}

/** The wait to add while no scheduler leads; empty otherwise. */
async function leaderWaits(db: Db, waits: readonly JobWait[]): Promise<readonly JobWait[]> {
  const [first] = waits;
  if (first === undefined || (await readLease(db, SCHEDULER_LEASE)) !== null) return [];
  const text = "no scheduler leads: nothing is placed, moved or replaced";
  return [
    {
      ...{ reason: LEADERLESS, text, command: "rollcall doctor", job: first.job },
      executions: waits.reduce((sum, { executions }) => sum + executions, 0),
      ...{ sinceMs: null, untilMs: null, executionIds: [], nodeIds: [] },
    },
  ];
}

/** The waits of orphans, which are executions that a node runs and the store does not know. */
function orphanWaits(executions: readonly ExecutionRow[]): readonly JobWait[] {
  const found = executions.filter(({ execution, isOrphan }) => isOrphan && !isTerminal(execution.state));
  const [first] = found;
  if (first === undefined) return [];
  const since = found.map(({ execution }) => execution.createdAtMs);
  return [
    {
      reason: "ORPHANED",
      text: "a node runs it, but the store does not know it; adopt it into its job, or stop it",
      command: `rollcall job adopt ${first.execution.id}`,
      job: first.execution.job,
      executions: found.length,
      sinceMs: since.reduce((one, other) => Math.min(one, other)),
      untilMs: null,
      executionIds: found.slice(0, MOST_NAMED).map(({ execution }) => execution.id),
      nodeIds: [...new Set(found.map(({ execution }) => execution.nodeId))].slice(0, MOST_NAMED),
    },
  ];
}

const MOST_NAMED = 5;
