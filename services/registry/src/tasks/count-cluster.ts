import { gauge, Loop, type MetricsRegistry, onScrape } from "@rollcall/process";
import { type ClusterCensus, listUpkeepRuns, takeCensus, type UpkeepRun } from "@rollcall/store";
import type { RegistryProcess } from "../registry-process.ts";

const EVERY_MS = 15_000;

/** The inputs for counting the cluster. */
export interface CountOptions extends Pick<RegistryProcess, "store" | "clock" | "metrics"> {
  /** Whether this process counts the cluster. Only one process of the cluster does so. */
  isLeader(): boolean;
  /** Interval between two counts. Default 15 s. */
  readonly everyMs?: number;
}

interface Counted {
  readonly census: ClusterCensus;
  readonly runs: readonly UpkeepRun[];
}

/**
 * Count the cluster for its metrics. Only the registry that does upkeep counts, so that sums over all processes
 * are right. In the other registries, and after a failed count, the gauges have no samples.
 */
export function countCluster({ store, clock, metrics, isLeader, everyMs = EVERY_MS }: CountOptions): Loop {
  let counted: Counted | null = null;
  const expose = clusterGauges(metrics);
  onScrape(metrics, () => expose(isLeader() ? counted : null));
  return new Loop({
    name: "count-cluster",
    everyMs,
    clock,
    turn: async () => {
      if (!isLeader()) {
        counted = null;
        return;
      }
      try {
        counted = { census: await takeCensus(store.reserved), runs: await listUpkeepRuns(store.reserved.db) };
      } catch (error) {
        counted = null;
        throw error;
      }
    },
  });
}

function clusterGauges(metrics: MetricsRegistry): (counted: Counted | null) => void {
  const nodes = gauge(metrics, {
    name: "rollcall_nodes",
    help: "Compute nodes by state, in the registry that does upkeep.",
    labelNames: ["membership", "health", "connection", "scheduling"],
  });
  const conditions = gauge(metrics, {
    name: "rollcall_node_conditions",
    help: "Approved compute nodes that report a condition, by reason, in the registry that does upkeep.",
    labelNames: ["reason"],
  });
  const jobs = gauge(metrics, {
    name: "rollcall_jobs",
    help: "Jobs by type and state, in the registry that does upkeep.",
    labelNames: ["type", "state"],
  });
  const executions = gauge(metrics, {
    name: "rollcall_executions",
    help: "Executions that have not ended, by state, in the registry that does upkeep.",
    labelNames: ["state"],
  });
  const leases = gauge(metrics, {
    name: "rollcall_leases",
    help: "Number of leases by service: those of processes, and those of tasks that only one process runs at a time.",
    labelNames: ["service"],
  });
  const leaseAge = gauge(metrics, {
    name: "rollcall_leases_oldest_renewal_seconds",
    help: "Time since the oldest renewal of any lease, by service.",
    labelNames: ["service"],
  });
  const head = gauge(metrics, {
    name: "rollcall_log_head_revision",
    help: "The newest revision of the event log, in the registry that does upkeep.",
  });
  const upkeep = gauge(metrics, {
    name: "rollcall_upkeep_ended_timestamp_seconds",
    help:
      "Unix time in seconds when the last run of an upkeep task ended, by outcome; for a run in progress, when " +
      "it started.",
    labelNames: ["chore", "outcome"],
  });
  const all = [nodes, conditions, jobs, executions, leases, leaseAge, head, upkeep];
  return (counted) => {
    for (const one of all) one.reset();
    if (counted === null) {
      // Remove this gauge, because a reset gauge without labels would have the value 0.
      head.remove();
      return;
    }
    const { census, runs } = counted;
    for (const { membership, health, connection, scheduling, count } of census.nodes) {
      nodes.set({ membership, health, connection, scheduling }, count);
    }
    for (const { reason, count } of census.conditions) conditions.set({ reason }, count);
    for (const { count, ...group } of census.jobs) jobs.set(group, count);
    for (const { state, count } of census.executions) executions.set({ state }, count);
    for (const { service, count, oldestMs } of census.leases) {
      leases.set({ service }, count);
      leaseAge.set({ service }, Math.max(0, oldestMs / 1_000));
    }
    head.set(Number(census.head));
    for (const { name, outcome, startedAtMs, endedAtMs } of runs) {
      upkeep.set({ chore: name, outcome: outcome.toLowerCase() }, (endedAtMs ?? startedAtMs) / 1_000);
    }
  };
}
