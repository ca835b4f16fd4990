import { EventEmitter } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { settle } from "@rollcall/testkit/time";
import { type Running, type RunOptions, runProcess } from "./lifecycle.ts";
import { STRAY_SIGNALS } from "./stray-signals.ts";

class FakeProcess extends EventEmitter {
  readonly exits: number[] = [];
  exit(code: number): void {
    this.exits.push(code);
  }
}

function fixture(options: Partial<RunOptions> & Pick<RunOptions, "start">) {
  const process = new FakeProcess();
  const { log, lines } = captureLog();
  const code = runProcess({ process, log, shutdownDeadlineMs: 50, ...options });
  return { process, lines, code, messages: () => lines.map((line) => line.msg) };
}

const closing = (close: () => Promise<void>): Running => ({ close });
const never = () => new Promise<never>(() => {});

describe("runProcess()", () => {
  it.each(["SIGTERM", "SIGINT", "SIGQUIT"])("should close in order on %s and answer 0", async (signal) => {
    let closed = false;
    const { process, code, messages } = fixture({
      start: async () =>
        closing(async () => {
          closed = true;
        }),
    });
    await Promise.resolve();
    process.emit(signal, signal);
    expect(await code).toBe(0);
    expect(closed).toBe(true);
    expect(messages()).toEqual(["stopping", "stopped"]);
    expect(process.eventNames()).toEqual([]);
  });

  it("should return 1 when the shutdown takes too long or fails", async () => {
    const slow = fixture({ start: async () => closing(never) });
    slow.process.emit("SIGTERM", "SIGTERM");
    expect(await slow.code).toBe(1);
    expect(slow.messages()).toEqual(["stopping", "shutdown took too long"]);
    const failing = fixture({ start: async () => closing(() => Promise.reject(new Error("no"))) });
    failing.process.emit("SIGTERM", "SIGTERM");
    expect(await failing.code).toBe(1);
    expect(failing.messages()).toEqual(["stopping", "shutdown failed"]);
  });

  it.each([0, 1, 999])("should take what comes %d ms after the first signal for the same one", async (afterMs) => {
    let nowMs = 5_000;
    let close: () => void = () => {};
    const { process, code, messages } = fixture({
      clock: { nowMs: () => nowMs },
      shutdownDeadlineMs: 60_000,
      start: async () =>
        closing(
          () =>
            new Promise((resolve) => {
              close = resolve;
            }),
        ),
    });
    await settle();
    process.emit("SIGTERM", "SIGTERM");
    nowMs += afterMs;
    process.emit("SIGTERM", "SIGTERM");
    process.emit("SIGINT", "SIGINT");
    await settle();
    expect(process.exits).toEqual([]);
    close();
    expect(await code).toBe(0);
    expect(messages()).toEqual(["stopping", "already shutting down", "already shutting down", "stopped"]);
  });

  it("should reload on each SIGHUP, even after a failure", async () => {
    let reloads = 0;
    const reload = async () => {
      reloads += 1;
      if (reloads === 2) throw new Error("no such file");
    };
    const { process, code, messages } = fixture({ start: async () => closing(async () => {}), reload });
    for (let times = 0; times < 3; times += 1) process.emit("SIGHUP", "SIGHUP");
    await settle();
    expect(reloads).toBe(3);
    process.emit("SIGTERM", "SIGTERM");
    process.emit("SIGHUP", "SIGHUP");
    expect(await code).toBe(0);
    expect(reloads).toBe(3);
    const reloading = ["reloading", "reloading", "reloading", "reloading failed"];
    expect(messages()).toEqual([...reloading, "stopping", "already shutting down", "stopped"]);
  });

  it("should shut down when its terminal is closed, however many SIGHUPs arrive", async () => {
    let nowMs = 5_000;
    const clock = { nowMs: () => nowMs };
    const { process, code, messages } = fixture({
      ...{ clock, hasTerminal: true, shutdownDeadlineMs: 60_000 },
      start: async () => closing(async () => {}),
    });
    process.emit("SIGHUP", "SIGHUP");
    nowMs += 1_000;
    process.emit("SIGHUP", "SIGHUP");
    expect(await code).toBe(0);
    expect(process.exits).toEqual([]);
    expect(messages()).toEqual(["stopping", "stopped"]);
  });

  it.each(STRAY_SIGNALS)("should log and ignore %s", async (signal) => {
    const { process, code, messages } = fixture({ start: async () => closing(async () => {}) });
    process.emit(signal, signal);
    process.emit("SIGTERM", "SIGTERM");
    expect(await code).toBe(0);
    expect(messages()).toEqual(["signal ignored", "stopping", "stopped"]);
  });

  it("should exit immediately on a second signal after a second", async () => {
    let nowMs = 5_000;
    const clock = { nowMs: () => nowMs };
    const { process } = fixture({ clock, start: async () => closing(never) });
    process.emit("SIGINT", "SIGINT");
    expect(process.exits).toEqual([]);
    nowMs += 1_000;
    process.emit("SIGTERM", "SIGTERM");
    expect(process.exits).toEqual([130]);
  });

  it("should return 1 when the start fails, and log why", async () => {
    const { code, lines } = fixture({ start: () => Promise.reject(new Error("port taken")) });
    expect(await code).toBe(1);
    expect(lines).toMatchObject([{ msg: "start failed", err: { message: "port taken" } }]);
  });

  it("should cancel a running start, and not wait when it ignores that", async () => {
    const heeding = fixture({
      start: (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    heeding.process.emit("SIGTERM", "SIGTERM");
    expect(await heeding.code).toBe(0);
    const deaf = fixture({ start: never });
    deaf.process.emit("SIGTERM", "SIGTERM");
    expect(await deaf.code).toBe(1);
  });

  it("should close what it started when the signal arrived during the start", async () => {
    let closed = false;
    let finish: (running: Running) => void = () => {};
    const { process, code } = fixture({
      start: () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    });
    process.emit("SIGTERM", "SIGTERM");
    finish(
      closing(async () => {
        closed = true;
      }),
    );
    expect(await code).toBe(0);
    expect(closed).toBe(true);
  });

  it("should close when what it started ends: 0 on success, 1 on failure", async () => {
    const well = fixture({
      start: async () => ({ close: async () => {}, done: Promise.resolve() }),
    });
    expect(await well.code).toBe(0);
    const badly = fixture({
      start: async () => ({ close: async () => {}, done: Promise.reject(new Error("lost it")) }),
    });
    expect(await badly.code).toBe(1);
    expect(badly.messages()).toEqual(["failed", "stopped"]);
  });

  it.each(["uncaughtException", "unhandledRejection"])("should log and exit on %s", (event) => {
    const { process, lines } = fixture({ start: never });
    process.emit(event, new Error("nobody caught this"));
    expect(process.exits).toEqual([1]);
    expect(lines).toMatchObject([{ level: "fatal", msg: "uncaught error" }]);
  });
});
