import { describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { type Logger, silentLogger } from "@rollcall/process";
import { eventually } from "@rollcall/testkit";
import { ManualClock } from "@rollcall/testkit/time";
import { WorkLoop } from "./work-loop.ts";

const AWAY = new StoreUnavailableError("connect ECONNREFUSED");

function start(turn: () => Promise<void>, options: { everyMs?: number; log?: Logger } = {}) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const loop = new WorkLoop({
    name: "work",
    clock,
    log: silentLogger,
    random: () => 0.999,
    turn,
    ...options,
  });
  let successes = 0;
  const running = loop.run(ending.signal, () => {
    successes += 1;
  });
  const stop = async () => {
    ending.abort(new Error("the end"));
    await running.catch(() => {});
  };
  return { clock, loop, stop, successes: () => successes };
}

describe("WorkLoop", () => {
  it("should take a turn at once, and one for each call", async () => {
    let turns = 0;
    const { loop, stop, successes } = start(async () => {
      turns += 1;
    });
    await eventually(() => expect(turns).toBe(1));
    loop.call();
    await eventually(() => expect(turns).toBe(2));
    expect(successes()).toBe(2);
    await stop();
  });

  it("should take a turn by itself when the time has come", async () => {
    let turns = 0;
    const { clock, stop } = start(
      async () => {
        turns += 1;
      },
      { everyMs: 2_000 },
    );
    await eventually(() => expect(turns).toBe(1));
    await eventually(() => {
      clock.advance(2_000);
      expect(turns).toBe(3);
    });
    await stop();
  });

  it("should try again within two seconds for as long as it fails", async () => {
    let turns = 0;
    const { clock, stop, successes } = start(async () => {
      turns += 1;
      if (turns < 12) throw AWAY;
    });
    for (let seconds = 0; turns < 12 && seconds < 30; seconds += 1) {
      await new Promise(setImmediate);
      clock.advance(2_000);
    }
    await eventually(() => expect(successes()).toBe(1));
    await stop();
  });

  it("should call an outage one line, and any other failure a line each", async () => {
    const lines: string[] = [];
    const note = (level: string) => (_: unknown, text?: unknown) => {
      lines.push(`${level} ${text}`);
    };
    const log = {
      ...silentLogger,
      warn: note("warn"),
      error: note("error"),
      info: note("info"),
    } as Logger;
    const failures: unknown[] = [AWAY, AWAY, new Error("odd")];
    const { clock, stop, successes } = start(
      async () => {
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
      },
      { log },
    );
    await eventually(() => {
      clock.advance(2_000);
      expect(successes()).toBe(1);
    });
    expect(lines).toEqual(["warn work waits for the record", "error work failed", "info work goes on"]);
    await stop();
  });
});
