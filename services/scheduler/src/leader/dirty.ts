import type { EventInterest, EventType, JobEventType } from "@rollcall/domain";
import type { StoredEvent } from "@rollcall/store";

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

/** What a leader reads of the log: whatever may change what should run where. */
export const LEADER_INTEREST: EventInterest = {
  types: new Set([...NODE_EVENTS, ...JOB_EVENTS, ORDERS]),
  displaced: new Set(),
};

/** Collects what events say has changed: each thing once, however often it did. */
export class Dirty {
  readonly #nodes = new Set<string>();
  readonly #jobs = new Set<string>();
  readonly #ordered = new Set<string>();

  /** Note what events are about. */
  note(events: readonly Pick<StoredEvent, "type" | "subject" | "after">[]): void {
    for (const event of events) {
      if (event.type === ORDERS) this.#ordered.add(executionIn(event));
      else if (event.type.startsWith("node.")) this.#nodes.add(event.subject);
      else this.#jobs.add(event.subject);
    }
  }

  /** Read these nodes and jobs again. */
  add({ nodeIds, jobs }: { readonly nodeIds: readonly string[]; readonly jobs: readonly string[] }): void {
    for (const id of nodeIds) this.#nodes.add(id);
    for (const name of jobs) this.#jobs.add(name);
  }

  /** See to the orders about these executions. */
  addOrdered(ids: readonly string[]): void {
    for (const id of ids) this.#ordered.add(id);
  }

  /** Whether orders are left to be seen to. */
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

  /** Take executions that operators gave orders about, so many at most. */
  takeOrdered(most: number): readonly string[] {
    const ordered = [...this.#ordered].slice(0, most);
    for (const id of ordered) this.#ordered.delete(id);
    return ordered;
  }

  /** Forget all of it. */
  clear(): void {
    this.#nodes.clear();
    this.#jobs.clear();
    this.#ordered.clear();
  }
}

function executionIn({ after }: Pick<StoredEvent, "after">): string {
  const facts = after as { readonly execution?: unknown } | null;
  return typeof facts?.execution === "string" ? facts.execution : "";
}
