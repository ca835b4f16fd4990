import { describe, expect, it } from "@jest/globals";
import { AckWindow } from "./ack-window.ts";

interface Answerable {
  readonly promise: Promise<void>;
  acknowledge(): void;
  refuse(reason: string): void;
}

function answerable(): Answerable {
  let acknowledge = () => {};
  let refuse = (_: string) => {};
  const promise = new Promise<void>((resolve, reject) => {
    acknowledge = resolve;
    refuse = (reason) => reject(new Error(reason));
  });
  return { promise, acknowledge, refuse };
}

function send(window: AckWindow, count: number): readonly Answerable[] {
  const messages = Array.from({ length: count }, answerable);
  for (const { promise } of messages) window.add(promise);
  return messages;
}

describe("AckWindow", () => {
  it("should be full at its limit until a message is answered", async () => {
    const window = new AckWindow(2);
    const [first] = send(window, 1);
    expect(window.isFull).toBe(false);
    send(window, 1);
    expect(window.isFull).toBe(true);
    first?.acknowledge();
    await window.answered();
    expect(window.isFull).toBe(false);
  });

  it("should count acknowledgements without a gap, in any order of answers", async () => {
    const window = new AckWindow(8);
    const messages = send(window, 4);
    messages[3]?.acknowledge();
    messages[1]?.acknowledge();
    messages[2]?.refuse("full");
    messages[0]?.acknowledge();
    const { acknowledged, failure } = await window.settled();
    expect([acknowledged, failure?.message]).toEqual([2, "full"]);
    expect(window.hasFailed).toBe(true);
  });

  it("should report the failure of the first message, not the first failure", async () => {
    const window = new AckWindow(8);
    const messages = send(window, 2);
    messages[1]?.refuse("out of step");
    messages[0]?.refuse("timeout");
    expect((await window.settled()).failure?.message).toBe("timeout");
  });

  it("should settle immediately when nothing was sent", async () => {
    expect(await new AckWindow(1).settled()).toEqual({ acknowledged: 0, failure: null });
  });
});
