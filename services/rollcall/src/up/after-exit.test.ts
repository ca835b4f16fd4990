import { describe, expect, it } from "@jest/globals";
import { type AgentExit, decideAfterExit } from "./after-exit.ts";

const CRASH: AgentExit = { code: 1, signal: null, ranMs: 10, crashes: 0 };

describe("decideAfterExit()", () => {
  it.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])(
    "should not restart an agent that was stopped by %s",
    (signal) => {
      expect(decideAfterExit({ ...CRASH, code: null, signal }, 0)).toEqual({ kind: "stay-down" });
    },
  );

  it.each([0, 2])("should not restart an agent that exited with code %d", (code) => {
    expect(decideAfterExit({ ...CRASH, code }, 0)).toEqual({ kind: "stay-down" });
  });

  it.each(["SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS"])("should restart an agent that ended by %s", (signal) => {
    expect(decideAfterExit({ ...CRASH, code: null, signal }, 0)).toMatchObject({
      kind: "restart",
    });
  });

  it("should wait longer after each crash, up to a minute, and start over after a steady run", () => {
    const pauses = [0, 1, 2, 20].map((crashes) => decideAfterExit({ ...CRASH, crashes }, 0.999));
    expect(pauses).toEqual([
      { kind: "restart", pauseMs: 1499, crashes: 1 },
      { kind: "restart", pauseMs: 2498, crashes: 2 },
      { kind: "restart", pauseMs: 4496, crashes: 3 },
      { kind: "restart", pauseMs: 60_440, crashes: 21 },
    ]);
    expect(decideAfterExit({ ...CRASH, crashes: 20, ranMs: 60_000 }, 0)).toEqual({
      kind: "restart",
      pauseMs: 500,
      crashes: 1,
    });
  });
});
