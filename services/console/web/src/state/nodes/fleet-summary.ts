import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { GetClusterSummaryResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { RESOURCE_FACTS } from "@rollcall/domain";
import { healthWord, holdWord, membershipWord, schedulingWord } from "../words.ts";
import type { NodeRow } from "./node-row.ts";

/** A fleet in numbers. */
export interface FleetSummary {
  readonly machines: number;
  readonly connected: number;
  readonly mayTakeWork: number;
  readonly processes: number;
  readonly processesConnected: number;
  readonly membership: Readonly<Record<string, number>>;
  /** Number of approved machines, keyed by health. */
  readonly health: Readonly<Record<string, number>>;
  /** Number of approved machines, keyed by scheduling state. */
  readonly scheduling: Readonly<Record<string, number>>;
  /** Number of machines, keyed by the kind of their holds. */
  readonly holds: Readonly<Record<string, number>>;
  /**
   * Logical processors, bytes and GPUs of approved machines. `available` counts only machines that can
   * take work, and leaves out unknown GPUs.
   */
  readonly total: Capacity;
  readonly available: Capacity;
}

/** The total hardware of some machines. */
export interface Capacity {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly gpus: number;
}

/** Convert the server's counts. */
export function fromCounts(counted: GetClusterSummaryResponse): FleetSummary {
  const { compute, orchestrators, states, mayTakeWork } = counted;
  const membership: Record<string, number> = {};
  const health: Record<string, number> = {};
  const scheduling: Record<string, number> = {};
  for (const state of states) {
    count(membership, membershipWord(state.membership), state.count);
    if (state.membership !== MembershipState.APPROVED) continue;
    count(health, healthWord(state.health), state.count);
    count(scheduling, schedulingWord(state.scheduling), state.count);
  }
  return {
    machines: compute?.total ?? 0,
    connected: compute?.connected ?? 0,
    mayTakeWork,
    processes: orchestrators?.total ?? 0,
    processesConnected: orchestrators?.connected ?? 0,
    ...{ membership, health, scheduling },
    holds: Object.fromEntries(counted.holds.map(({ kind, count: nodes }) => [holdWord(kind), nodes])),
    total: capacityOf(counted.total),
    available: capacityOf(counted.available),
  };
}

function capacityOf(counted: GetClusterSummaryResponse["total"]): Capacity {
  const { cores = 0n, memoryBytes = 0n, gpus = 0 } = counted ?? {};
  return { cores: Number(cores), memoryBytes: Number(memoryBytes), gpus: Number(gpus) };
}

/** Summarize loaded rows. */
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
    add(available, row.unknownFacts.includes(RESOURCE_FACTS.gpus) ? { ...row, gpus: 0 } : row);
  }
  return { ...counts, membership, health, scheduling, holds, total, available };
}

function count(counts: Record<string, number>, word: string, more = 1): void {
  counts[word] = (counts[word] ?? 0) + more;
}

function add(sum: { cores: number; memoryBytes: number; gpus: number }, row: Capacity): void {
  sum.cores += row.cores;
  sum.memoryBytes += row.memoryBytes;
  sum.gpus += row.gpus;
}
