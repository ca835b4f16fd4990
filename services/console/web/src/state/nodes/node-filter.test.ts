import { describe, expect, it } from "@jest/globals";
import { HealthState, MembershipState, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { filterFromSearch, filterToSearch, isFiltered, NO_FILTER, type NodeFilter, nodeTest } from "./node-filter.ts";
import { testRow } from "./testing/test-rows.ts";

const ROWS = [
  testRow("alpha", { zone: "a", cores: "64" }),
  testRow("beta", { zone: "b" }, { health: { state: HealthState.UNHEALTHY } }),
  testRow("gamma", { zone: "a" }, { membership: { state: MembershipState.PENDING } }),
  testRow("up-1", {}, { type: NodeType.ORCHESTRATOR }),
];

function ids(filter: Partial<NodeFilter>): readonly string[] {
  const found = nodeTest({ ...NO_FILTER, ...filter });
  if (!found.ok) throw new Error(found.message);
  return ROWS.filter(found.test).map(({ id }) => id);
}

describe("nodeTest()", () => {
  it.each<[Partial<NodeFilter>, readonly string[]]>([
    [{}, ["alpha", "beta", "gamma"]],
    [{ type: ["control-plane"] }, ["up-1"]],
    [{ approval: ["PENDING", "REJECTED"] }, ["gamma"]],
    [{ health: ["UNHEALTHY"] }, ["beta"]],
    [{ labels: "zone=a" }, ["alpha", "gamma"]],
    [{ labels: "zone in (a,b),cores>32" }, ["alpha"]],
    [{ q: "ALPHA.ex" }, ["alpha"]],
    [{ q: "zone=a gam" }, ["gamma"]],
  ])("should choose by %j", (filter, expected) => {
    expect(ids(filter)).toEqual(expected);
  });

  it("should say what is wrong with a selector", () => {
    expect(nodeTest({ ...NO_FILTER, labels: "zone in" })).toMatchObject({ ok: false });
  });
});

describe("filterFromSearch()", () => {
  it("should read what filterToSearch() writes", () => {
    const filter: NodeFilter = { ...NO_FILTER, q: "x", health: ["HEALTHY", "UNKNOWN"], labels: "a=b" };
    expect(filterFromSearch(filterToSearch(filter))).toEqual(filter);
    expect(isFiltered(filter)).toBe(true);
  });

  it("should ignore unknown values", () => {
    expect(filterFromSearch({ health: "fine,unknown", approval: 7, q: null })).toEqual({
      ...NO_FILTER,
      health: ["UNKNOWN"],
    });
    expect(isFiltered(filterFromSearch({}))).toBe(false);
  });
});
