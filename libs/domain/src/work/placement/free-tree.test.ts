import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Amounts, changeFree, type FreeNode, freeNode, insertNode } from "./free-tree.ts";

const amounts = fc.record({
  millicores: fc.integer({ min: -1, max: 6 }),
  memoryBytes: fc.integer({ min: 0, max: 4 }),
  diskBytes: fc.integer({ min: 0, max: 4 }),
  gpus: fc.integer({ min: 0, max: 2 }),
});

function treeOf(all: readonly { readonly id: string; readonly free: Amounts }[]): FreeNode | null {
  return all.reduce<FreeNode | null>((root, { id, free }) => insertNode(root, freeNode(id, free)), null);
}

/** A tree as values: equal trees are of the same shape, and know the same. */
function shapeOf(node: FreeNode | null): unknown {
  if (node === null) return null;
  const { id, free, size, mostMemory, mostDisk, mostGpus } = node;
  return [id, free, size, mostMemory, mostDisk, mostGpus, shapeOf(node.left), shapeOf(node.right)];
}

describe("changeFree()", () => {
  it("should leave the tree that would have been made of what is free now", () => {
    const changes = fc.array(fc.tuple(fc.nat(), amounts), { maxLength: 20 });
    fc.assert(
      fc.property(fc.array(amounts, { minLength: 1, maxLength: 30 }), changes, (frees, list) => {
        const nodes = frees.map((free, number) => freeNode(`node-${number}`, free));
        let root = nodes.reduce<FreeNode | null>((tree, node) => insertNode(tree, node), null);
        for (const [at, free] of list) {
          const node = nodes[at % nodes.length];
          if (node !== undefined) root = changeFree(root, node, free);
        }
        expect(shapeOf(root)).toEqual(shapeOf(treeOf(nodes)));
      }),
    );
  });
});
