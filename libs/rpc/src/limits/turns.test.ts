import { describe, expect, it } from "@jest/globals";
import { settle } from "@rollcall/testkit/time";
import { Turns } from "./turns.ts";

/** Let named calls take turns, and record their order. */
function rig(most: number) {
  const turns = new Turns();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const begin = (party: string, name: string, signal = new AbortController().signal, mostMs = 600_000) => {
    const taken = turns.take(party, most, { signal, mostMs, late: () => new Error("late") }).then((end) => {
      begun.push(name);
      ends.set(name, end);
    });
    taken.catch(() => {});
    return taken;
  };
  return { turns, begun, begin, end: (name: string) => ends.get(name)?.() };
}

describe("Turns", () => {
  it("should limit how many calls of each party work at a time, and run the others in order", async () => {
    const { turns, begun, begin, end } = rig(2);
    for (const name of ["a1", "a2", "a3", "a4"]) void begin("a", name);
    void begin("b", "b1");
    await settle();
    expect(begun).toEqual(["a1", "a2", "b1"]);
    end("a2");
    await settle();
    expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
    for (const name of ["a1", "a3", "b1"]) end(name);
    await settle();
    expect(begun.at(-1)).toBe("a4");
    end("a4");
    expect(turns.size).toBe(0);
  });

  it("should refuse a caller that has waited for the maximum time, and give its turn to the next", async () => {
    const { turns, begun, begin, end } = rig(1);
    void begin("a", "first");
    const second = begin("a", "second", new AbortController().signal, 1);
    void begin("a", "third");
    await expect(second).rejects.toThrow("late");
    end("first");
    await settle();
    expect(begun).toEqual(["first", "third"]);
    end("third");
    expect(turns.size).toBe(0);
  });

  it("should forget a caller that stops waiting, and give its turn to the next", async () => {
    const { turns, begun, begin, end } = rig(1);
    const leaving = new AbortController();
    void begin("a", "first");
    const second = begin("a", "second", leaving.signal);
    void begin("a", "third");
    leaving.abort(new Error("left"));
    await expect(second).rejects.toThrow("left");
    await expect(begin("a", "late", leaving.signal)).rejects.toThrow("left");
    end("first");
    await settle();
    expect(begun).toEqual(["first", "third"]);
    end("third");
    expect(turns.size).toBe(0);
  });
});
