import { describe, expect, it } from "@jest/globals";
import type { ToldEvent } from "./describe-change.ts";
import { EVENT_CATALOGUE, EVENT_TYPES } from "./event-catalogue.ts";
import { eventSentence, explainEvent, inPlural } from "./event-sentence.ts";

const event = (change: Partial<ToldEvent>): ToldEvent => ({
  ...{ type: "node.registered", atMs: 0, reason: "", message: "", actor: "", before: null, after: null },
  ...change,
});
const say = (change: Partial<ToldEvent>) => {
  const { did, cause } = eventSentence(event(change));
  return `alpha ${did}${cause === "" ? "" : `: ${cause}`}`;
};

describe("eventSentence()", () => {
  it.each<[string, Partial<ToldEvent>]>([
    [
      "alpha became unhealthy: nothing received for 60 s",
      {
        type: "node.health.changed",
        before: { health: "HEALTHY" },
        after: { health: "UNHEALTHY", evidence: { silentMs: 60_000 } },
      },
    ],
    ["alpha joined the cluster", {}],
    ["alpha was rejected: unknown rack", { type: "node.rejected", message: "unknown rack" }],
    [
      "alpha disconnected",
      {
        type: "node.connection.changed",
        before: { connection: "CONNECTED" },
        after: { connection: "DISCONNECTED" },
      },
    ],
    [
      "alpha moved to replica h2 without disconnecting",
      { type: "node.session.moved", before: { replica: "h1" }, after: { replica: "h2" } },
    ],
    [
      "alpha had its execution e1 on gpu-1 end as killed: out of memory",
      { type: "job.execution.ended", after: { execution: "e1", node: "gpu-1", state: "KILLED_OOM" } },
    ],
    ["alpha changed", { type: "job.changed" }],
    ["alpha was submitted as version 3", { type: "job.submitted", after: { version: 3 } }],
  ])("should say %s", (words, change) => {
    expect(say(change)).toBe(words);
  });

  it("should have words for every type, also when an event has no fields", () => {
    for (const type of EVENT_TYPES) expect(eventSentence(event({ type })).did).toMatch(/^\w/);
  });
});

describe("explainEvent()", () => {
  it.each<[string, Partial<ToldEvent>]>([
    [
      "joined the cluster, from 192.0.2.7: approval required",
      {
        reason: "APPROVAL_REQUIRED",
        after: { membership: "PENDING", joinedFrom: "192.0.2.7" },
      },
    ],
    [
      "was approved: the demo",
      {
        ...{ type: "node.approved", reason: "OPERATOR_APPROVED", message: "the demo" },
        ...{ before: { membership: "PENDING" }, after: { membership: "APPROVED" } },
      },
    ],
    [
      "became ineligible, held by operator: operator cordoned, repair",
      {
        ...{ type: "node.scheduling.changed", reason: "OPERATOR_CORDONED", message: "repair" },
        ...{ before: { scheduling: "ELIGIBLE" }, after: { scheduling: "INELIGIBLE", holds: ["OPERATOR"] } },
      },
    ],
    [
      "is still ineligible, held by flapping + operator: node flapping",
      {
        ...{ type: "node.scheduling.changed", reason: "NODE_FLAPPING" },
        ...{
          before: { scheduling: "INELIGIBLE" },
          after: { scheduling: "INELIGIBLE", holds: ["FLAPPING", "OPERATOR"] },
        },
      },
    ],
    [
      "halted its update: e1 failed: exit code 3",
      {
        ...{ type: "job.changed", reason: "JOB_UPDATED", message: "e1 failed: exit code 3" },
        ...{ before: { halted: null }, after: { halted: "e1 failed: exit code 3" } },
      },
    ],
    [
      "is not held now",
      {
        ...{ type: "node.scheduling.changed", reason: "NO_HOLD" },
        ...{ before: { scheduling: "INELIGIBLE" }, after: { scheduling: "ELIGIBLE", holds: [] } },
      },
    ],
    [
      "has a condition: disk full: 1 MiB left",
      {
        ...{ type: "node.conditions.changed", reason: "DISK_FULL", message: "disk full: 1 MiB left" },
        after: { conditions: ["DISK_FULL"] },
      },
    ],
    ["was scaled, count 3", { type: "job.changed", reason: "JOB_SCALED", before: { count: 1 }, after: { count: 3 } }],
    ["is rolled out: every wanted execution is ready", { type: "job.changed", reason: "JOB_ROLLED_OUT", after: {} }],
    [
      "changed: waiting on 2 nodes: job waiting",
      {
        ...{ type: "job.changed", reason: "JOB_WAITING", after: { waitingNodes: 2 } },
      },
    ],
    [
      "replaced its execution e1 on n1, replaced by e2: node drained",
      {
        ...{ type: "job.execution.replaced", reason: "NODE_DRAINED", before: { state: "LIVE" } },
        after: { execution: "e1", node: "n1", index: 1, state: "LIVE", replacedBy: "e2" },
      },
    ],
    [
      "got an order to stop its execution e1 on n1",
      {
        ...{
          type: "job.execution.ordered",
          reason: "STOP_ORDERED",
          after: { execution: "e1", node: "n1", order: "STOP" },
        },
      },
    ],
  ])("should say %s", (words, change) => {
    expect(explainEvent(event(change))).toBe(words);
  });

  it("should have no names of the API for any type", () => {
    for (const type of EVENT_TYPES) {
      const { before, after, reasons } = EVENT_CATALOGUE[type];
      const sideOf = (fields: readonly string[] | null) =>
        fields && Object.fromEntries(fields.map((name) => [name, name === "halted" ? null : "SOME_STATE"]));
      for (const reason of reasons) {
        const text = explainEvent(event({ type, reason, before: sideOf(before), after: sideOf(after) }));
        expect(`${type} ${text}`).not.toMatch(
          new RegExp(`${reason.includes("_") ? reason : "^$"}|(?<!labels )[a-z][A-Z]`),
        );
      }
    }
  });

  it.each([
    [61_000, 2_000, "last received 61.0 s before; 2.0 s not counted, because heartbeats could not be received then"],
    [null, 0, "this replica never received anything"],
  ])("should explain the evidence of a silence: %j", (lastReceivedAgoMs, grantedMs, expected) => {
    const evidence = {
      ...{ silentMs: 60_000, thresholdMs: 60_000, value: "unhealthyAfter", policy: "group gpus", replica: "h1" },
      ...{ lastReceivedAgoMs, grantedMs },
    };
    const silence = event({
      ...{ type: "node.health.changed", reason: "HEARTBEATS_MISSED" },
      ...{ before: { health: "HEALTHY" }, after: { health: "UNHEALTHY", evidence } },
    });
    expect(explainEvent(silence)).toBe(
      "became unhealthy: nothing received for 60.0 s; unhealthy-after of group gpus allows 60.0 s; " +
        `${expected}; decided by replica h1`,
    );
  });
});

describe("inPlural()", () => {
  it("should fit several subjects", () => {
    expect(["was approved", "has a new key", "is flapping", "connected"].map(inPlural)).toEqual([
      "were approved",
      "have a new key",
      "are flapping",
      "connected",
    ]);
  });
});
