import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Amounts, fits } from "./amount-rows.ts";
import { type FreeKey, type FreeNode, FreeOrder, isBefore, keyOf } from "./free-order.ts";

const amounts = fc.record({
  millicores: fc.integer({ min: -1, max: 6 }),
  memoryBytes: fc.integer({ min: 0, max: 4 }),
  diskBytes: fc.integer({ min: 0, max: 4 }),
  gpus: fc.integer({ min: 0, max: 2 }),
});

/**
 * Changes: the number of a node and its new amounts. Null removes the node, or inserts a removed node again.
 */
const changes = fc.array(fc.tuple(fc.nat(), fc.option(amounts)), { maxLength: 300 });
/** Up to 300 nodes, so that leaves are split and merged. */
const frees = fc.array(amounts, { minLength: 1, maxLength: 300 });

/** Build an order with these changes. Returns the order, and its nodes sorted by comparison. */
function orderOf(all: readonly Amounts[], list: readonly (readonly [number, Amounts | null])[]) {
  const nodes = all.map((free, number): FreeNode => ({ id: `node-${number}`, free }));
  const order = new FreeOrder<FreeNode>();
  const inOrder = new Set(nodes);
  for (const node of nodes) order.insert(node);
  for (const [at, free] of list) {
    const node = nodes[at % nodes.length] as FreeNode;
    if (free !== null && inOrder.has(node)) order.change(node, free);
    else if (inOrder.delete(node)) order.remove(node);
    else {
      node.free = free ?? node.free;
      inOrder.add(node);
      order.insert(node);
    }
  }
  const sorted = [...inOrder].sort((one, other) => (isBefore(keyOf(one), keyOf(other)) ? -1 : 1));
  return { order, sorted };
}

function idsOf(nodes: Iterable<FreeNode>): readonly string[] {
  return [...nodes].map(({ id }) => id);
}

describe("FreeOrder", () => {
  it("should keep its nodes in order after any changes", () => {
    fc.assert(
      fc.property(frees, changes, (all, list) => {
        const { order, sorted } = orderOf(all, list);
        expect(idsOf(order.nodes())).toEqual(idsOf(sorted));
        expect(order.size).toBe(sorted.length);
      }),
    );
  });

  it("should find the first and the last that fit and are accepted, on one side of a place", () => {
    const beside = fc.option(fc.tuple(amounts, fc.nat({ max: 300 })));
    fc.assert(
      fc.property(frees, changes, amounts, beside, fc.nat({ max: 9 }), (all, list, need, place, refused) => {
        const { order, sorted } = orderOf(all, list);
        const key: FreeKey | null = place === null ? null : keyOf({ id: `node-${place[1]}`, free: place[0] });
        const accept = ({ id }: FreeNode) => !id.endsWith(String(refused));
        const fit = sorted.filter((node) => fits(node.free, need) && accept(node));
        const after = fit.filter((node) => key === null || !isBefore(keyOf(node), key));
        const before = fit.filter((node) => key === null || isBefore(keyOf(node), key));
        expect(order.firstFit(need, key, accept)).toBe(after[0] ?? null);
        expect(order.lastFit(need, key, accept)).toBe(before.at(-1) ?? null);
      }),
    );
  });

  it("should find its nodes, and the one before each", () => {
    fc.assert(
      fc.property(frees, changes, fc.nat(), (all, list, number) => {
        const { order, sorted } = orderOf(all, list);
        const at = sorted.length === 0 ? -1 : number % sorted.length;
        const own = sorted[at];
        if (own === undefined) return;
        const none = { millicores: -1, memoryBytes: 0, diskBytes: 0, gpus: 0 };
        expect(order.firstFit(none, keyOf(own), () => true)).toBe(own);
        expect(order.lastFit(none, keyOf(own), () => true)).toBe(sorted[at - 1] ?? null);
      }),
    );
  });

  it("should count the nodes that lack each of the amounts", () => {
    fc.assert(
      fc.property(frees, changes, amounts, (all, list, need) => {
        const { order, sorted } = orderOf(all, list);
        const short = (amount: keyof Amounts) => sorted.filter(({ free }) => free[amount] < need[amount]).length;
        expect(order.countShort(need)).toEqual({
          millicores: short("millicores"),
          memoryBytes: short("memoryBytes"),
          diskBytes: short("diskBytes"),
          gpus: short("gpus"),
        });
      }),
    );
  });

  it("should refuse to remove a node that it does not have", () => {
    const order = new FreeOrder<FreeNode>();
    const free = { millicores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
    order.insert({ id: "one", free });
    expect(() => order.remove({ id: "other", free })).toThrow("node other is not where it should be");
  });
});
