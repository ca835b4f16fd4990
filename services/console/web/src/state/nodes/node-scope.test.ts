import { describe, expect, it } from "@jest/globals";
import { MembershipState, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { filterFromSearch, NO_FILTER } from "./node-filter.ts";
import { belongsTo, toListing, toSearch, toWatched, WHOLE_FLEET } from "./node-scope.ts";
import { testRow } from "./testing/test-rows.ts";

describe("toListing()", () => {
  it("should ask for machines by id where nothing is chosen", () => {
    expect(toListing(WHOLE_FLEET)).toMatchObject({ types: [NodeType.COMPUTE], orderBy: "id", search: "" });
  });

  it("should ask for all that is chosen, in the order of the page where the server has it", () => {
    const words = { q: "h100", approval: "pending,approved", health: "unhealthy", labels: "zone=a" };
    const filter = filterFromSearch(words);
    expect(toListing({ filter, by: "health", reversed: true })).toMatchObject({
      memberships: [MembershipState.PENDING, MembershipState.APPROVED],
      statuses: [NodeStatus.UNHEALTHY],
      labelSelector: "zone=a",
      search: "h100",
      orderBy: "status desc",
    });
    expect(toListing({ filter, by: "labels", reversed: false }).orderBy).toBe("id");
  });
});

describe("toSearch()", () => {
  it("should ask for as many words and characters as the server takes, each once", () => {
    expect(toSearch(" H100  Epyc h100 ")).toBe("h100 epyc");
    expect(toSearch("a b c d e f g h i j")).toBe("a b c d e f g h");
    expect(toSearch("x".repeat(300))).toHaveLength(256);
  });
});

describe("toWatched()", () => {
  it("should ask for no state that changes by itself: the page has to hear what leaves its view", () => {
    const filter = { ...NO_FILTER, health: ["HEALTHY"], connection: ["CONNECTED"], scheduling: ["ELIGIBLE"] };
    expect(toWatched({ ...WHOLE_FLEET, filter })).toEqual({ labelSelector: "", memberships: [], types: [2] });
  });
});

describe("belongsTo()", () => {
  const [a, m, z] = ["a", "m", "z"].map((id) => testRow(id, { zone: id }));
  if (a === undefined || m === undefined || z === undefined) throw new Error("there are three");

  it("should take what comes before the last node that was read, what is known, and all when all were read", () => {
    const belongs = belongsTo(WHOLE_FLEET);
    expect([a, m, z].map((row) => belongs(row, false, m))).toEqual([true, true, false]);
    expect(belongs(z, true, m)).toBe(true);
    expect(belongs(z, false, null)).toBe(true);
    const back = belongsTo({ ...WHOLE_FLEET, reversed: true });
    expect([a, m, z].map((row) => back(row, false, m))).toEqual([false, true, true]);
  });

  it("should take no node that the filter hides, known or not", () => {
    const belongs = belongsTo({ ...WHOLE_FLEET, filter: { ...NO_FILTER, labels: "zone=a" } });
    expect([a, m].map((row) => belongs(row, true, null))).toEqual([true, false]);
  });
});
