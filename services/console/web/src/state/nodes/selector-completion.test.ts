import { describe, expect, it } from "@jest/globals";
import { completeSelector, indexLabels, labelsOfCounts } from "./selector-completion.ts";
import { testRow } from "./testing/test-rows.ts";

const INDEX = indexLabels([
  testRow("1", { zone: "a", gpu: "h100" }),
  testRow("2", { zone: "a", gpu: "a100" }),
  testRow("3", { zone: "b", rack: "12" }),
]);

describe("completeSelector()", () => {
  it.each([
    ["", ["zone", "gpu", "rack"]],
    ["z", ["zone"]],
    ["zone", []],
    ["!ra", ["!rack"]],
    ["zone=", ["zone=a", "zone=b"]],
    ["zone!=b", []],
    ["zone=a,gp", ["zone=a,gpu"]],
    ["zone=a, gpu == h", ["zone=a, gpu == h100"]],
    ["gpu in (", ["gpu in (a100", "gpu in (h100"]],
    ["gpu notin (h100,", ["gpu notin (h100,a100"]],
    ["unheard=", []],
    ["zone>1", []],
  ])("should continue from %j", (text, expected) => {
    const found = completeSelector(text, INDEX).map((one) => one.text);
    expect([...found].sort()).toEqual([...expected].sort());
  });

  it("should count the nodes, highest count first", () => {
    expect(completeSelector("zone=", INDEX)).toMatchObject([{ nodes: 2 }, { nodes: 1 }]);
  });
});

describe("labelsOfCounts()", () => {
  it("should equal the labels of all nodes", () => {
    const rows = [testRow("a", { zone: "a" }), testRow("b", { zone: "b" }), testRow("c", { zone: "b", gpu: "h100" })];
    const counts = [
      { key: "gpu", value: "h100", count: 1 },
      { key: "zone", value: "b", count: 2 },
      { key: "zone", value: "a", count: 1 },
    ];
    expect(labelsOfCounts(counts)).toEqual(indexLabels(rows));
  });
});

describe("indexLabels()", () => {
  it("should keep a bounded number of keys and values", () => {
    const rows = Array.from({ length: 600 }, (_, at) => testRow(`n${at}`, { id: `v${at}`, [`key${at}`]: "x" }));
    const index = indexLabels(rows);
    expect(index.size).toBe(500);
    expect(index.get("id")?.size).toBe(500);
  });
});
