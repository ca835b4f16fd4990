import { describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { createMetrics, renderMetrics } from "./metrics.ts";
import { Loop, superviseTasks, type Task } from "./tasks.ts";

function fixture(tasks: readonly Task[], clock = new ManualClock()) {
  const { log, lines } = captureLog();
  const stop = new AbortController();
  const metrics = createMetrics({ defaults: false });
  const supervision = superviseTasks(tasks, {
    log,
    clock,
    metrics,
    signal: stop.signal,
    random: () => 0.999,
    retry: { baseMs: 100, maxMs: 1_000 },
  });
  return { clock, lines, stop, metrics, supervision };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

describe("superviseTasks()", () => {
  it("should restart a failing task after delays that double up to the limit", async () => {
    let starts = 0;
    const task: Task = {
      name: "flaky",
      run: async () => {
        starts += 1;
        throw new Error("no");
      },
    };
    const { clock, lines, stop, supervision } = fixture([task]);
    await settle();
    const pauses: unknown[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      expect(starts).toBe(turn + 1);
      const pauseMs = Number(lines.at(-1)?.pause_ms);
      pauses.push(pauseMs);
      await clock.pass(pauseMs - 1);
      expect(starts).toBe(turn + 1);
      await clock.pass(1);
    }
    expect(pauses).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(lines[0]).toMatchObject({ msg: "task failed", task: "flaky", level: "warn" });
    stop.abort();
    await supervision.done;
  });

  it("should reset the series of failures after a success", async () => {
    let fail = true;
    const task: Task = {
      name: "loop",
      run: async (_, succeeded) => {
        if (!fail) succeeded();
        throw new Error("no");
      },
    };
    const { clock, supervision, stop } = fixture([task]);
    await settle();
    await clock.pass(100);
    expect(supervision.statuses()).toMatchObject([{ failures: 2, state: "waiting" }]);
    fail = false;
    await clock.pass(200);
    expect(supervision.statuses()).toMatchObject([{ failures: 1, sinceSuccessMs: 0 }]);
    stop.abort();
    await supervision.done;
  });

  it("should end all tasks when the signal aborts, quietly", async () => {
    const tasks = ["a", "b"].map((name): Task => ({ name, run: untilAborted }));
    const { stop, lines, supervision } = fixture(tasks);
    stop.abort(new Error("ending"));
    await supervision.done;
    expect(lines).toEqual([]);
    expect(supervision.statuses().map((it) => it.state)).toEqual(["done", "done"]);
  });

  it("should not restart a task that returned", async () => {
    const { supervision, lines } = fixture([{ name: "once", run: async () => {} }]);
    await supervision.done;
    expect(lines).toMatchObject([{ msg: "task done", task: "once" }]);
  });

  it("should use a task's own delays", async () => {
    let turns = 0;
    const turn = async () => {
      turns += 1;
      throw new Error("no");
    };
    const clock = new ManualClock();
    const loop = new Loop({ name: "impatient", clock, retry: { baseMs: 10, maxMs: 20 }, turn });
    const { lines, stop, supervision } = fixture([loop], clock);
    await settle();
    for (let pause = 0; pause < 4; pause += 1) await clock.pass(20);
    expect(turns).toBe(5);
    expect(lines.map((line) => line.pause_ms)).toEqual([10, 20, 20, 20, 20]);
    stop.abort();
    await supervision.done;
  });

  it("should log a store outage once, other failures each time, and the recovery", async () => {
    const away = new StoreUnavailableError("connect ECONNREFUSED");
    const failures: unknown[] = [away, away, new Error("odd"), away, away];
    const clock = new ManualClock();
    const turn = async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    };
    const { lines, stop, supervision } = fixture([new Loop({ name: "work", clock, turn })], clock);
    await settle();
    for (let pause = 0; pause < 5; pause += 1) await clock.pass(1_000);
    expect(lines.map(({ level, msg, failures }) => `${level} ${msg} ${failures}`)).toEqual([
      "warn task waits for the store 1",
      "warn task failed 3",
      "info task continues 5",
    ]);
    stop.abort();
    await supervision.done;
  });

  it("should show the age of the last success and count failures", async () => {
    let turns = 0;
    const clock = new ManualClock();
    const task = new Loop({
      name: "sweep",
      everyMs: 1_000,
      clock,
      turn: async () => {
        turns += 1;
        if (turns > 1) throw new Error("no");
      },
    });
    const { stop, metrics, supervision } = fixture([task], clock);
    await settle();
    await clock.pass(1_000);
    expect(turns).toBe(2);
    const text = await renderMetrics(metrics);
    expect(text).toContain('rollcall_task_since_success_seconds{task="sweep"} 1');
    expect(text).toContain('rollcall_task_failures_total{task="sweep"} 1');
    stop.abort();
    await supervision.done;
  });
});

describe("Loop", () => {
  function start(options: { readonly everyMs?: number; readonly soonMs?: number }) {
    let turns = 0;
    const clock = new ManualClock();
    const turn = async () => {
      turns += 1;
    };
    const loop = new Loop({ name: "work", clock, turn, ...options });
    return { loop, turns: () => turns, ...fixture([loop], clock) };
  }

  it("should run immediately, and once more for the calls since", async () => {
    const { loop, turns, stop, supervision } = start({});
    await settle();
    expect(turns()).toBe(1);
    loop.call();
    loop.call();
    await settle();
    expect(turns()).toBe(2);
    stop.abort();
    await supervision.done;
  });

  it("should run once for urgent and non-urgent calls", async () => {
    const { loop, clock, turns, stop, supervision } = start({ soonMs: 100 });
    await settle();
    loop.callSoon();
    await clock.pass(99);
    expect(turns()).toBe(1);
    loop.call();
    await settle();
    expect(turns()).toBe(2);
    loop.callSoon();
    await clock.pass(100);
    expect(turns()).toBe(3);
    stop.abort();
    await supervision.done;
  });

  it("should run when its time has come", async () => {
    const { clock, turns, stop, supervision } = start({ everyMs: 2_000 });
    await settle();
    await clock.pass(1_999);
    expect(turns()).toBe(1);
    await clock.pass(1);
    expect(turns()).toBe(2);
    stop.abort();
    await supervision.done;
  });
});
