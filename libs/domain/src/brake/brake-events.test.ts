import { describe, expect, it } from "@jest/globals";
import { brakeCountsText, brakeEvent, reactionsAllowedEvent } from "./brake-events.ts";

const ALLOWED = {
  subject: "n1",
  group: "zone=a",
  brake: "PARTIAL",
  lostSinceMs: 5,
  reason: "BRAKE_PACED",
  actor: "replica:h1",
  message: "m",
} as const;
const COUNTS = { size: 10, silent: 4, lost: 3, unsettled: 2, healthy: 7 };

describe("reactionsAllowedEvent()", () => {
  it.each([
    ["zone=a", { group: "zone=a", brake: "PARTIAL", lostSinceMs: 5 }],
    ["", { brake: "PARTIAL", lostSinceMs: 5 }],
  ])("should describe a node of the group %j", (group, after) => {
    expect(reactionsAllowedEvent({ ...ALLOWED, group })).toEqual({
      ...{ type: "node.reactions.allowed", subject: "n1", actor: "replica:h1", reason: "BRAKE_PACED", message: "m" },
      ...{ before: null, after },
    });
  });
});

describe("brakeEvent()", () => {
  const change: Omit<Parameters<typeof brakeEvent>[0], "counts"> = {
    ...{ group: "zone=a", before: "NORMAL", after: "FULL", reason: "MASS_LOSS", actor: "replica:h1", message: "m" },
  };

  it.each([
    [null, { brake: "FULL" }],
    [COUNTS, { brake: "FULL", size: 10, silent: 4, lost: 3 }],
  ])("should contain the counts %j", (counts, after) => {
    expect(brakeEvent({ ...change, counts })).toEqual({
      ...{ type: "brake.changed", subject: "zone=a", actor: "replica:h1", reason: "MASS_LOSS", message: "m" },
      ...{ before: { brake: "NORMAL" }, after },
    });
  });
});

describe("brakeCountsText()", () => {
  it("should describe the counts in words", () => {
    expect(brakeCountsText(COUNTS)).toBe("of 10 nodes, 4 are silent and 3 are lost");
  });
});
