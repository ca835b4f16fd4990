import { describe, expect, it } from "@jest/globals";
import { evaluateShim, parseExit, type ShimFacts } from "./shim-facts.ts";

const CHILD = { pid: 7, start: "100" };
const FRESH: ShimFacts = {
  hasStarted: false,
  shim: "unknown",
  child: null,
  childLife: "unknown",
  status: "",
  exit: null,
};
const RUNNING: ShimFacts = {
  ...FRESH,
  hasStarted: true,
  shim: "alive",
  child: CHILD,
  childLife: "alive",
  status: "begun",
};
const EXIT = { code: 3, signal: null };

describe("evaluateShim()", () => {
  it.each<[string, Partial<ShimFacts>, boolean, object]>([
    ["runs", {}, false, { kind: "runs", child: CHILD }],
    ["runs without its shim", { shim: "dead" }, false, { kind: "runs", child: CHILD }],
    ["has not begun yet", { status: "" }, false, { kind: "wait" }],
    ["no shim took on", FRESH, true, { kind: "not-launched" }],
    ["has a shim that has not recorded its name", { ...FRESH, hasStarted: true }, false, { kind: "wait" }],
    ["has a shim that never recorded its name", { ...FRESH, hasStarted: true }, true, { kind: "exited", exit: null }],
    ["has ended, but its shim has not recorded it yet", { childLife: "dead" }, true, { kind: "wait" }],
    ["is gone with its shim", { childLife: "dead", shim: "dead" }, false, { kind: "exited", exit: null }],
    ["has ended", { childLife: "dead", exit: EXIT }, false, { kind: "exited", exit: EXIT }],
    ["could not begin", { exit: EXIT, status: "no program" }, false, { kind: "launch-failed", message: "no program" }],
    ["ended before it began", { exit: EXIT, status: "" }, false, { kind: "launch-failed" }],
  ])("should decide for a launch that %s", (_, facts, isLate, programStatus) => {
    expect(evaluateShim({ ...RUNNING, ...facts }, isLate)).toMatchObject(programStatus);
  });
});

describe("parseExit()", () => {
  it.each([
    ["0", 0, null],
    ["3", 3, null],
    ["137", 137, null],
    ["137 Killed", null, "SIGKILL"],
    ["143 rollcall-execution: line 30: 41 Terminated ( exec ... )", null, "SIGTERM"],
    ["130", null, "SIGINT"],
    ["255", 255, null],
    ["", null, null],
    ["nonsense", null, null],
  ])("should read %j", (text, code, signal) => {
    expect(parseExit(text)).toEqual({ code, signal });
  });
});
