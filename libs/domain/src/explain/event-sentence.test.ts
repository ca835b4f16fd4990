import { describe, expect, it } from "@jest/globals";
import { EVENT_TYPES } from "./event-catalogue.ts";
import { eventSentence, inPlural } from "./event-sentence.ts";
import type { ToldEvent } from "./explain-event.ts";

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
      "alpha had its execution e1 on gpu-1 end as killed oom",
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
