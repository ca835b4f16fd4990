import { describe, expect, it } from "@jest/globals";
import type { EndReason, Execution, Observation, StoredState } from "./execution.ts";
import { isNewer, isTerminal, mayFollow, settleEnd, settleGone, shownState, stopRevived } from "./execution-state.ts";

const RECORD: Execution = {
  ...{ id: "e1", job: "web", version: 1, run: 1, index: 0, nodeId: "n", desired: "RUN", holds: true, previous: null },
  grant: { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
  ...{ replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: 0, lostAtMs: null },
  endedAtMs: null,
};

function ended(end: EndReason | null, exitCode: number | null = null, signal: string | null = null): Observation {
  return {
    ...{ observed: "ENDED", epoch: 1, report: 1, startedAtMs: 0, endedAtMs: 1, end, exitCode, signal, message: "" },
  };
}

describe("shownState()", () => {
  it.each([
    ["LIVE", null, "HEALTHY", "PENDING"],
    ["LIVE", "STARTING", "HEALTHY", "STARTING"],
    ["LIVE", "RUNNING", "HEALTHY", "RUNNING"],
    ["LIVE", "READY", "HEALTHY", "READY"],
    ["LIVE", "READY", "UNHEALTHY", "LOST"],
    ["LIVE", null, "UNKNOWN", "LOST"],
    ["LIVE", "READY", null, "LOST"],
    ["LOST", "READY", "HEALTHY", "LOST"],
    ["COMPLETED", "ENDED", "UNHEALTHY", "COMPLETED"],
  ] as const)("should show %s, seen %j, on a node that is %j as %s", (state, observed, health, shown) => {
    const observation = observed === null ? null : { observed };
    expect(shownState({ state }, observation, health === null ? null : { health })).toBe(shown);
  });
});

describe("mayFollow()", () => {
  const STATES: readonly StoredState[] = ["LIVE", "LOST", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"];

  it("should let lost executions live again, and keep final states", () => {
    const after = (state: StoredState) => STATES.filter((next) => next !== state && mayFollow(state, next));
    expect(after("LIVE")).toEqual(["LOST", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"]);
    expect(after("LOST")).toEqual(["LIVE", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"]);
    for (const state of STATES.slice(2)) expect([after(state), isTerminal(state)]).toEqual([[], true]);
  });
});

describe("settleEnd()", () => {
  it.each([
    ["batch", ended("EXITED", 0), "COMPLETED", "EXITED"],
    ["batch", ended("EXITED", 3), "FAILED", "EXITED"],
    ["service", ended("EXITED", 0), "COMPLETED", "EXITED"],
    ["batch", ended("EXITED", null, "SIGSEGV"), "FAILED", "SIGNALLED"],
    ["batch", ended("OOM"), "KILLED_OOM", "OOM"],
    ["service", ended("START_FAILED"), "FAILED", "START_FAILED"],
    ["service", ended("CHECK_FAILED"), "FAILED", "CHECK_FAILED"],
    ["ops", ended("DEADLINE_EXCEEDED"), "FAILED", "DEADLINE_EXCEEDED"],
    ["service", ended("CONTROL_PLANE_LOST"), "FAILED", "CONTROL_PLANE_LOST"],
    ["service", ended("STOPPED"), "FAILED", "STOPPED_ON_NODE"],
    ["ops", ended("GONE"), "FAILED", "GONE"],
  ] as const)("should record a %s's execution that should run and ended as %j as %s", (type, end, state, reason) => {
    expect(settleEnd(RECORD, end, type)).toMatchObject({ state, reason });
  });

  it.each(["batch", "service", "daemon"] as const)("should take one of a %s that is gone for lost", (type) => {
    expect(settleEnd(RECORD, ended("GONE"), type)).toBeNull();
  });

  it.each([
    ["service", "JOB_STOPPED", ended("EXITED", 0), "STOPPED", "JOB_STOPPED"],
    ["batch", "JOB_STOPPED", ended("EXITED", 0), "COMPLETED", "EXITED"],
    ["batch", "NODE_DRAINED", ended("STOPPED"), "STOPPED", "NODE_DRAINED"],
    ["ops", "NODE_DRAINED", ended("STOPPED"), "FAILED", "NODE_DRAINED"],
    ["ops", "NODE_DRAINED", ended("EXITED", 0), "COMPLETED", "EXITED"],
    ["daemon", "NODE_LABELS_CHANGED", ended("GONE"), "STOPPED", "NODE_LABELS_CHANGED"],
  ] as const)("should record a %s's execution that was asked to stop (%s)", (type, cause, end, state, reason) => {
    const record = { ...RECORD, desired: "STOP", reason: cause } as const;
    expect(settleEnd(record, end, type)).toMatchObject({ state, reason });
  });

  it("should record a replaced execution as such, however it ended", () => {
    const record = { ...RECORD, desired: "STOP", replacedBy: "e2", reason: "NODE_LOST" } as const;
    expect(settleEnd(record, ended("EXITED", 0), "batch")).toMatchObject({ state: "REPLACED", reason: "NODE_LOST" });
    expect(settleGone(record, "service", "NODE_DELETED")).toMatchObject({ state: "REPLACED" });
  });
});

describe("settleGone()", () => {
  it.each([
    ["batch", "STOPPED"],
    ["service", "STOPPED"],
    ["daemon", "STOPPED"],
    ["ops", "FAILED"],
  ] as const)("should record a %s's execution on a node that is gone for good as %s", (type, state) => {
    expect(settleGone(RECORD, type, "NODE_REJECTED")).toEqual({ state, reason: "NODE_REJECTED", message: "" });
  });

  it.each(["batch", "ops"] as const)("should leave a %s's execution stopped that an operator had stopped", (type) => {
    const record = { ...RECORD, desired: "STOP", reason: "EXECUTION_STOPPED", message: "enough" } as const;
    const end = { state: "STOPPED", reason: "EXECUTION_STOPPED", message: "enough" };
    expect(settleGone(record, type, "NODE_DELETED")).toEqual(end);
  });
});

describe("stopRevived()", () => {
  it("should stop an execution that runs after its end was recorded, and keep its state", () => {
    const record = { ...RECORD, state: "FAILED", desired: "FORGET" } as const;
    const running = { ...ended(null), observed: "RUNNING" } as const;
    expect(stopRevived(record, running)).toEqual({ ...record, desired: "STOP" });
    expect(stopRevived(record, ended("EXITED", 0))).toBeNull();
    expect(stopRevived(RECORD, running)).toBeNull();
  });
});

describe("shownState()", () => {
  const RUNNING = { observed: "RUNNING" } as const;
  const WELL = { health: "HEALTHY" } as const;

  it.each(["COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"] as const)(
    "should show a running execution of a healthy node although it was recorded as %s",
    (state) => {
      expect(shownState({ state }, RUNNING, WELL)).toBe("RUNNING");
      expect(shownState({ state }, { observed: "READY" }, WELL)).toBe("RUNNING");
      expect(shownState({ state }, { observed: "ENDED" }, WELL)).toBe(state);
      expect(shownState({ state }, null, WELL)).toBe(state);
      // Ignore the last report of a node that is lost or deleted.
      expect(shownState({ state }, RUNNING, { health: "UNHEALTHY" })).toBe(state);
      expect(shownState({ state }, RUNNING, null)).toBe(state);
    },
  );
});

describe("isNewer()", () => {
  const [earlier, later] = ["0".repeat(26), `${"0".repeat(25)}1`];

  it.each([
    ["a later id", { run: 1, id: later }, { run: 1, id: earlier }],
    ["a later run, whatever its id", { run: 2, id: earlier }, { run: 1, id: later }],
    ["an id of a scheduler, after one that a node named", { run: 1, id: earlier }, { run: 1, id: "orphan" }],
  ])("should take for newer %s", (_, one, other) => {
    expect([isNewer(one, other), isNewer(other, one), isNewer(one, one)]).toEqual([true, false, false]);
  });
});
