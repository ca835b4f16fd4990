import { describe, expect, it } from "@jest/globals";
import { parseSentinel } from "./sentinel.ts";

const SENTINEL = {
  nodeId: "node-1",
  keyFingerprint: "SHA256:abc",
  clusterId: "cluster-1",
  healthEndpoints: ["10.0.0.1:7701"],
};

describe("parseSentinel()", () => {
  it("should read what was written, and ignore what a newer agent added", () => {
    expect(parseSentinel(JSON.stringify({ ...SENTINEL, since: "later" }))).toEqual(SENTINEL);
  });

  it.each([
    ["nothing", ""],
    ["half a file", JSON.stringify(SENTINEL).slice(0, 30)],
    ["null", "null"],
    ["a list", "[]"],
    ["no node", JSON.stringify({ ...SENTINEL, nodeId: undefined })],
    ["a number for a cluster", JSON.stringify({ ...SENTINEL, clusterId: 7 })],
    ["no endpoints", JSON.stringify({ ...SENTINEL, healthEndpoints: [] })],
    ["strange endpoints", JSON.stringify({ ...SENTINEL, healthEndpoints: ["a:1", 2] })],
  ])("should not accept %s as a sentinel", (_, text) => {
    expect(parseSentinel(text)).toBeUndefined();
  });
});
