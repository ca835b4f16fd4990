import { describe, expect, it } from "@jest/globals";
import { boundUnknown, FIRST_UNKNOWN_OF_NODE, MOST_UNKNOWN, MOST_UNKNOWN_OF_NODE } from "./bound-unknown.ts";

const reportsOf = (nodeId: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `${nodeId}-${index}`, nodeId }));

describe("boundUnknown()", () => {
  it("should record the first ones of a node, up to the number that it can be given", () => {
    const reports = reportsOf("a", MOST_UNKNOWN_OF_NODE + 2_600);
    const { recorded, cutNodeIds } = boundUnknown(reports, { ofNodes: new Map([["a", 0]]), total: 0 });
    expect(recorded).toEqual(reports.slice(0, MOST_UNKNOWN_OF_NODE));
    expect(cutNodeIds).toEqual(["a"]);
  });

  it("should count those already recorded, for each node separately", () => {
    const ofNodes = new Map([
      ["full", MOST_UNKNOWN_OF_NODE],
      ["almost", MOST_UNKNOWN_OF_NODE - 1],
      ["empty", 0],
    ]);
    const reports = [...reportsOf("full", 1), ...reportsOf("almost", 2), ...reportsOf("empty", 3)];
    const { recorded, cutNodeIds } = boundUnknown(reports, { ofNodes, total: 5_000 });
    expect(recorded.map(({ id }) => id)).toEqual(["almost-0", "empty-0", "empty-1", "empty-2"]);
    expect(cutNodeIds).toEqual(["full", "almost"]);
  });

  it("should record at most the limit for all nodes together, in addition to the first of each node", () => {
    const ofNodes = new Map([
      ["a", FIRST_UNKNOWN_OF_NODE],
      ["b", FIRST_UNKNOWN_OF_NODE],
    ]);
    const reports = [...reportsOf("a", 2), ...reportsOf("b", 2)];
    const { recorded, cutNodeIds } = boundUnknown(reports, { ofNodes, total: MOST_UNKNOWN - 3 });
    expect(recorded.map(({ id }) => id)).toEqual(["a-0", "a-1", "b-0"]);
    expect(cutNodeIds).toEqual(["b"]);
  });

  it("should record the first of each node, however many others have", () => {
    const ofNodes = new Map([
      ["new", 0],
      ["few", FIRST_UNKNOWN_OF_NODE - 1],
    ]);
    const reports = [...reportsOf("new", FIRST_UNKNOWN_OF_NODE + 5), ...reportsOf("few", 2)];
    const { recorded, cutNodeIds } = boundUnknown(reports, { ofNodes, total: MOST_UNKNOWN });
    expect(recorded).toEqual([...reportsOf("new", FIRST_UNKNOWN_OF_NODE), ...reportsOf("few", 1)]);
    expect(cutNodeIds).toEqual(["new", "few"]);
  });

  it("should record nothing of a node that is not approved", () => {
    const bounded = boundUnknown(reportsOf("pending", 1), { ofNodes: new Map(), total: 0 });
    expect(bounded).toEqual({ recorded: [], cutNodeIds: ["pending"] });
  });
});
