import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { ExecutionEvent, ExecutionState, KeepingRules, MemoryKill } from "../state/execution-state.ts";
import { beginExecution, dueAtMs, neverStarted, stepExecution } from "./execution-machine.ts";

const RULES: KeepingRules = {
  stopSignal: "SIGINT",
  graceMs: 1_000,
  maxRunMs: null,
  stopOnAgentAfterMs: null,
  check: null,
};
const CHECKED: KeepingRules = { ...RULES, check: { intervalMs: 10_000, failures: 2, readyWithinMs: 60_000 } };
const exited = (code: number | null, memoryKill: MemoryKill = { kind: "no" }): ExecutionEvent => ({
  kind: "exited",
  exit: { code, signal: code === null ? "SIGKILL" : null, memoryKill },
});
const launched: ExecutionEvent = { kind: "launched", about: "" };
const stop: ExecutionEvent = { kind: "stop" };
const due: ExecutionEvent = { kind: "due" };
const checked = (passed: boolean): ExecutionEvent => ({ kind: "checked", passed, message: passed ? "" : "no answer" });

/** An execution, and the effects that it requested. */
class Run {
  state: ExecutionState;
  nowMs = 0;
  seenAtMs = 0;

  constructor(rules: KeepingRules) {
    this.state = beginExecution(rules);
  }

  step(event: ExecutionEvent, afterMs = 0): readonly string[] {
    this.nowMs += afterMs;
    const input = { nowMs: this.nowMs, wallMs: 1_000_000 + this.nowMs, seenAtMs: this.seenAtMs };
    const { state, effects } = stepExecution(this.state, event, input);
    this.state = state;
    return effects.map((effect) => (effect.kind === "signal" ? effect.signal : effect.kind));
  }

  /** Send one `due` event. */
  due(): readonly string[] {
    const atMs = dueAtMs(this.state, this.seenAtMs);
    if (atMs === null) return ["never"];
    this.nowMs = Math.max(this.nowMs, atMs);
    return this.step(due);
  }
}

