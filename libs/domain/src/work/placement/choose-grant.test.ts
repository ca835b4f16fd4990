import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import type { Grant } from "../execution.ts";
import { chooseGrant } from "./choose-grant.ts";
import { placementRequest } from "./placement-request.ts";
import { addGrant, type PoolNode, poolNode, subtractGrant } from "./pool-node.ts";

const [MIN, MAX] = [20_000, 20_004];
const SIZE = MAX - MIN + 1;
const PORTS = Array.from({ length: SIZE }, (_, index) => MIN + index);

/** A node with room for any number of executions, and with a few ports and GPUs. */
function smallNode(): PoolNode {
  const capacity = workNode("n").capacity;
  if (capacity === null) throw new Error("a work node has a capacity");
  const gpus = PORTS.map((_, index) => ({ index, uuid: `u${index}`, model: "h100" }));
  return poolNode(workNode("n", { capacity: { ...capacity, portMin: MIN, portMax: MAX }, gpus }));
}

const requestOf = (ports: Readonly<Record<string, number>>, gpus = 0) =>
  placementRequest(jobSpec({ resources: { millicores: 0, memoryBytes: 0, diskBytes: 0, gpus, ports } }));

/** Grant what a request needs; null if the node does not have it. */
function take(node: PoolNode, request: ReturnType<typeof requestOf>): Grant | null {
  const grant = chooseGrant(node, request);
  if (grant !== null) addGrant(node.taken, grant);
  return grant;
}

describe("chooseGrant(), one port more than there are", () => {
  const one = requestOf({ http: 0 });

  it("should be granted again and again, one after the other", () => {
    const node = smallNode();
    const ports = Array.from({ length: 3 * SIZE + 1 }, () => {
      const grant = take(node, one);
      if (grant !== null) subtractGrant(node.taken, grant);
      return grant?.ports.http;
    });
    expect(ports).toEqual(Array.from(ports, (_, index) => MIN + (index % SIZE)));
  });

  it("should be refused while all are in use, and granted when any of them is free", () => {
    for (const freed of PORTS) {
      const node = smallNode();
      const grants = PORTS.map(() => take(node, one));
      expect(grants.map((grant) => grant?.ports.http)).toEqual(PORTS);
      expect(take(node, one)).toBeNull();
      const last = grants.find((grant) => grant?.ports.http === freed);
      if (last === undefined || last === null) throw new Error(`port ${freed} was not granted`);
      subtractGrant(node.taken, last);
      expect(take(node, one)?.ports).toEqual({ http: freed });
      expect(take(node, one)).toBeNull();
    }
  });

  it.each(PORTS)("should find the only free port wherever the search continues: %i", (free) => {
    for (const nextPort of [0, MIN - 1, ...PORTS, MAX + 1]) {
      const node = Object.assign(smallNode(), { nextPort });
      for (const port of PORTS) if (port !== free) node.taken.ports.set(port, 1);
      expect(take(node, one)?.ports).toEqual({ http: free });
      expect(take(node, one)).toBeNull();
    }
  });

  it("should count ports of the range that are requested by number", () => {
    const node = smallNode();
    expect(take(node, requestOf({ fixed: MAX, a: 0, b: 0 }))?.ports).toEqual({ fixed: MAX, a: MIN, b: MIN + 1 });
    expect(take(node, requestOf({ fixed: MAX, a: 0 }))).toBeNull();
    expect(take(node, requestOf({ a: 0, b: 0, c: 0 }))).toBeNull();
    expect(take(node, requestOf({ fixed: MIN + 3, a: 0 }))?.ports).toEqual({ fixed: MIN + 3, a: MIN + 2 });
    expect(take(node, one)).toBeNull();
  });
});

describe("chooseGrant(), one GPU more than there are", () => {
  const one = requestOf({}, 1);

  it("should be refused while all are in use, and granted when any of them is free", () => {
    for (let freed = 0; freed < SIZE; freed += 1) {
      const node = smallNode();
      const grants = PORTS.map(() => take(node, one));
      expect(new Set(grants.map((grant) => grant?.gpuUuids[0])).size).toBe(SIZE);
      expect(take(node, one)).toBeNull();
      const last = grants[freed];
      if (last === undefined || last === null) throw new Error("no grant");
      subtractGrant(node.taken, last);
      expect(take(node, one)?.gpuUuids).toEqual(last.gpuUuids);
    }
  });
});
