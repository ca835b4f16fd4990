import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";

/** What a scheduler counts. */
export interface LeaderMetrics {
  planned(seconds: number): void;
  committed(outcome: "committed" | "stale" | "fenced", seconds: number): void;
  changed(kind: string, count: number): void;
  loaded(seconds: number): void;
  setWork(work: { readonly executions: number; readonly waiting: number }): void;
}

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Create the metrics of a scheduler. `leads` is asked at each scrape. */
export function createLeaderMetrics(registry: MetricsRegistry, leads: () => boolean): LeaderMetrics {
  const leading = gauge(registry, {
    name: "rollcall_scheduler_leader",
    help: "1 in the process that holds the lease of the scheduler, 0 in those that stand by.",
  });
  const executions = gauge(registry, {
    name: "rollcall_scheduler_executions",
    help: "Executions that have not ended, in the process that leads.",
  });
  const waiting = gauge(registry, {
    name: "rollcall_scheduler_waiting",
    help: "Places of jobs that found no node, in the process that leads.",
  });
  const plans = histogram(registry, {
    name: "rollcall_scheduler_plan_seconds",
    help: "Time to decide what is to be done.",
    buckets: SECONDS,
  });
  const commits = histogram(registry, {
    name: "rollcall_scheduler_commit_seconds",
    help: "Time to write what was decided, by outcome: stale is tried again, fenced ends the leadership.",
    labelNames: ["outcome"],
    buckets: SECONDS,
  });
  const changes = counter(registry, {
    name: "rollcall_scheduler_executions_changed_total",
    help: "Changes of executions that were written, by kind: placed, stopping, replacing, lost, found, ended, freed.",
    labelNames: ["kind"],
  });
  const loads = gauge(registry, {
    name: "rollcall_scheduler_load_seconds",
    help: "Time in which this process last read the record when it began to lead.",
  });
  onScrape(registry, () => {
    leading.set(leads() ? 1 : 0);
    if (leads()) return;
    executions.set(0);
    waiting.set(0);
  });
  return {
    planned: (seconds) => plans.observe(seconds),
    committed: (outcome, seconds) => commits.observe({ outcome }, seconds),
    changed: (kind, count) => changes.inc({ kind: kind.toLowerCase() }, count),
    loaded: (seconds) => loads.set(seconds),
    setWork: (work) => {
      executions.set(work.executions);
      waiting.set(work.waiting);
    },
  };
}
