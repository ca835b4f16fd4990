import { describe, expect, it } from "@jest/globals";
import { HealthState, MembershipState, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { cellOf, mapGroups, mapLabels } from "./fleet-map.ts";
import { testRow } from "./testing/test-rows.ts";

describe("cellOf()", () => {
  it("should show the most serious state", () => {
    const pending = { membership: { state: MembershipState.PENDING } };
    const unhealthy = { health: { state: HealthState.UNHEALTHY } };
    const held = { scheduling: { state: SchedulingState.INELIGIBLE } };
    const cells = [{}, held, { ...held, ...unhealthy }, { health: { state: HealthState.UNKNOWN } }, pending].map(
      (more) => cellOf(testRow("a", {}, more)),
    );
    expect(cells).toEqual(["healthy", "held", "unhealthy", "unknown", "not approved"]);
  });
});

describe("mapGroups()", () => {
  it("should order groups by value, nodes by id, and put nodes without the label last", () => {
    const rows = [
      testRow("d"),
      testRow("c", { rack: "10" }),
      testRow("b", { rack: "2" }),
      testRow("a", { rack: "10" }),
    ];
    expect(mapGroups(rows, "rack").map(({ value, rows: of }) => [value, of.map(({ id }) => id).join(" ")])).toEqual([
      ["2", "b"],
      ["10", "a c"],
      [null, "d"],
    ]);
    expect(mapGroups(rows, "rack")[1]?.counts).toMatchObject({ healthy: 2, unhealthy: 0 });
  });
});

describe("mapLabels()", () => {
  it("should offer the labels that most nodes have", () => {
    const rows = [testRow("a", { zone: "z", rack: "r" }), testRow("b", { zone: "z" }), testRow("c", { spot: "" })];
    expect(mapLabels(rows, 2)).toEqual(["zone", "rack"]);
    expect(mapLabels([...rows, testRow("d", { spot: "" })], 1)).toEqual(["spot"]);
  });
});
