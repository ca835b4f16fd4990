import { isNewer, isTerminal } from "@rollcall/domain";
import type { LeaderStore } from "@rollcall/scheduler/leader";
import type { ExecutionRow, ObservationRow } from "@rollcall/store";
import {
  type SimulatedExecutionRow,
  type SimulatedObservationRow,
  versionKey,
  type WorkTables,
} from "./work-tables.ts";

/** The reads of a leader on the tables of a simulation. `call` makes each read see the state at a single moment. */
export function leaderReads(
  tables: WorkTables,
  call: <T>(carryOut: () => T) => Promise<T>,
): Omit<LeaderStore, "commitWork" | "currentRevision"> {
  const stored = (ids: readonly string[]) => ids.flatMap((id) => toStored(tables, id) ?? []);
  const page = (ids: Iterable<string>, { after, limit }: { readonly after: string; readonly limit: number }) => {
    return [...ids]
      .filter((id) => id > after)
      .sort()
      .slice(0, limit);
  };
  const { world } = tables;
  return {
    noteSchedulerLeads: () => call(() => {}),
    // Return nothing, because the simulation deletes and rejects no nodes.
    readHomelessOrphans: () => call(() => []),
    changePosition: () => call(() => String(tables.position + 1)),
    storeTimeMs: () => call(() => world.wallMs()),
    readObservedIds: (query) =>
      call(() => ({
        items: page(tables.observed.since(Number(query.position)), query),
        position: String(tables.position + 1),
      })),
    readUnsettledIds: (query) => call(() => page(unsettledIds(tables), query)),
    readUnknownExecutions: (query) =>
      call(() => {
        const { position } = query;
        const said = position === null ? tables.rows.observations.keys() : tables.observed.since(Number(position));
        return page(said, { ...query, limit: Number.POSITIVE_INFINITY })
          .flatMap((id) => {
            const seen = tables.rows.observations.get(id);
            if (seen === undefined || tables.rows.executions.has(id)) return [];
            const { nodeId, job, specDigest, observed, ports = {}, gpuUuids = [] } = seen;
            if (observed === "ABSENT" || observed === "ENDED") return [];
            const digest = specDigest === null ? null : Buffer.from(specDigest);
            return [{ id, nodeId, job, specDigest: digest, observed, ports, gpuUuids }];
          })
          .slice(0, query.limit);
      }),
    greatestExecutionId: () => call(() => greatestId(tables)),
    readLiveExecutions: (query) => call(() => stored(page(liveIds(tables), query))),
    readExecutionsOfJob: (job) => call(() => stored(idsOfJob(tables, job))),
    readNewestEnded: (query) => call(() => stored(page(newestEndedIds(tables), query))),
    getExecutions: (ids) => call(() => stored(ids)),
    readJobs: (query) =>
      call(() => page(tables.rows.jobs.keys(), query).flatMap((it) => tables.rows.jobs.get(it) ?? [])),
    getJobs: (names) => call(() => names.flatMap((name) => tables.rows.jobs.get(name) ?? [])),
    getJobVersion: (name, version) => call(() => tables.rows.versions.get(versionKey(name, version)) ?? null),
    // Return nothing, because no job of the simulation uses this feature.
    autoRevert: () => call(() => null),
    readComputeNodeIds: (query) => call(() => page(tables.rows.allocations.keys(), query)),
    ensureAllocations: () => call(() => {}),
    readNodes: (ids) => once(() => call(() => ids.flatMap((id) => world.nodeOf(id) ?? []))),
    listDrains: (ids) => call(() => ids.flatMap((id) => tables.rows.drains.get(id) ?? [])),
  };
}

async function* once<T>(read: () => Promise<T>): AsyncGenerator<T> {
  yield await read();
}

/** Return an execution in the form of a row of the store; null if there is no such execution. */
function toStored(tables: WorkTables, id: string): ExecutionRow | null {
  const row = tables.rows.executions.get(id);
  if (row === undefined) return null;
  const { record: execution, isOrphan, specDigest, order } = row;
  const seen = tables.rows.observations.get(id);
  const isNodeHealthy = tables.world.nodeOf(execution.nodeId)?.health.state === "HEALTHY";
  const observation = seen === undefined ? null : toObservation(seen);
  return { execution, isOrphan, specDigest, order, stopOrderedAtMs: null, observation, isNodeHealthy };
}

function toObservation(seen: SimulatedObservationRow): ObservationRow {
  const { epoch, report, observed, startedAtMs, endedAtMs, end, exitCode, signal, message, missing } = seen;
  const { observedAtMs } = seen;
  return {
    ...{ epoch, report, observed, startedAtMs, endedAtMs, end, exitCode, signal, message, missing, observedAtMs },
    readySinceMs: observed === "READY" ? observedAtMs : null,
  };
}

function liveIds({ rows }: WorkTables): readonly string[] {
  const isLive = ({ record, isOrphan }: SimulatedExecutionRow) => record.holds || isOrphan || !isTerminal(record.state);
  return [...rows.executions].flatMap(([id, row]) => (isLive(row) ? [id] : []));
}

function greatestId({ rows }: WorkTables): string {
  let greatest = "";
  for (const [id, { isOrphan }] of rows.executions) if (!isOrphan && id > greatest) greatest = id;
  return greatest;
}

/**
 * Find the newest execution of each replica index of ACTIVE jobs. Returns those that have ended and hold no resources.
 */
function newestEndedIds(tables: WorkTables): readonly string[] {
  const ids: string[] = [];
  for (const { name, state } of tables.rows.jobs.values()) {
    if (state !== "ACTIVE") continue;
    const newest = new Map<number, SimulatedExecutionRow>();
    for (const row of tables.ofJob(name)) {
      const { index } = row.record;
      const other = newest.get(index);
      if (!row.isOrphan && (other === undefined || isNewer(row.record, other.record))) newest.set(index, row);
    }
    for (const { record } of newest.values()) {
      if (!record.holds && isTerminal(record.state)) ids.push(record.id);
    }
  }
  return ids;
}

function unsettledIds({ rows }: WorkTables): readonly string[] {
  return [...rows.executions].flatMap(([id, { record, isOrphan }]) => {
    const seen = rows.observations.get(id);
    if (seen === undefined || record.holds || (!isOrphan && !isTerminal(record.state))) return [];
    const isOver = seen.observed === "ENDED" || seen.missing > 1;
    if (isOver) return isOrphan || record.desired === "STOP" ? [id] : [];
    const runs = seen.observed !== "ABSENT" && !isOrphan && record.desired === "FORGET";
    return runs ? [id] : [];
  });
}

/** The ids of a job's executions that are live, lost or completed. */
function idsOfJob({ rows }: WorkTables, job: string): readonly string[] {
  const counts = ["LIVE", "LOST", "COMPLETED"];
  return [...rows.executions].flatMap(([id, { record }]) =>
    record.job === job && counts.includes(record.state) ? [id] : [],
  );
}
