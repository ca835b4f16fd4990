import net from "node:net";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { ReadingTurns } from "./reading-turns.ts";

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

describe("ReadingTurns", () => {
  let turns: ReadingTurns<Read>;
  let all: readonly Read[];
  beforeEach(() => {
    jest.useFakeTimers();
    turns = new ReadingTurns();
    all = Array.from({ length: 10 }, () => connection("here"));
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const readNow = () => all.filter(({ isRead }) => isRead()).length;
  const nextTurn = () => jest.advanceTimersToNextTimer();

  it("should read one in the next turn, and twice as many in each that follows", () => {
    turns.hold("here", all);
    const seen = [readNow()];
    while (jest.getTimerCount() > 0) {
      nextTurn();
      seen.push(readNow());
    }
    expect(seen).toEqual([0, 1, 3, 7, 10]);
  });

  it("should begin with one again after each turn that brought much", () => {
    turns.hold("here", all);
    nextTurn();
    nextTurn();
    expect(readNow()).toBe(3);
    turns.hold("here", all);
    expect(readNow()).toBe(0);
    nextTurn();
    expect(readNow()).toBe(1);
  });

  it("should not stop reading other addresses, nor wait for what is gone or has no handle any more", () => {
    const other = connection("there");
    const closed = { ...connection("here"), socket: new net.Socket() };
    turns.hold("here", [...all, closed]);
    expect(other.isRead()).toBe(true);
    for (const one of all) turns.leave(one);
    jest.runAllTimers();
    expect([readNow(), jest.getTimerCount()]).toEqual([0, 0]);
  });
});
