import { describe, expect, it } from "@jest/globals";
import { MembershipState, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { filterFromSearch, NO_FILTER } from "./node-filter.ts";
import { approvalOf, belongsTo, toListing, toSearch, toWatched, WHOLE_FLEET } from "./node-scope.ts";
import { testRow } from "./testing/test-rows.ts";

describe("toListing()", () => {
  it("should request machines by id if nothing is selected", () => {
    expect(toListing(WHOLE_FLEET)).toMatchObject({ types: [NodeType.COMPUTE], orderBy: "id", search: "" });
  });

  it("should request all selected nodes, in the order of the page if the server supports it", () => {
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

describe("approvalOf()", () => {
  it("should list only approved nodes as eligible, because other nodes can have the same scheduling state", () => {
    const of = (scheduling: readonly string[], approval: readonly string[] = []) =>
      approvalOf({ ...NO_FILTER, scheduling, approval });
    expect(of(["ELIGIBLE"])).toEqual(["APPROVED"]);
    expect(of(["ELIGIBLE"], ["PENDING"])).toEqual(["PENDING"]);
    expect([of([]), of(["ELIGIBLE", "DRAINING"])]).toEqual([[], []]);
  });
});

describe("toSearch()", () => {
  it("should send as many words and characters as the server accepts, each once", () => {
    expect(toSearch(" H100  Epyc h100 ")).toBe("h100 epyc");
    expect(toSearch("a b c d e f g h i j")).toBe("a b c d e f g h");
    expect(toSearch("x".repeat(300))).toHaveLength(256);
  });
});

describe("toWatched()", () => {
  it("should not filter by a state that can change, because the page must remove nodes that leave its view", () => {
    const filter = { ...NO_FILTER, health: ["HEALTHY"], connection: ["CONNECTED"], scheduling: ["ELIGIBLE"] };
    expect(toWatched({ ...WHOLE_FLEET, filter })).toEqual({ labelSelector: "", memberships: [], types: [2] });
  });
});

describe("belongsTo()", () => {
  const [a, m, z] = ["a", "m", "z"].map((id) => testRow(id, { zone: id }));
  if (a === undefined || m === undefined || z === undefined) throw new Error("there are three");

  it("should include nodes up to the last loaded one, known nodes, and all nodes once all are loaded", () => {
    const belongs = belongsTo(WHOLE_FLEET);
    expect([a, m, z].map((row) => belongs(row, false, m))).toEqual([true, true, false]);
    expect(belongs(z, true, m)).toBe(true);
    expect(belongs(z, false, null)).toBe(true);
    const back = belongsTo({ ...WHOLE_FLEET, reversed: true });
    expect([a, m, z].map((row) => back(row, false, m))).toEqual([false, true, true]);
  });

  it("should include no node that the filter hides, known or not", () => {
    const belongs = belongsTo({ ...WHOLE_FLEET, filter: { ...NO_FILTER, labels: "zone=a" } });
    expect([a, m].map((row) => belongs(row, true, null))).toEqual([true, false]);
  });
});
