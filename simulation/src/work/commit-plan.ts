import type { Execution, ExecutionChange } from "@rollcall/domain";
import { MOST_EXECUTIONS_OF_NODE, type WorkCommit, type WorkCommitted } from "@rollcall/store";
import type { WorkTables } from "./work-tables.ts";

/** Called with a plan before it is written, to check the invariants. */
export type OnPlan = (changes: readonly ExecutionChange[]) => void;

/**
 * Do what commitWork() of the store does, but on the tables of a simulation. Either all of a plan is written or
 * nothing.
 *
 * @param isBusy whether other transactions are writing the rows of a node at this moment.
 */
export function commitPlan(
  tables: WorkTables,
  commit: WorkCommit,
  { isBusy, onPlan }: { readonly isBusy: (nodeId: string) => boolean; readonly onPlan: OnPlan },
): WorkCommitted {
  const { plan, endedOrders = [], adopted = [], orphans = [], jobOf, specDigestOf } = commit;
  const { rows, world } = tables;
  const staleJobs = plan.jobs.flatMap(({ before: { name, state, version, count, run } }) => {
    const job = rows.jobs.get(name);
    const isSame = job?.state === state && job.version === version && job.count === count && job.run === run;
    return isSame ? [] : [name];
  });
  for (const { kind, after } of plan.executions) {
    if (kind !== "PLACED") continue;
    const [job, { version, createdAtMs }] = [rows.jobs.get(after.job), jobOf(after.job)];
    const isSame = job?.version === version && job.createdAtMs === createdAtMs && job.run === after.run;
    if (!isSame || job.state !== "ACTIVE") staleJobs.push(after.job);
  }
  if (staleJobs.length > 0) return { outcome: "STALE", nodeIds: [], jobs: [...new Set(staleJobs)] };
  const back = (plan.lostNodes ?? []).filter((id) => isBusy(id) || world.nodeOf(id)?.loss.reaction !== "ALLOWED");
  if (back.length > 0) return { outcome: "STALE", nodeIds: back, jobs: [] };
  const nodeIds = refusedNodes(tables, plan.executions, isBusy);
  if (nodeIds.length > 0) return { outcome: "STALE", nodeIds, jobs: [] };
  onPlan(plan.executions);
  tables.begin();
  for (const { after } of plan.drains) {
    const drain = rows.drains.get(after.nodeId);
    if (after.state === "DRAINING" || drain === undefined || drain.deadlineAtMs !== after.deadlineAtMs) continue;
    rows.drains.set(after.nodeId, {
      ...{ ...drain, drainedAtMs: world.wallMs() },
      unconfirmed: after.state === "UNCONFIRMED",
    });
  }
  for (const { after } of plan.jobs) {
    const job = rows.jobs.get(after.name);
    const { state, message, placed, halted, readyVersion, rolledOut, waitingNodes } = after;
    if (job === undefined) continue;
    rows.jobs.set(after.name, { ...job, state, message, placed, halted, readyVersion, rolledOut, waitingNodes });
  }
  const generations = new Map<string, bigint>();
  const raised = (nodeId: string): bigint => {
    const known = generations.get(nodeId) ?? tables.raise(nodeId);
    generations.set(nodeId, known);
    return known;
  };
  for (const change of plan.executions) {
    const { before, after } = change;
    const row = rows.executions.get(after.id);
    if (before === null) {
      const specDigest = Buffer.from(specDigestOf(after.job, after.version));
      tables.insert({ record: after, isOrphan: false, specDigest, order: null, generation: raised(after.nodeId) });
    } else if (row !== undefined) {
      // Update `holds` only when resources are given back.
      const holds = row.record.holds && !(before.holds && !after.holds);
      if (row.record.holds !== holds) giveBack(tables, row.record);
      row.record = { ...after, holds: after.holds && !before.holds ? takeAgain(tables, after) : holds };
      if (row.isOrphan && after.endedAtMs !== null) row.isOrphan = false;
      if (before.desired !== after.desired) row.generation = raised(after.nodeId);
    }
  }
  for (const { after, kind } of plan.executions) if (kind === "PLACED") take(tables, after);
  for (const id of endedOrders) {
    const row = rows.executions.get(id);
    if (row !== undefined) row.order = null;
  }
  for (const record of adopted) {
    const row = rows.executions.get(record.id);
    if (row?.isOrphan !== true) continue;
    tables.adopt(row, record);
    row.generation = raised(record.nodeId);
    take(tables, record);
  }
  for (const { id, job, nodeId, specDigest, ports } of orphans) {
    if (rows.executions.has(id)) continue;
    const grant = { millicores: 0, memoryBytes: 0, diskBytes: 0, ports, gpuUuids: [] };
    const record = { ...orphanRecord(id, job, nodeId, world.wallMs()), grant };
    tables.insert({ record, isOrphan: true, specDigest: Buffer.from(specDigest), order: null, generation: 0n });
  }
  return { outcome: "COMMITTED", revision: 0n };
}

