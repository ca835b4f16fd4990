import { describe, expect, it } from "@jest/globals";
import { Limiter } from "./limiter.ts";

const forever = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("Limiter", () => {
  it("should limit how many run at a time, and run the others in order", async () => {
    const limiter = new Limiter(1);
    const order: string[] = [];
    const noting = (name: string) => (leave: () => void) => {
      order.push(name);
      return leave;
    };
    const leave = await limiter.enter(forever);
    const second = limiter.enter(forever).then(noting("second"));
    const third = limiter.enter(forever).then(noting("third"));
    await settled();
    expect(order).toEqual([]);
    leave();
    leave();
    const leaveSecond = await second;
    await settled();
    expect(order).toEqual(["second"]);
    leaveSecond();
    await third;
    expect(order).toEqual(["second", "third"]);
  });

  it("should run the party with the fewest running next", async () => {
    const limiter = new Limiter(2);
    const order: string[] = [];
    const leaves = [await limiter.enter(forever, "a"), await limiter.enter(forever, "a")];
    for (const party of ["a", "a", "b", "b"]) {
      void limiter.enter(forever, party).then((leave) => {
        order.push(party);
        leaves.push(leave);
      });
    }
    for (let step = 0; step < 4; step += 1) {
      leaves.shift()?.();
      await settled();
    }
    expect(order).toEqual(["b", "a", "b", "a"]);
  });

  it("should make a party at its limit wait, and leave slots to others", async () => {
    const limiter = new Limiter(2, 1);
    const leave = await limiter.enter(forever, "a");
    const order: string[] = [];
    const waiting = limiter.enter(forever, "a").then(() => order.push("a"));
    expect([limiter.waitingOf("a"), limiter.waitingOf("b")]).toEqual([1, 0]);
    (await limiter.enter(forever, "b"))();
    await settled();
    expect(order).toEqual([]);
    leave();
    await waiting;
    expect(limiter.waitingOf("a")).toBe(0);
  });

  it("should forget a caller that stops waiting", async () => {
    const limiter = new Limiter(1);
    const leave = await limiter.enter(forever);
    const impatient = new AbortController();
    const waiting = limiter.enter(impatient.signal);
    impatient.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    leave();
    await limiter.enter(forever);
  });
});
