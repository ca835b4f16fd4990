import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { checkNodeId, isNodeId, resolveNodeRef } from "./node-id.ts";

describe("isNodeId()", () => {
  it.each(["a", "0", "node-1", "Node_1.example", `n${"x".repeat(62)}`])("should accept %s", (text) => {
    expect(isNodeId(text)).toBe(true);
  });

  it.each(["", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "\na", `n${"x".repeat(63)}`])("should refuse %j", (text) => {
    expect(isNodeId(text)).toBe(false);
  });
});

describe("checkNodeId()", () => {
  it("should take a node id", () => {
    expect(checkNodeId("node-1", "node_id")).toBeNull();
  });

  it("should name the field, the text and the rule", () => {
    expect(checkNodeId('a "b"', "hello.node_id")).toEqual({
      reason: "INVALID_NODE_ID",
      message: expect.stringMatching(/^"a \\"b\\"" is not a node id: .*1-63 characters/),
      metadata: { node: 'a "b"' },
      violations: [{ field: "hello.node_id", description: expect.stringContaining("1-63 characters") }],
    });
  });
});

describe("resolveNodeRef()", () => {
  it.each([
    ["n1", ["n1"], "n1"],
    ["n", ["n1"], "n1"],
    ["n1", ["n1", "n10", "n11", "n12"], "n1"],
  ])("should find %s among %j: %s", (ref, matches, id) => {
    expect(resolveNodeRef(ref, matches)).toEqual({ kind: "found", id });
  });

  it("should find none among none", () => {
    expect(resolveNodeRef("n1", [])).toEqual({ kind: "none" });
  });

  it("should not take an empty text for a prefix of every node", () => {
    expect(resolveNodeRef("", ["n1"])).toEqual({ kind: "none" });
  });

  it.each([
    [["n1", "n2"], "n1, n2"],
    [["n1", "n2", "n3"], "n1, n2, n3"],
    [["n1", "n2", "n3", "n4"], "n1, n2, n3 and more"],
  ])("should name up to three of %j", (matches, named) => {
    expect(resolveNodeRef("n", matches)).toEqual({
      kind: "ambiguous",
      reason: "AMBIGUOUS_NODE",
      message: `node prefix n is ambiguous, it matches ${named}; use a longer prefix`,
      metadata: { node: "n", matches: matches.slice(0, 3).join(", ") },
    });
  });

  it("should agree with a search of all nodes", () => {
    const id = fc.stringMatching(/^[ab]{1,4}$/);
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 12 }), id, (ids, ref) => {
        const all = ids.filter((candidate) => candidate.startsWith(ref)).sort();
        const resolution = resolveNodeRef(ref, all.slice(0, 4));
        if (ids.includes(ref)) expect(resolution).toEqual({ kind: "found", id: ref });
        else if (all.length === 1) expect(resolution).toEqual({ kind: "found", id: all[0] });
        else expect(resolution.kind).toBe(all.length === 0 ? "none" : "ambiguous");
      }),
    );
  });
});
