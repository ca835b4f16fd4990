import type { NodeRow } from "./node-row.ts";

/** A fleet in numbers. */
export interface FleetSummary {
  readonly machines: number;
  readonly connected: number;
  readonly mayTakeWork: number;
  readonly processes: number;
  readonly processesConnected: number;
  readonly membership: Readonly<Record<string, number>>;
  /** Of approved machines. */
  readonly health: Readonly<Record<string, number>>;
  /** Of approved machines. */
  readonly scheduling: Readonly<Record<string, number>>;
  /** Machines by kind of hold. */
  readonly holds: Readonly<Record<string, number>>;
  /** Of approved machines: logical processors, bytes and GPUs; available is of those that may take work. */
  readonly total: Capacity;
  readonly available: Capacity;
}

/** Hardware added up. */
export interface Capacity {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly gpus: number;
}

/** Add up a fleet. */
export function summarize(rows: Iterable<NodeRow>): FleetSummary {
  const counts = { machines: 0, connected: 0, mayTakeWork: 0, processes: 0, processesConnected: 0 };
  const membership: Record<string, number> = {};
  const health: Record<string, number> = {};
  const scheduling: Record<string, number> = {};
  const holds: Record<string, number> = {};
  const total = { cores: 0, memoryBytes: 0, gpus: 0 };
  const available = { cores: 0, memoryBytes: 0, gpus: 0 };
  for (const row of rows) {
    const connected = row.connection.word === "CONNECTED" ? 1 : 0;
    if (row.type !== "compute") {
      counts.processes += 1;
      counts.processesConnected += connected;
      continue;
    }
    counts.machines += 1;
    counts.connected += connected;
    count(membership, row.membership.word);
    if (row.membership.word !== "APPROVED") continue;
    count(health, row.health.word);
    count(scheduling, row.scheduling.word);
    for (const hold of row.holds) count(holds, hold);
    add(total, row);
    if (!row.mayTakeWork) continue;
    counts.mayTakeWork += 1;
    add(available, row);
  }
  return { ...counts, membership, health, scheduling, holds, total, available };
}

function count(counts: Record<string, number>, word: string): void {
  counts[word] = (counts[word] ?? 0) + 1;
}

function add(sum: { cores: number; memoryBytes: number; gpus: number }, row: NodeRow): void {
  sum.cores += row.cores;
  sum.memoryBytes += row.memoryBytes;
  sum.gpus += row.gpus;
}
