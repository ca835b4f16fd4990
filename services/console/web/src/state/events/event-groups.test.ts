import { describe, expect, it } from "@jest/globals";
import { actorName, groupEvents } from "./event-groups.ts";

const event = (subject: string, atMs: number, did = "became unhealthy", actor = "replica:h1") => ({
  ...{ type: "node.health.changed", reason: "HEARTBEATS_MISSED" },
  ...{ subject, atMs, did, actor },
});
const subjects = (...events: readonly ReturnType<typeof event>[]) =>
  groupEvents(events).map((group) => group.map(({ subject }) => subject).join(" "));

describe("groupEvents()", () => {
  it("should group events with the same cause, even with other events in between", () => {
    expect(
      subjects(event("c", 9_000), event("x", 8_000, "disconnected"), event("b", 7_000), event("a", 1_000)),
    ).toEqual(["c b a", "x"]);
  });

  it("should not group events that are too far apart, or have different actors", () => {
    expect(subjects(event("c", 30_000), event("b", 20_000), event("a", 9_999))).toEqual(["c b", "a"]);
    expect(subjects(event("b", 2), event("a", 1, "became unhealthy", "replica:h2"))).toEqual(["b", "a"]);
  });
});

describe("actorName()", () => {
  it("should name people and tokens, and processes with their kind", () => {
    const tokens = new Map([["t1", "first admin token"]]);
    const actors = ["token:t1", "token:t2", "user:ana@example.com", "replica:h1", "system"];
    expect(actors.map((actor) => actorName(actor, tokens))).toEqual([
      "first admin token",
      "token t2",
      "ana@example.com",
      "replica h1",
      "system",
    ]);
  });
});