describe("stepExecution()", () => {
  it("should run, and end with the exit code of its process", () => {
    const run = new Run(RULES);
    expect(run.step(launched)).toEqual(["save"]);
    expect(run.state.phase).toMatchObject({ kind: "running", isReady: true });
    expect(run.due()).toEqual(["never"]);
    expect(run.step(exited(3), 50)).toEqual(["kill", "save"]);
    expect(run.state.phase).toMatchObject({ cause: "EXITED", code: 3, wallMs: 1_000_050 });
    expect(run.state.change).toBe(3);
  });

  it("should send the signal, and kill repeatedly after the grace period", () => {
    const run = new Run(RULES);
    run.step(launched);
    expect(run.step(stop)).toEqual(["save", "SIGINT"]);
    expect(run.step(stop)).toEqual([]);
    expect(run.step(due, 999)).toEqual([]);
    expect(run.step(due, 1)).toEqual(["kill", "save"]);
    expect(run.due()).toEqual(["kill"]);
    run.step(exited(null));
    expect(run.state.phase).toMatchObject({ cause: "STOPPED", signal: "SIGKILL" });
  });

  it("should stop an execution as soon as its start is done", () => {
    const run = new Run(RULES);
    expect(run.step(stop)).toEqual(["save"]);
    expect(run.step(launched)).toEqual(["save", "SIGINT"]);
    run.step(exited(0));
    expect(run.state.phase).toMatchObject({ cause: "STOPPED", code: 0 });
  });

  it.each<[string, ExecutionEvent, string]>([
    ["a code", exited(1), "EXITED"],
    ["a signal", exited(null), "EXITED"],
    ["a signal of the kernel", exited(null, { kind: "yes" }), "OOM"],
    ["a code after a child was killed for memory", exited(1, { kind: "yes" }), "OOM"],
    ["a success after a child was killed for memory", exited(0, { kind: "yes" }), "EXITED"],
    ["an end that was not observed", { kind: "exited", exit: null }, "GONE"],
  ])("should report how it ended: %s", (_, event, cause) => {
    const run = new Run(RULES);
    run.step(launched);
    run.step(event);
    expect(run.state.phase).toMatchObject({ kind: "ended", cause });
  });

  it("should report that it may have run out of memory, unless it succeeded", () => {
    const unknown = { kind: "unknown", why: "memory.events cannot be read" } as const;
    const run = new Run(RULES);
    run.step(launched);
    run.step(exited(null, unknown));
    const message = "unknown whether the process ran out of memory: memory.events cannot be read";
    expect(run.state).toMatchObject({ phase: { kind: "ended", cause: "EXITED" }, message });
    const other = new Run(RULES);
    other.step(launched);
    other.step(exited(0, unknown));
    expect(other.state).toMatchObject({ phase: { kind: "ended", cause: "EXITED" }, message: "" });
  });

  it.each<[Partial<KeepingRules>, number, string]>([
    [{ maxRunMs: 5_000 }, 5_000, "DEADLINE_EXCEEDED"],
    [{ stopOnAgentAfterMs: 7_000 }, 7_000, "CONTROL_PLANE_LOST"],
    [{ maxRunMs: 9_000, stopOnAgentAfterMs: 7_000 }, 7_000, "CONTROL_PLANE_LOST"],
  ])("should stop according to its rules: %j", (rules, atMs, cause) => {
    const run = new Run({ ...RULES, ...rules });
    run.step(launched);
    expect(run.step(due, atMs - 1)).toEqual([]);
    expect(run.step(due, 1)).toEqual(["save", "SIGINT"]);
    run.step(exited(0));
    expect(run.state.phase).toMatchObject({ cause });
  });

  it("should postpone its stop while the control plane is seen", () => {
    const run = new Run({ ...RULES, stopOnAgentAfterMs: 7_000 });
    run.step(launched);
    run.seenAtMs = 6_000;
    expect(run.step(due, 12_999)).toEqual([]);
    expect(run.step(due, 1)).toEqual(["save", "SIGINT"]);
  });

  it("should become ready when its check passes, unready after consecutive failures, and ready again", () => {
    const run = new Run(CHECKED);
    run.step(launched);
    expect(run.state.phase).toMatchObject({ isReady: false });
    expect(run.due()).toEqual(["check"]);
    // While a check is running, only the deadline can be due.
    expect(dueAtMs(run.state, run.seenAtMs)).toBe(60_000);
    expect(run.step(checked(true))).toEqual(["save"]);
    expect(run.step(checked(true))).toEqual([]);
    expect(run.step(checked(false))).toEqual([]);
    expect(run.state.phase).toMatchObject({ isReady: true });
    expect(run.step(checked(false))).toEqual(["save"]);
    expect(run.state.phase).toMatchObject({ kind: "running", isReady: false });
    expect(run.state.message).toBe("check failed 2 times in a row: no answer");
    expect(run.step(checked(false))).toEqual([]);
    expect(run.step(checked(true))).toEqual(["save"]);
    expect(run.state.phase).toMatchObject({ isReady: true });
  });

  it("should check until its deadline if it was never ready, and report the failure once", () => {
    const run = new Run(CHECKED);
    run.step(launched);
    expect(run.step(checked(false))).toEqual([]);
    expect(run.step(checked(false))).toEqual(["save"]);
    expect(run.state).toMatchObject({ message: "check failed 2 times in a row: no answer", phase: { isReady: false } });
    for (let failures = 3; failures < 10; failures += 1) expect(run.step(checked(false))).toEqual([]);
    expect(run.due()).toEqual(["check"]);
    expect(run.step(checked(true), 59_000 - run.nowMs)).toEqual(["save"]);
    expect(run.state).toMatchObject({ message: "", phase: { isReady: true } });
    // From now on, only failures count, and the deadline does not.
    expect(run.step(checked(false), 60_000)).toEqual([]);
    expect(run.step(checked(false))).toEqual(["save"]);
    expect(run.state.phase).toMatchObject({ kind: "running", isReady: false, wasReady: true });
  });

  it("should not use the message of its check when it exits", () => {
    const run = new Run(CHECKED);
    run.step(launched);
    run.step(checked(false));
    run.step(exited(1));
    expect(run.state).toMatchObject({ message: "", phase: { cause: "EXITED", code: 1 } });
  });

  it.each([
    [
      "whose check failed",
      [checked(false), checked(false), checked(false)],
      "check failed 3 times in a row: no answer",
    ],
    ["whose check was not tried", [], "the check has not run"],
  ])("should end an execution %s at its deadline, and say why", (_, events, why) => {
    const run = new Run(CHECKED);
    run.step(launched);
    for (const event of events) run.step(event);
    run.step(due, 59_999);
    expect(run.state.phase).toMatchObject({ kind: "running" });
    expect(run.step(due, 1)).toEqual(["save", "SIGINT"]);
    run.step(exited(0));
    expect(run.state).toMatchObject({ message: `not ready within 60 s: ${why}`, phase: { cause: "CHECK_FAILED" } });
  });

  it("should say why it could not be started", () => {
    const run = new Run(RULES);
    expect(run.step({ kind: "launch-failed", message: "no program" })).toEqual(["kill", "save"]);
    expect(run.state).toMatchObject({ message: "no program", phase: { cause: "START_FAILED", code: null } });
  });

  it("should stay ended, never lower its change number, and report each change", () => {
    const event = fc.constantFrom(
      ...[launched, stop, due, exited(0), exited(null, { kind: "yes" }), checked(true), checked(false)],
      ...[{ kind: "exited", exit: null } as const, { kind: "launch-failed", message: "" } as const],
    );
    fc.assert(
      fc.property(fc.boolean(), fc.array(fc.tuple(event, fc.nat(20_000))), (isChecked, events) => {
        const run = new Run({ ...(isChecked ? CHECKED : RULES), maxRunMs: 60_000, stopOnAgentAfterMs: 90_000 });
        for (const [one, afterMs] of events) {
          const before = run.state;
          const effects = run.step(one, afterMs);
          if (before.phase.kind === "ended") {
            const { killAtMs, ...end } = before.phase;
            expect(run.state).toMatchObject({ ...before, phase: end });
            if (killAtMs === null) expect(run.state).toBe(before);
          }
          if (run.state.change !== before.change) expect(effects).toContain("save");
          expect(run.state.change).toBeGreaterThanOrEqual(before.change);
        }
      }),
    );
  });
});

describe("an execution that has ended", () => {
  it("should be killed repeatedly until none of its processes is left", () => {
    const run = new Run(RULES);
    run.step(launched);
    run.step(exited(0));
    const { change } = run.state;
    expect([run.due(), run.due(), run.nowMs]).toEqual([["kill"], ["kill"], 10_000]);
    expect(run.step({ kind: "released" })).toEqual(["save"]);
    expect([run.due(), run.step({ kind: "released" })]).toEqual([["never"], []]);
    expect(run.state).toMatchObject({ change, phase: { kind: "ended", cause: "EXITED", code: 0 } });
  });

  it("should be killed again if its start failed", () => {
    const run = new Run(RULES);
    run.step({ kind: "launch-failed", message: "no" });
    expect(run.due()).toEqual(["kill"]);
  });
});

describe("neverStarted()", () => {
  it("should have ended", () => {
    const { phase, message } = neverStarted(RULES, { cause: "STOPPED", message: "stopped before" }, 7);
    expect(phase).toEqual({ kind: "ended", killAtMs: null, wallMs: 7, cause: "STOPPED", code: null, signal: null });
    expect(message).toBe("stopped before");
  });
});
