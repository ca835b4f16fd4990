import { isTerminal } from "@rollcall/domain";
import type { NodeReport, NodeWork, NodeWorkQuery, ReportedExecution } from "@rollcall/store";
import type { SimulatedObservationRow, WorkTables } from "./work-tables.ts";

/** Return what nodes should run, as readNodeWork() of the store does. */
export function readNodeWork(tables: WorkTables, queries: readonly NodeWorkQuery[]): readonly NodeWork[] {
  return queries.flatMap(({ nodeId, after }) => {
    const allocation = tables.rows.allocations.get(nodeId);
    if (allocation === undefined) return [];
    const references = tables.ofNode(nodeId).flatMap(({ record, isOrphan, specDigest, generation }) => {
      const { id, desired, index, grant } = record;
      const isTold = generation > after && (after > 0n || desired !== "FORGET") && !(isOrphan && desired === "RUN");
      if (isTold && desired === "RUN") tables.heard.add(id);
      const reported = (tables.rows.observations.get(id)?.observed ?? "ABSENT") !== "ABSENT";
      return isTold ? [{ id, desired, specDigest, index, ports: grant.ports, gpuUuids: [], reported }] : [];
    });
    return [{ nodeId, generation: allocation.generation, references }];
  });
}

/** Do what saveObservations() of the store does. */
export function saveReports(tables: WorkTables, reports: readonly NodeReport[]): void {
  const at = tables.begin();
  for (const report of reports) {
    const { nodeId, epoch, number, whole, executions } = report;
    if (tables.world.epochOf(nodeId) !== epoch) continue;
    for (const said of executions) saveOne(tables, at, report, said);
    if (!whole) continue;
    const named = new Set(executions.map(({ id }) => id));
    for (const { record, isOrphan } of tables.ofNode(nodeId)) {
      const { id, job, desired, holds, state } = record;
      const isExpected = holds || isOrphan || !isTerminal(state) || desired === "STOP";
      const known = tables.rows.observations.get(id);
      if (!isExpected || named.has(id) || (known === undefined && desired !== "STOP")) continue;
      if (known?.observed === "ENDED" || !isNewer({ epoch, number }, known)) continue;
      const missing = (known?.missing ?? 0) + 1;
      const before = known ?? absent(id, nodeId, job);
      write(tables, at, { ...before, epoch, report: number, missing, observedAtMs: tables.world.wallMs() });
    }
  }
}

function saveOne(tables: WorkTables, at: number, { nodeId, epoch, number }: NodeReport, said: ReportedExecution): void {
  const owner = tables.rows.executions.get(said.id)?.record.nodeId;
  if (owner !== undefined && owner !== nodeId) return;
  tables.heard.add(said.id);
  const known = tables.rows.observations.get(said.id);
  if (owner === undefined && known === undefined && said.observed === "ENDED") return;
  if (known !== undefined) {
    if (known.nodeId !== nodeId || !isNewer({ epoch, number }, known)) return;
    if (known.observed === "ENDED" && said.observed === "ENDED") return;
    const isSame = known.observed === said.observed && known.missing === 0 && known.message === said.message;
    if (isSame && known.startedAtMs === said.startedAtMs) return;
  }
  write(tables, at, { ...said, nodeId, epoch, report: number, missing: 0, observedAtMs: tables.world.wallMs() });
}

function write(tables: WorkTables, at: number, row: SimulatedObservationRow): void {
  tables.rows.observations.set(row.id, row);
  tables.observed.note(at, row.id);
}

function isNewer(
  { epoch, number }: { readonly epoch: number; readonly number: number },
  known: SimulatedObservationRow | undefined,
): boolean {
  if (known === undefined) return true;
  return known.epoch < epoch || (known.epoch === epoch && known.report < number);
}

function absent(id: string, nodeId: string, job: string): SimulatedObservationRow {
  return {
    ...{ id, nodeId, job, epoch: 0, report: 0, observed: "ABSENT", missing: 0, observedAtMs: 0 },
    ...{ ports: {}, gpuUuids: [] },
    ...{ startedAtMs: null, endedAtMs: null, end: null, exitCode: null, signal: null, message: "", specDigest: null },
  };
}
