import { describe, expect, it } from "@jest/globals";
import { inParts, type Outcome, RequestIds } from "./bulk.ts";

const done = (id: string): Outcome => ({ id, refusal: "", reason: "" });
const fates = (outcomes: readonly Outcome[]) => outcomes.map(({ id, fate = "told" }) => `${id} ${fate}`);
const IDS = ["a", "b", "c", "d", "e"];

describe("inParts()", () => {
  it("should report an outcome for each node, and count progress", async () => {
    const counts: number[] = [];
    const parts: (readonly string[])[] = [];
    const result = await inParts(IDS, {
      size: 2,
      send: async (nodes, hear) => {
        parts.push(nodes);
        hear(nodes.map(done));
      },
      onOutcomes: (count) => counts.push(count),
    });
    expect(result).toEqual({ outcomes: IDS.map(done), failure: null });
    expect(parts).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    expect(counts).toEqual([2, 4, 5]);
  });

  it("should send nothing more once it is stopped", async () => {
    const stopper = new AbortController();
    const { outcomes, failure } = await inParts(IDS, {
      size: 2,
      signal: stopper.signal,
      send: async (nodes, hear) => {
        stopper.abort();
        hear(nodes.map(done));
      },
    });
    expect(failure).toBeNull();
    expect(fates(outcomes)).toEqual(["a told", "b told", "c not-sent", "d not-sent", "e not-sent"]);
  });

  it("should keep the known outcomes when a call fails", async () => {
    const broken = new Error("broken");
    const { outcomes, failure } = await inParts(IDS, {
      size: 2,
      send: async (nodes, hear) => {
        hear(nodes.slice(0, nodes.includes("c") ? 1 : 2).map(done));
        if (nodes.includes("c")) throw broken;
      },
    });
    expect(failure).toBe(broken);
    expect(fates(outcomes)).toEqual(["a told", "b told", "c told", "d unknown", "e not-sent"]);
  });
});

describe("RequestIds", () => {
  it("should give the same intent the same id until it is answered", () => {
    const made = ["1", "2", "3"];
    const ids = new RequestIds(() => made.shift() ?? "");
    expect([ids.of("stop", 1), ids.of("stop", 2), ids.of("stop", 1)]).toEqual(["1", "2", "1"]);
    ids.answered();
    expect(ids.of("stop", 1)).toBe("3");
  });
});
