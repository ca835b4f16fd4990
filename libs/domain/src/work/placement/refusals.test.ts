import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { refusalsText } from "../explain.ts";
import { NodePool } from "./node-pool.ts";
import { placementRequest } from "./placement-request.ts";
import { couldFit, countRefusals, matchingNodes } from "./refusals.ts";

const NONE = { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] };

function poolOf(...nodes: Parameters<typeof workNode>[]) {
  const pool = new NodePool();
  for (const node of nodes) pool.put(workNode(...node));
  return pool;
}

describe("countRefusals()", () => {
  it("should count each node for each of its reasons, the most frequent first", () => {
    const pool = poolOf(["a"], ["b"], ["c"], ["d", { health: "UNHEALTHY", os: "darwin" }], ["e", { holds: ["DRAIN"] }]);
    const spec = jobSpec();
    const request = placementRequest({ ...spec, constraints: { ...spec.constraints, os: "linux" }, maxPerNode: 1 });
    pool.take("a", { ...NONE, millicores: 3_500 });
    pool.take("b", { ...NONE, millicores: 3_500, memoryBytes: 8 * 2 ** 30 });
    expect(countRefusals(pool, request, new Map([["c", 1]]))).toEqual({
      nodes: 5,
      counts: [
        { reason: "INSUFFICIENT_CORES", nodes: 2 },
        { reason: "INSUFFICIENT_MEMORY", nodes: 1 },
        { reason: "MAX_PER_NODE_REACHED", nodes: 1 },
        { reason: "NODE_DRAINING", nodes: 1 },
        { reason: "NODE_UNHEALTHY", nodes: 1 },
        { reason: "OS_DOES_NOT_MATCH", nodes: 1 },
      ],
    });
  });

  it("should count nodes that are not the named one", () => {
    const spec = jobSpec();
    const request = placementRequest({ ...spec, constraints: { ...spec.constraints, nodeId: "b" } });
    const pool = poolOf(["a"], ["b"], ["c"]);
    pool.take("b", { ...NONE, millicores: 4_000 });
    expect(countRefusals(pool, request, new Map()).counts).toEqual([
      { reason: "NOT_THE_NAMED_NODE", nodes: 2 },
      { reason: "INSUFFICIENT_CORES", nodes: 1 },
    ]);
  });

  it("should distinguish unknown GPUs from missing GPUs", () => {
    const spec = jobSpec();
    const resources = { ...spec.resources, gpus: 1 };
    const pool = poolOf(["none"], ["unknown", { unknown: ["gpus"] }]);
    const reasons = (constraints: Partial<typeof spec.constraints>) =>
      countRefusals(
        pool,
        placementRequest({ ...spec, resources, constraints: { ...spec.constraints, ...constraints } }),
        new Map(),
      ).counts;
    const unknown = { reason: "GPUS_UNKNOWN", nodes: 1 };
    expect(reasons({})).toEqual([unknown, { reason: "INSUFFICIENT_GPUS", nodes: 1 }]);
    expect(reasons({ gpuModel: "h100" })).toEqual([unknown, { reason: "GPU_MODEL_NOT_THERE", nodes: 1 }]);
    expect(reasons({ gpuIndices: [0] })).toEqual([unknown, { reason: "GPU_INDEX_NOT_THERE", nodes: 1 }]);
    const text = refusalsText({ nodes: 2, counts: reasons({}) });
    expect(text).toBe("1 of 2 nodes: GPUs unknown: the probe failed; 1 of 2 nodes: insufficient GPUs");
  });

  it("should name the unknown resources of a node, whatever is requested", () => {
    const pool = poolOf(["a", { unknown: ["cores", "memory", "disk", "gpus"] }]);
    const { counts } = countRefusals(pool, placementRequest(jobSpec()), new Map());
    expect(refusalsText({ nodes: 1, counts })).toBe(
      "1 of 1 node: cores unknown: the probe failed; 1 of 1 node: disk unknown: the probe failed; " +
        "1 of 1 node: memory unknown: the probe failed",
    );
  });

  it("should tell ports that are taken", () => {
    const spec = jobSpec();
    const request = placementRequest({ ...spec, resources: { ...spec.resources, ports: { http: 80 } } });
    const pool = poolOf(["a"]);
    pool.take("a", { ...NONE, ports: { http: 80 } });
    expect(countRefusals(pool, request, new Map()).counts).toEqual([{ reason: "PORT_OR_GPU_TAKEN", nodes: 1 }]);
  });
});

describe("couldFit()", () => {
  it("should check the capacity of a node, not its free resources", () => {
    const pool = poolOf(["a"]);
    pool.take("a", { ...NONE, millicores: 4_000 });
    expect(couldFit(pool, placementRequest(jobSpec()))).toBe(true);
    const { resources } = jobSpec();
    const large = jobSpec({ resources: { ...resources, millicores: 4_001 } });
    expect(couldFit(pool, placementRequest(large))).toBe(false);
  });
});

describe("matchingNodes()", () => {
  it("should name the nodes that match and take work, full or not", () => {
    const pool = poolOf(["b"], ["a"], ["c", { holds: ["OPERATOR"] }], ["d", { os: "darwin" }]);
    pool.take("a", { ...NONE, millicores: 4_000 });
    const spec = jobSpec();
    const request = placementRequest({ ...spec, constraints: { ...spec.constraints, os: "linux" } });
    expect(matchingNodes(pool, request)).toEqual(["a", "b"]);
  });
});
