import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";

/** Metrics of a scheduler. */
export interface LeaderMetrics {
  planned(seconds: number): void;
  committed(outcome: "committed" | "stale" | "fenced", seconds: number): void;
  changed(kind: string, count: number): void;
  loaded(seconds: number): void;
  setWork(work: { readonly executions: number; readonly waiting: number }): void;
}

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Create the metrics of a scheduler. `leads` is called at each scrape. */
export function createLeaderMetrics(registry: MetricsRegistry, leads: () => boolean): LeaderMetrics {
  const leading = gauge(registry, {
    name: "rollcall_scheduler_leader",
    help: "1 in the process that holds the scheduler's lease, 0 in standby processes.",
  });
  const executions = gauge(registry, {
    name: "rollcall_scheduler_executions",
    help: "Executions that have not ended, in the process that leads.",
  });
  const waiting = gauge(registry, {
    name: "rollcall_scheduler_waiting",
    help: "Replicas of jobs without a suitable node, in the process that leads.",
  });
  const plans = histogram(registry, {
    name: "rollcall_scheduler_plan_seconds",
    help: "Time to make a plan.",
    buckets: SECONDS,
  });
  const commits = histogram(registry, {
    name: "rollcall_scheduler_commit_seconds",
    help: "Time to write a plan, by outcome: stale is planned again, fenced ends the leadership.",
    labelNames: ["outcome"],
    buckets: SECONDS,
  });
  const changes = counter(registry, {
    name: "rollcall_scheduler_executions_changed_total",
    help: "Written changes of executions, by kind: placed, stopping, replacing, lost, found, ended, freed.",
    labelNames: ["kind"],
  });
  const loads = gauge(registry, {
    name: "rollcall_scheduler_load_seconds",
    help: "Time that this process last needed to load the store when it began to lead.",
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
