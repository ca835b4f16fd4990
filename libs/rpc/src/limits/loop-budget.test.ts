import { describe, expect, it } from "@jest/globals";
import { LoopBudget } from "./loop-budget.ts";

function nextLoopTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("LoopBudget", () => {
  it("should do work immediately while there is budget, and the rest in order in later iterations", async () => {
    const budget = new LoopBudget({ mostPieces: 2, nowMs: () => 0 });
    const done: number[] = [];
    for (let piece = 0; piece < 7; piece += 1) budget.run("a", () => done.push(piece));
    const seen = [[...done]];
    while (budget.waiting > 0) {
      await nextLoopTick();
      seen.push([...done]);
    }
    expect(seen.map(({ length }) => length)).toEqual([2, 4, 6, 7]);
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it("should let sources take turns, however much work one of them has", async () => {
    const budget = new LoopBudget({ mostPieces: 2 });
    const order: string[] = [];
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) budget.run("a", () => order.push(name));
    for (const name of ["b1", "b2"]) budget.run("b", () => order.push(name));
    budget.run("c", () => order.push("c1"));
    while (budget.waiting > 0) await nextLoopTick();
    expect(order).toEqual(["a1", "a2", "a3", "b1", "c1", "a4", "b2", "a5"]);
  });

  it("should not count a piece that had nothing to do, and keep the order of a long queue", async () => {
    const budget = new LoopBudget({ mostPieces: 2, nowMs: () => 0 });
    const order: number[] = [];
    for (let piece = 0; piece < 1_000; piece += 1) {
      budget.run("a", () => {
        if (piece < 900) return false;
        order.push(piece);
        return true;
      });
    }
    expect(order).toEqual([900, 901]);
    while (budget.waiting > 0) await nextLoopTick();
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => 900 + index));
  });

  it("should end an iteration when its time is used up", async () => {
    let nowMs = 0;
    const budget = new LoopBudget({ mostMs: 5, nowMs: () => nowMs });
    let done = 0;
    const work = () => {
      done += 1;
      nowMs += 3;
    };
    for (let piece = 0; piece < 5; piece += 1) budget.run("a", work);
    expect(done).toBe(2);
    await nextLoopTick();
    expect(done).toBe(4);
  });

  it("should let no call overtake waiting ones, and have budget again after an iteration", async () => {
    const budget = new LoopBudget({ mostPieces: 1 });
    const order: string[] = [];
    budget.run("a", () => order.push("first"));
    budget.run("a", () => {
      order.push("second");
      budget.run("a", () => order.push("fourth"));
    });
    budget.run("a", () => order.push("third"));
    while (order.length < 4) await nextLoopTick();
    expect(order).toEqual(["first", "second", "third", "fourth"]);
    await nextLoopTick();
    budget.run("a", () => order.push("fifth"));
    expect(order.at(-1)).toBe("fifth");
  });

  it("should return the result of the work, or its error", async () => {
    const budget = new LoopBudget();
    expect(await budget.do("a", () => 7)).toBe(7);
    await expect(
      budget.do("a", () => {
        throw new Error("no message");
      }),
    ).rejects.toThrow("no message");
  });
});
