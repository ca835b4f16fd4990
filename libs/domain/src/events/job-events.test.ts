import { describe, expect, it } from "@jest/globals";
import { EVENT_CATALOGUE } from "../explain/event-catalogue.ts";
import { explainEvent } from "../explain/event-sentence.ts";
import type { NewEvent } from "./events.ts";
import {
  executionEvent,
  executionOrderedEvent,
  executionsOrphanedEvent,
  executionsPlacedEvents,
  jobChangedEvent,
  jobSubmittedEvent,
  MOST_PLACED_IDS,
  schedulerActor,
} from "./job-events.ts";

const BY = { actor: "token:ops", message: "why", atMs: 1 };
const JOB = { state: "ACTIVE", version: 2, count: 3, halted: null, waitingNodes: 0 };
const EXECUTION = { id: "e1", job: "web", nodeId: "n1", index: 4, state: "LIVE" };

/** Check fields and reason against the catalogue. */
function expectCatalogued({ type, before, after, reason }: NewEvent): void {
  const row = EVENT_CATALOGUE[type];
  expect(row.reasons).toContain(reason);
  for (const [side, fields] of [
    [before, row.before],
    [after, row.after],
  ] as const) {
    for (const field of Object.keys((side ?? {}) as object)) expect(fields).toContain(field);
  }
}

const told = (event: NewEvent) => explainEvent({ ...event, atMs: 1 });

describe("jobSubmittedEvent()", () => {
  it("should have the job before and after; a new one has none before", () => {
    const made = jobSubmittedEvent({ name: "web", type: "service", before: null, after: JOB, by: BY });
    expect(made).toMatchObject({
      ...{ type: "job.submitted", subject: "web", actor: "token:ops", message: "why", before: null },
      after: { state: "ACTIVE", version: 2, count: 3, type: "service" },
    });
    expectCatalogued(made);
    const again = jobSubmittedEvent({
      name: "web",
      type: "service",
      before: { ...JOB, version: 1 },
      after: JOB,
      by: BY,
    });
    expect(again.before).toEqual({ state: "ACTIVE", version: 1, count: 3 });
    expectCatalogued(again);
  });
});

describe("jobChangedEvent()", () => {
  it.each([
    ["JOB_SCALED", { count: 5 }, { count: 3 }, { count: 5 }],
    ["JOB_STOPPED", { state: "STOPPED" }, { state: "ACTIVE" }, { state: "STOPPED" }],
    ["JOB_UPDATED", { halted: "not ready" }, { halted: null }, { halted: "not ready" }],
    ["JOB_RESTARTED", {}, {}, {}],
    ["JOB_WAITING", { waitingNodes: 2 }, { waitingNodes: 0 }, { waitingNodes: 2 }],
  ] as const)("should contain only the facts that differ: %s", (reason, change, before, after) => {
    const rest = { name: "web", before: JOB, reason, actor: "a", message: "" };
    const event = jobChangedEvent({ ...rest, after: { ...JOB, ...change } });
    expect(event).toMatchObject({ type: "job.changed", subject: "web", before, after });
    expectCatalogued(event);
  });
});

describe("executionsPlacedEvents()", () => {
  it.each([
    [0, []],
    [1, [1]],
    [MOST_PLACED_IDS, [MOST_PLACED_IDS]],
    [MOST_PLACED_IDS + 1, [MOST_PLACED_IDS, 1]],
  ])("should split %d ids", (count, sizes) => {
    const ids = Array.from({ length: count }, (_, number) => `e${number}`);
    const events = executionsPlacedEvents("web", ids, schedulerActor("s1"));
    const parts = events.map(({ after }) => (after as { executions: string[] }).executions);
    expect(parts.map(({ length }) => length)).toEqual(sizes);
    expect(parts.flat()).toEqual(ids);
    for (const event of events) expectCatalogued(event);
  });

  it("should be described by their number", () => {
    const [event] = executionsPlacedEvents("web", ["e1", "e2"], "scheduler:s1");
    expect(event === undefined ? "" : told(event)).toBe("had 2 executions placed");
  });
});

describe("executionEvent()", () => {
  it.each([
    ["job.execution.ended", "OOM"],
    ["job.execution.lost", "NODE_LOST"],
    ["job.execution.found", "EXECUTION_FOUND"],
    ["job.execution.restored", "EXECUTION_RESTORED"],
    ["job.execution.adopted", "EXECUTION_ADOPTED"],
  ] as const)("should report %s", (type, reason) => {
    const before = { ...EXECUTION, state: "LOST" };
    const event = executionEvent({ type, before, after: EXECUTION, reason, message: "", actor: "scheduler:s1" });
    expect(event).toMatchObject({ subject: "web", after: { execution: "e1", node: "n1", state: "LIVE" } });
    expectCatalogued(event);
  });

  it("should name its replacement", () => {
    const change = { before: EXECUTION, after: EXECUTION, reason: "NODE_LOST", message: "", actor: "s" };
    const event = executionEvent({ ...change, type: "job.execution.replaced", replacedBy: "e2" });
    expect(event.after).toMatchObject({ execution: "e1", replacedBy: "e2" });
    expect(told(event)).toContain("replaced by e2");
  });
});

describe("executionsOrphanedEvent()", () => {
  it("should report how many there are, and where", () => {
    const found = { count: 600, nodes: ["n1", "n2"], jobs: ["web"], actor: "scheduler:s1" };
    const event = executionsOrphanedEvent(found);
    expect(event).toMatchObject({ subject: "cluster", after: { count: 600 } });
    expect(told(event)).toBe("has 600 executions that no job knows, count 600, on nodes n1 + n2, of jobs web");
    expectCatalogued(event);
  });
});

describe("executionOrderedEvent()", () => {
  it.each([
    ["STOP", "STOP_ORDERED"],
    ["ADOPT", "ADOPTION_ORDERED"],
  ] as const)("should describe an order to %s", (order, reason) => {
    const event = executionOrderedEvent(EXECUTION, order, BY);
    expect(event).toMatchObject({ subject: "web", reason, after: { execution: "e1", node: "n1", order } });
    expectCatalogued(event);
  });
});
