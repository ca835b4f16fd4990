import { describe, expect, it } from "@jest/globals";
import { LoopBudget } from "./loop-budget.ts";

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("LoopBudget", () => {
  it("should do at once what there is room for, and the rest turn by turn in its order", async () => {
    const budget = new LoopBudget({ mostPieces: 2, nowMs: () => 0 });
    const done: number[] = [];
    for (let piece = 0; piece < 7; piece += 1) budget.run("a", () => done.push(piece));
    const seen = [[...done]];
    while (budget.waiting > 0) {
      await nextTurn();
      seen.push([...done]);
    }
    expect(seen.map(({ length }) => length)).toEqual([2, 4, 6, 7]);
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it("should do a piece of each source in turn, however many one of them has brought", async () => {
    const budget = new LoopBudget({ mostPieces: 2 });
    const order: string[] = [];
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) budget.run("a", () => order.push(name));
    for (const name of ["b1", "b2"]) budget.run("b", () => order.push(name));
    budget.run("c", () => order.push("c1"));
    while (budget.waiting > 0) await nextTurn();
    expect(order).toEqual(["a1", "a2", "a3", "b1", "c1", "a4", "b2", "a5"]);
  });

  it("should not count a piece that had nothing to do, and keep the order of a long row", async () => {
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
    while (budget.waiting > 0) await nextTurn();
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => 900 + index));
  });

  it("should end a turn when its time is over", async () => {
    let nowMs = 0;
    const budget = new LoopBudget({ mostMs: 5, nowMs: () => nowMs });
    let done = 0;
    const work = () => {
      done += 1;
      nowMs += 3;
    };
    for (let piece = 0; piece < 5; piece += 1) budget.run("a", work);
    expect(done).toBe(2);
    await nextTurn();
    expect(done).toBe(4);
  });

  it("should let no call overtake those that wait, and have room again after a turn", async () => {
    const budget = new LoopBudget({ mostPieces: 1 });
    const order: string[] = [];
    budget.run("a", () => order.push("first"));
    budget.run("a", () => {
      order.push("second");
      budget.run("a", () => order.push("fourth"));
    });
    budget.run("a", () => order.push("third"));
    while (order.length < 4) await nextTurn();
    expect(order).toEqual(["first", "second", "third", "fourth"]);
    await nextTurn();
    budget.run("a", () => order.push("fifth"));
    expect(order.at(-1)).toBe("fifth");
  });

  it("should answer what the work answers, or throws", async () => {
    const budget = new LoopBudget();
    expect(await budget.do("a", () => 7)).toBe(7);
    await expect(
      budget.do("a", () => {
        throw new Error("no message");
      }),
    ).rejects.toThrow("no message");
  });
});
