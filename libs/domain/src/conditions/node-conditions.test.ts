import { describe, expect, it } from "@jest/globals";
import { nodeRecord } from "../testing/node.ts";
import { nodeInfoEvents } from "./info-events.ts";
import { conditionsEvent, conditionsOf, holdsAfterReport, impairedHealth } from "./node-conditions.ts";

const FULL = { reason: "DISK_FULL", message: "no space left in /state" };
const DEAD = { reason: "KEEPER_DOWN", message: "" };
const BY = { actor: "node:n", atMs: 5 };
const OPERATOR = { kind: "OPERATOR", sinceMs: 1, message: "", actor: "token:t" } as const;

describe("conditionsOf()", () => {
  it("should read what a report says, and nothing out of what makes no sense", () => {
    expect(conditionsOf({ conditions: [FULL, { reason: "KEEPER_DOWN" }] })).toEqual([FULL, DEAD]);
    for (const odd of [undefined, null, 1, {}, { conditions: {} }, { conditions: [1, null, {}, { reason: 3 }] }]) {
      expect(conditionsOf(odd as never)).toEqual([]);
    }
  });
});

describe("holdsAfterReport()", () => {
  it("should hold a node while it reports a condition, and keep other holds", () => {
    const held = holdsAfterReport([OPERATOR], { conditions: [FULL] }, BY);
    const message = "disk full: no space left in /state";
    expect(held).toEqual([OPERATOR, { kind: "CONDITION", sinceMs: 5, message, actor: "node:n" }]);
    expect(holdsAfterReport(held, { conditions: [FULL] }, { ...BY, atMs: 9 })).toBe(held);
    const more = holdsAfterReport(held, { conditions: [DEAD, FULL] }, { ...BY, atMs: 9 });
    expect(more[1]).toMatchObject({ sinceMs: 5, message: `keeper down; ${message}` });
    expect(holdsAfterReport(more, {}, BY)).toEqual([OPERATOR]);
    const free = [OPERATOR];
    expect(holdsAfterReport(free, {}, BY)).toBe(free);
  });
});

describe("conditionsEvent()", () => {
  const about = { subject: "n", actor: "node:n" };
  it.each([
    ["a new one", [DEAD], [DEAD, FULL], "DISK_FULL"],
    ["one that is over while another is left", [DEAD, FULL], [FULL], "DISK_FULL"],
    ["the last one that is over", [FULL], [], "CONDITIONS_OVER"],
  ])("should give the reason of %s", (_, before, after, reason) => {
    expect(conditionsEvent({ ...about, before, after })?.reason).toBe(reason);
  });

  it("should be none where nothing changed", () => {
    expect(conditionsEvent({ ...about, before: [FULL], after: [FULL] })).toBeNull();
  });
});

describe("impairedHealth()", () => {
  const health = {
    state: "HEALTHY",
    sinceMs: 1,
    reason: "HEARTBEAT_RECEIVED",
    message: "",
    actor: "replica:r",
  } as const;
  it("should give a healthy node the gravest condition as its reason, and leave any other as it is", () => {
    expect(impairedHealth(health, [FULL, DEAD])).toMatchObject({
      state: "HEALTHY",
      reason: "DISK_FULL",
      message: "disk full: no space left in /state; keeper down",
    });
    expect(impairedHealth(health, [])).toBe(health);
    const away = { ...health, state: "UNKNOWN" } as const;
    expect(impairedHealth(away, [FULL])).toBe(away);
  });
});

describe("nodeInfoEvents()", () => {
  it("should have an event for a condition and one for the hold that follows, and for their ends", () => {
    const report = (conditions: readonly object[]) =>
      ({ digest: "new", info: { conditions }, agentLabels: {} }) as never;
    const events = nodeInfoEvents(nodeRecord({ holds: [OPERATOR] }), report([FULL]));
    expect(events.slice(1)).toMatchObject([
      { type: "node.conditions.changed", reason: "DISK_FULL", after: { conditions: ["DISK_FULL"] } },
      {
        type: "node.scheduling.changed",
        message: "disk full: no space left in /state",
        before: { holds: ["OPERATOR"] },
        after: { scheduling: "INELIGIBLE", holds: ["OPERATOR", "CONDITION"] },
      },
    ]);
    const hold = { kind: "CONDITION", sinceMs: 5, message: "disk full: no space left in /state", actor: "" } as const;
    const held = nodeRecord({ holds: [hold], info: { conditions: [FULL] } });
    expect(nodeInfoEvents(held, report([])).slice(1)).toMatchObject([
      { type: "node.conditions.changed", reason: "CONDITIONS_OVER" },
      { type: "node.scheduling.changed", reason: "NO_HOLD", after: { scheduling: "ELIGIBLE", holds: [] } },
    ]);
  });
});
