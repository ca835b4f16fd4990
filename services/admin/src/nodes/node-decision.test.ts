import { describe, expect, it } from "@jest/globals";
import { uncordon } from "@rollcall/domain";
import { createTestDatabase } from "@rollcall/testkit";
import { type DecisionOnNode, decisionOn, type FactName, readFacts } from "./node-decision.ts";

describe("decisionOn()", () => {
  it("should compile only if the decision asked for every fact that it reads", () => {
    const asking = decisionOn(["drain"], (node, by, { drain }) => uncordon(node, by, drain));
    // @ts-expect-error the drain was not asked for.
    const careless: DecisionOnNode = decisionOn(["bans"], (node, by, { drain }) => uncordon(node, by, drain));
    expect([asking, careless].map(({ reads }) => [...reads])).toEqual([["drain"], ["bans"]]);
  });
});

describe("readFacts()", () => {
  it.each<{ reads: readonly FactName[] }>([{ reads: [] }, { reads: ["drain"] }, { reads: ["bans", "storeTimeMs"] }])(
    "should read exactly $reads",
    async ({ reads }) => {
      const database = await createTestDatabase();
      try {
        const { result } = await database.store.change(async (tx) => {
          const factsOf = await readFacts(tx, new Set(reads), []);
          return { result: factsOf, events: [] };
        });
        const node = { id: "n", keyFingerprint: null, nextKeyFingerprint: null } as Parameters<typeof result>[0];
        expect(Object.keys(result(node)).sort()).toEqual([...reads].sort());
      } finally {
        await database.drop();
      }
    },
  );
});
