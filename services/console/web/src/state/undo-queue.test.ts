import { describe, expect, it } from "@jest/globals";
import {
  decide,
  latest,
  MOST_WAITING,
  msUntilDue,
  sendAll,
  sendDue,
  sendOne,
  splitStill,
  takeBack,
  UNDO_MS,
  type UndoQueue,
} from "./undo-queue.ts";

const ids = (queue: UndoQueue<string>) => queue.map(({ id }) => id);

describe("the undo queue", () => {
  const first = decide([], { id: 1, what: "a" }, 0).queue;
  const both = decide(first, { id: 2, what: "b" }, 1000).queue;

  it("should send a decision when it is due, and not before", () => {
    expect(sendDue(both, UNDO_MS - 1)).toEqual({ queue: both, send: [] });
    const step = sendDue(both, UNDO_MS);
    expect([ids(step.queue), ids(step.send)]).toEqual([[2], [1]]);
    expect(msUntilDue(step.queue, UNDO_MS)).toBe(1000);
  });

  it("should not send what was undone", () => {
    expect(latest(both)?.id).toBe(2);
    expect(ids(sendDue(takeBack(both, 1), 1e9).send)).toEqual([2]);
  });

  it("should send everything when the page is left", () => {
    expect(ids(sendAll(both).send)).toEqual([1, 2]);
    expect(msUntilDue(sendAll(both).queue, 0)).toBeNull();
  });

  it("should send a single decision on request", () => {
    const step = sendOne(both, 2);
    expect([ids(step.queue), ids(step.send)]).toEqual([[1], [2]]);
    expect(sendOne(both, 9)).toEqual({ queue: both, send: [] });
  });

  it("should name the machines for which a decision is too late", () => {
    expect(splitStill(["a", "b", "c"], (id) => id !== "b")).toEqual({ still: ["a", "c"], late: ["b"] });
  });

  it("should send the oldest when the queue is full", () => {
    let step = { queue: [] as UndoQueue<string>, send: [] as UndoQueue<string> };
    for (let id = 0; id <= MOST_WAITING; id += 1) step = decide(step.queue, { id, what: "x" }, id);
    expect(step.queue).toHaveLength(MOST_WAITING);
    expect(ids(step.send)).toEqual([0]);
  });
});
