import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Json } from "../events/events.ts";
import { addBrakeSums, brakeSumsFromJson, brakeSumsToJson, countedAs } from "./brake-sums.ts";

const SUMS = {
  sequence: 7,
  groups: new Map([
    ["cluster", { healthy: 3, silent: 1 }],
    ["zone=a", { healthy: 2, silent: 0 }],
  ]),
};

describe("brakeSumsToJson()", () => {
  it("should write a pair for each group", () => {
    expect(brakeSumsToJson(SUMS)).toEqual({ sequence: 7, groups: { cluster: [3, 1], "zone=a": [2, 0] } });
  });

  it("should be read back", () => {
    const anySum = fc.record({ healthy: fc.nat(), silent: fc.nat() });
    const anySums = fc.record({
      sequence: fc.nat(),
      groups: fc.array(fc.tuple(fc.string(), anySum)).map((it) => new Map(it)),
    });
    fc.assert(
      fc.property(anySums, (sums) => {
        const read = brakeSumsFromJson(brakeSumsToJson(sums));
        expect(read?.sequence).toBe(sums.sequence);
        expect(Object.fromEntries(read?.groups ?? [])).toEqual(Object.fromEntries(sums.groups));
      }),
    );
  });
});

describe("brakeSumsFromJson()", () => {
  it.each<[Json]>([
    [null],
    [7],
    ["text"],
    [{}],
    [{ groups: {} }],
    [{ sequence: "7", groups: {} }],
    [{ sequence: 7 }],
    [{ sequence: 7, groups: null }],
    [{ sequence: 7, groups: "cluster" }],
    [{ sequence: 7, groups: { cluster: null } }],
    [{ sequence: 7, groups: { cluster: { healthy: 3 } } }],
    [{ sequence: 7, groups: { cluster: [3] } }],
    [{ sequence: 7, groups: { cluster: ["3", 1] } }],
    [{ sequence: 7, groups: { cluster: [3, "1"] } }],
    [{ sequence: 7, groups: { cluster: [3, 1], "zone=a": [] } }],
  ])("should take %j for another kind of report", (json) => {
    expect(brakeSumsFromJson(json)).toBeNull();
  });

  it("should read a report of no group", () => {
    expect(brakeSumsFromJson({ sequence: 0, groups: {} })).toEqual({ sequence: 0, groups: new Map() });
  });
});

describe("addBrakeSums()", () => {
  it("should add by group", () => {
    const other = { sequence: 1, groups: new Map([["cluster", { healthy: 10, silent: 4 }]]) };
    expect(addBrakeSums([SUMS, other])).toEqual(
      new Map([
        ["cluster", { healthy: 13, silent: 5 }],
        ["zone=a", { healthy: 2, silent: 0 }],
      ]),
    );
    expect(addBrakeSums([])).toEqual(new Map());
  });
});

describe("countedAs()", () => {
  const seen = { membership: "APPROVED", detected: "HEALTHY", written: "HEALTHY", reason: "", silentMs: 0 } as const;
  const declared = { ...seen, detected: "UNHEALTHY", reason: "HEARTBEATS_MISSED" } as const;

  it.each([
    ["a node that was just heard", seen, "healthy"],
    ["one that is silent for half of its threshold", { ...seen, silentMs: 5_000 }, "healthy"],
    ["one that is silent for longer", { ...seen, silentMs: 5_001 }, "silent"],
    ["one that is declared lost and not yet recorded", declared, "silent"],
    ["one that is recorded as lost", { ...declared, written: "UNHEALTHY" }, null],
    ["one that said goodbye", { ...declared, reason: "AGENT_SHUTDOWN" }, null],
    ["one that waits for approval", { ...seen, membership: "PENDING" }, null],
    ["one that is rejected", { ...declared, membership: "REJECTED" }, null],
  ] as const)("should count %s", (_, { membership, detected, written, reason, silentMs }, expected) => {
    const node = { membership: { state: membership }, health: { reason }, writtenHealth: { state: written } };
    const times = { health: detected, lastReceivedMs: 1_000, thresholds: { unhealthyAfterMs: 10_000 } };
    expect(countedAs(node, times, 1_000 + silentMs)).toBe(expected);
  });

  it("should not count a node whose membership is not known", () => {
    const node = { membership: null, health: { reason: "" }, writtenHealth: { state: "HEALTHY" } } as const;
    const times = { health: "HEALTHY", lastReceivedMs: 0, thresholds: { unhealthyAfterMs: 1 } } as const;
    expect(countedAs(node, times, 0)).toBeNull();
  });
});
