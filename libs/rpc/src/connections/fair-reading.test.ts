import net from "node:net";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { FairReading } from "./fair-reading.ts";

interface Read {
  readonly address: string;
  readonly socket: net.Socket;
  readonly isRead: () => boolean;
}

function connection(address: string): Read {
  let isRead = true;
  const _handle = {
    reading: true,
    readStop: () => {
      isRead = false;
    },
    readStart: () => {
      isRead = true;
    },
  };
  return { address, socket: Object.assign(new net.Socket(), { _handle }), isRead: () => isRead };
}

describe("FairReading", () => {
  let turns: FairReading<Read>;
  let all: readonly Read[];
  beforeEach(() => {
    jest.useFakeTimers();
    turns = new FairReading();
    all = Array.from({ length: 10 }, () => connection("here"));
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const readNow = () => all.filter(({ isRead }) => isRead()).length;
  const nextLoopTick = () => jest.advanceTimersToNextTimer();

  it("should read one in the next iteration, and twice as many in each that follows", () => {
    turns.hold("here", all);
    const seen = [readNow()];
    while (jest.getTimerCount() > 0) {
      nextLoopTick();
      seen.push(readNow());
    }
    expect(seen).toEqual([0, 1, 3, 7, 10]);
  });

  it("should start with one again after each iteration that brought much", () => {
    turns.hold("here", all);
    nextLoopTick();
    nextLoopTick();
    expect(readNow()).toBe(3);
    turns.hold("here", all);
    expect(readNow()).toBe(0);
    nextLoopTick();
    expect(readNow()).toBe(1);
  });

  it("should keep reading other addresses, and not wait for closed connections or handles", () => {
    const other = connection("there");
    const closed = { ...connection("here"), socket: new net.Socket() };
    turns.hold("here", [...all, closed]);
    expect(other.isRead()).toBe(true);
    for (const one of all) turns.leave(one);
    jest.runAllTimers();
    expect([readNow(), jest.getTimerCount()]).toEqual([0, 0]);
  });
});