/** Find nodes that cannot accept what a plan places there or whose rows are being written. */
function refusedNodes(
  tables: WorkTables,
  changes: readonly ExecutionChange[],
  isBusy: (nodeId: string) => boolean,
): readonly string[] {
  const wanted = new Map<
    string,
    { cores: number; memory: number; executions: number; ports: number[]; freed: Set<number> }
  >();
  const of = (nodeId: string) => {
    const known = wanted.get(nodeId) ?? { cores: 0, memory: 0, executions: 0, ports: [], freed: new Set<number>() };
    wanted.set(nodeId, known);
    return known;
  };
  for (const { before, after } of changes) {
    const { millicores, memoryBytes, ports } = after.grant;
    const isFreed = before?.holds === true && !after.holds;
    if (before !== null && !isFreed) continue;
    const sum = of(after.nodeId);
    const sign = isFreed ? -1 : 1;
    sum.cores += sign * millicores;
    sum.memory += sign * memoryBytes;
    sum.executions += sign;
    if (isFreed) for (const port of Object.values(ports)) sum.freed.add(port);
    else sum.ports.push(...Object.values(ports));
  }
  const placed = new Set(changes.flatMap(({ kind, after }) => (kind === "PLACED" ? [after.nodeId] : [])));
  return [...placed].filter((nodeId) => {
    const { cores, memory, executions, ports, freed } = of(nodeId);
    const node = tables.world.nodeOf(nodeId);
    if (node === null || isBusy(nodeId) || node.health.state !== "HEALTHY" || node.holds.length > 0) return true;
    const taken = tables.allocation(nodeId);
    const work = node.info?.work as { readonly millicores: number; readonly memoryBytes: string };
    const isTaken = (port: number) => taken.ports.has(port) && !freed.has(port);
    return (
      taken.millicores + cores > work.millicores ||
      taken.memoryBytes + memory > Number(work.memoryBytes) ||
      taken.executions + executions > MOST_EXECUTIONS_OF_NODE ||
      ports.some(isTaken) ||
      new Set(ports).size < ports.length
    );
  });
}

function take(tables: WorkTables, { nodeId, grant }: Execution): void {
  const taken = tables.allocation(nodeId);
  taken.millicores += grant.millicores;
  taken.memoryBytes += grant.memoryBytes;
  taken.executions += 1;
  for (const port of Object.values(grant.ports)) taken.ports.add(port);
}

/** Allocate the resources of an execution again after its node had lost it and found it again. */
function takeAgain(tables: WorkTables, record: Execution): true {
  take(tables, record);
  return true;
}

function giveBack(tables: WorkTables, { nodeId, grant }: Execution): void {
  const taken = tables.allocation(nodeId);
  taken.millicores -= grant.millicores;
  taken.memoryBytes -= grant.memoryBytes;
  taken.executions -= 1;
  for (const port of Object.values(grant.ports)) taken.ports.delete(port);
}

function orphanRecord(id: string, job: string, nodeId: string, nowMs: number): Execution {
  return {
    ...{
      id,
      job,
      nodeId,
      version: 0,
      run: 0,
      index: 0,
      desired: "RUN",
      holds: false,
      previous: null,
      replacedBy: null,
    },
    grant: { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
    ...{ attempt: 0, state: "LIVE", reason: "UNKNOWN_TO_STORE", message: "" },
    ...{ createdAtMs: nowMs, lostAtMs: null, endedAtMs: null },
  };
}
