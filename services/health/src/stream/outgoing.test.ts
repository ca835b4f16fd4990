import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { Outgoing } from "./outgoing.ts";

/** The writing side of a call; the test controls when its peer reads. */
class Peer {
  unread = 0;
  readonly #listeners: (() => void)[] = [];

  write(): boolean {
    this.unread += 1;
    return this.unread < 16;
  }

  onceAllRead(listener: () => void): void {
    this.#listeners.push(listener);
  }

  end(): void {}

  read(): void {
    this.unread = 0;
    for (const listener of this.#listeners.splice(0)) listener();
  }
}

function setUp() {
  const peer = new Peer();
  const clock = new ManualClock();
  const limits = { unreadTimeoutMs: 10_000, maxUnreadFrames: 20 };
  let drained = 0;
  const listener = {
    drained: () => {
      drained += 1;
    },
  };
  const outgoing = new Outgoing(peer, clock, limits, listener);
  const send = (frames: number) => {
    for (let sent = 0; sent < frames; sent++) outgoing.send(Buffer.alloc(1));
  };
  return { peer, clock, outgoing, send, drained: () => drained };
}

describe("Outgoing", () => {
  it("should notice a peer that falls behind, and one that catches up", () => {
    const { peer, outgoing, send, drained } = setUp();
    send(15);
    expect(outgoing.isBehind).toBe(false);
    send(3);
    expect([outgoing.isBehind, outgoing.isTooSlow, drained()]).toEqual([true, false, 0]);
    peer.read();
    expect([outgoing.isBehind, outgoing.isTooSlow, drained()]).toEqual([false, false, 1]);
  });

  it("should give up on a peer that is behind for too long, counted from the first unread frame", () => {
    const { clock, outgoing, send } = setUp();
    send(16);
    clock.advance(6_000);
    send(1);
    clock.advance(4_000);
    expect(outgoing.isTooSlow).toBe(false);
    clock.advance(1);
    expect(outgoing.isTooSlow).toBe(true);
  });

  it("should give up on a peer that leaves too much unread", () => {
    const { outgoing, send } = setUp();
    send(20);
    expect(outgoing.isTooSlow).toBe(false);
    send(1);
    expect(outgoing.isTooSlow).toBe(true);
  });
});
