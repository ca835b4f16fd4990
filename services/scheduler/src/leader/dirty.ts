import type { EventInterest, EventType, JobEventType } from "@rollcall/domain";
import type { EventRow } from "@rollcall/store";

const NODE_EVENTS: readonly EventType[] = [
  "node.registered",
  "node.approved",
  "node.rejected",
  "node.deleted",
  "node.deregistered",
  "node.banned",
  "node.unbanned",
  "node.info.changed",
  "node.labels.changed",
  "node.connection.changed",
  "node.health.changed",
  "node.reactions.allowed",
  "node.scheduling.changed",
  "node.drain.started",
  "node.drain.cancelled",
  "node.hardware.accepted",
];
const JOB_EVENTS: readonly JobEventType[] = ["job.submitted", "job.changed", "job.deleted"];
const ORDERS: JobEventType = "job.execution.ordered";

/** The events that a leader reads: everything that can change what should run where. */
export const LEADER_INTEREST: EventInterest = {
  types: new Set([...NODE_EVENTS, ...JOB_EVENTS, ORDERS]),
  displaced: new Set(),
};

/**
 * Collects the nodes, jobs and executions that have changed, according to events. Each is included only
 * once.
 */
export class Dirty {
  readonly #nodes = new Set<string>();
  readonly #jobs = new Set<string>();
  readonly #ordered = new Set<string>();

  /** Add the nodes, jobs and executions that these events are about. */
  note(events: readonly Pick<EventRow, "type" | "subject" | "after">[]): void {
    for (const event of events) {
      if (event.type === ORDERS) this.#ordered.add(executionIn(event));
      else if (event.type.startsWith("node.")) this.#nodes.add(event.subject);
      else this.#jobs.add(event.subject);
    }
  }

  /** Add nodes and jobs that must be read again. */
  add({ nodeIds, jobs }: { readonly nodeIds: readonly string[]; readonly jobs: readonly string[] }): void {
    for (const id of nodeIds) this.#nodes.add(id);
    for (const name of jobs) this.#jobs.add(name);
  }

  /** Handle the orders about these executions. */
  addOrdered(ids: readonly string[]): void {
    for (const id of ids) this.#ordered.add(id);
  }

  /** Whether unhandled orders are left. */
  get hasOrders(): boolean {
    return this.#ordered.size > 0;
  }

  /** Take the nodes that have to be read again. */
  takeNodes(): readonly string[] {
    const nodes = [...this.#nodes];
    this.#nodes.clear();
    return nodes;
  }

  /** Take the jobs that have to be read again. */
  takeJobs(): readonly string[] {
    const jobs = [...this.#jobs];
    this.#jobs.clear();
    return jobs;
  }

  /** Take up to `most` executions that operators gave orders about. */
  takeOrdered(most: number): readonly string[] {
    const ordered = [...this.#ordered].slice(0, most);
    for (const id of ordered) this.#ordered.delete(id);
    return ordered;
  }

  /** Forget everything. */
  clear(): void {
    this.#nodes.clear();
    this.#jobs.clear();
    this.#ordered.clear();
  }
}

function executionIn({ after }: Pick<EventRow, "after">): string {
  const facts = after as { readonly execution?: unknown } | null;
  return typeof facts?.execution === "string" ? facts.execution : "";
}
