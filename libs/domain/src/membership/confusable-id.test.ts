import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { caselessId, checkNewId, isConfusable, isIdBanned, isNodeId } from "./node-id.ts";

const nodeId = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/);

describe("isConfusable()", () => {
  it.each([
    ["a-1", "A-1", true],
    ["A-1", "a-1", true],
    ["Rack.B", "rACK.b", true],
    ["a-1", "a-1", false],
    ["a-1", "a_1", false],
    ["a-1", "a-10", false],
    ["O", "0", false],
  ])("should say of %s and %s: %s", (id, other, expected) => {
    expect(isConfusable(id, other)).toBe(expected);
  });

  it("should be true for each other or for neither, and never for an id and itself", () => {
    fc.assert(
      fc.property(nodeId, nodeId, (id, other) => {
        expect(isConfusable(id, other)).toBe(isConfusable(other, id));
        expect(isConfusable(id, id)).toBe(false);
        expect(isNodeId(caselessId(id))).toBe(true);
      }),
    );
  });
});

describe("checkNewId()", () => {
  it.each([
    ["a-1", [], null],
    ["a-1", ["a-2", "b-1"], null],
    ["a-1", ["A-1"], "A-1"],
    ["a-1", ["x", "A-1"], "A-1"],
    // Both nodes exist already, so a-1 keeps its id.
    ["a-1", ["A-1", "a-1"], null],
  ])("should decide about %s given %j: %s", (id, existing, other) => {
    const refusal = checkNewId(id, existing);
    if (other === null) expect(refusal).toBeNull();
    else {
      expect(refusal).toMatchObject({
        reason: "NODE_ID_CONFUSABLE",
        metadata: { node: id, existing: other },
      });
      expect(refusal?.message).toContain(other);
    }
  });

  it("should never let ids that it accepts one after the other be confusable", () => {
    fc.assert(
      fc.property(fc.array(nodeId, { maxLength: 12 }), (ids) => {
        const accepted: string[] = [];
        for (const id of ids) {
          if (!accepted.includes(id) && checkNewId(id, accepted) === null) accepted.push(id);
        }
        expect(new Set(accepted.map(caselessId)).size).toBe(accepted.length);
      }),
    );
  });
});

describe("isIdBanned()", () => {
  it.each([
    ["a-1", "a-1", true, true],
    ["a-1", "a-1", false, true],
    ["A-1", "a-1", false, true],
    // The ban was placed on node a-1. Node A-1 is known as a different node.
    ["A-1", "a-1", true, false],
    ["b-1", "a-1", false, false],
  ])("should say of %s, %s banned, known %s: %s", (id, banned, isKnown, expected) => {
    expect(isIdBanned(id, banned, isKnown)).toBe(expected);
  });
});
