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
const JOB_EVENTS: readonly JobEventType[] = ["job.submitted", "job.changed"];
const ORDERS: JobEventType = "job.execution.ordered";

/** What a leader reads of the log: whatever may change what should run where. */
export const LEADER_INTEREST: EventInterest = {
  types: new Set([...NODE_EVENTS, ...JOB_EVENTS, ORDERS]),
  displaced: new Set(),
};

/** What has to be read again. Each thing is in it once, however often it changed. */
export interface DirtyWork {
  readonly nodes: ReadonlySet<string>;
  readonly jobs: ReadonlySet<string>;
  /** Executions that operators gave orders about. */
  readonly ordered: ReadonlySet<string>;
}

/** Collects what events say has changed. */
export class Dirty {
  #nodes = new Set<string>();
  #jobs = new Set<string>();
  #ordered = new Set<string>();

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

  /** Take all of it; null for nothing. */
  take(): DirtyWork | null {
    const [nodes, jobs, ordered] = [this.#nodes, this.#jobs, this.#ordered];
    if (nodes.size + jobs.size + ordered.size === 0) return null;
    this.#nodes = new Set();
    this.#jobs = new Set();
    this.#ordered = new Set();
    return { nodes, jobs, ordered };
  }
}

function executionIn({ after }: Pick<StoredEvent, "after">): string {
  const facts = after as { readonly execution?: unknown } | null;
  return typeof facts?.execution === "string" ? facts.execution : "";
}
