import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { moveForBalance } from "../replica/farewell.ts";
import { LiveNodes } from "../replica/live-nodes.ts";
import { BareStream } from "../testing/bare-replica.ts";
import { liveNode } from "../testing/live-node.ts";
import { SessionMover } from "./session-mover.ts";

/** @param canMove false for agents that use unary calls instead of a stream. */
function setUp(count: number, canMove = true) {
  const clock = new ManualClock();
  const nodes = new LiveNodes();
  const asked: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = `n${index}`;
    const askMove = () => asked.push(id) > 0 && canMove;
    nodes.add(liveNode(id, { stream: Object.assign(new BareStream(), { askMove }) }));
  }
  const mover = new SessionMover({ nodes, clock });
  return { clock, nodes, asked, ask: (most: number) => mover.ask(most, () => moveForBalance(null)), mover };
}

describe("SessionMover", () => {
  it("should not ask an agent again while a request is pending", () => {
    const { ask, asked, mover } = setUp(3);
    expect(ask(2)).toBe(2);
    expect(ask(2)).toBe(1);
    expect(ask(2)).toBe(0);
    expect(asked).toEqual(["n0", "n1", "n2"]);
    expect(mover.leaving()).toBe(3);
  });

  it("should ask an agent again that has not left for 30 s", async () => {
    const { ask, asked, mover, clock } = setUp(1);
    ask(1);
    await clock.pass(29_999);
    mover.leaving();
    expect(ask(1)).toBe(0);
    await clock.pass(1);
    mover.leaving();
    expect(ask(1)).toBe(1);
    expect(asked).toEqual(["n0", "n0"]);
  });

  it("should ask all agents again with askAll()", () => {
    const { ask, asked, mover } = setUp(3);
    ask(2);
    expect(mover.askAll(() => moveForBalance(null))).toBe(3);
    expect(asked.toSorted()).toEqual(["n0", "n0", "n1", "n1", "n2"]);
    expect(mover.leaving()).toBe(3);
  });

  it("should not wait for an agent that has left, or is back on another stream", () => {
    const { ask, mover, nodes } = setUp(3);
    ask(3);
    const [first, second] = nodes.all();
    if (first !== undefined) first.stream = null;
    if (second !== undefined) second.stream = Object.assign(new BareStream(), { askMove: () => true });
    expect(mover.leaving()).toBe(1);
    expect(ask(3)).toBe(1);
  });

  it("should continue where it stopped, also when nodes have left", async () => {
    const { ask, asked, clock, mover, nodes } = setUp(4);
    ask(2);
    await clock.pass(30_000);
    mover.leaving();
    const third = nodes.find("n2");
    if (third !== undefined) nodes.remove(third);
    expect(ask(3)).toBe(3);
    expect(asked).toEqual(["n0", "n1", "n3", "n0", "n1"]);
  });

  it("should not count nodes that cannot be asked, and try each once", () => {
    const { ask, asked, mover } = setUp(3, false);
    expect(ask(2)).toBe(0);
    expect(asked).toEqual(["n0", "n1", "n2"]);
    expect(mover.leaving()).toBe(0);
  });
});
