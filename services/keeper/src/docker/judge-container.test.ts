import { describe, expect, it } from "@jest/globals";
import { judgeContainer } from "./judge-container.ts";

const AT = "2026-11-23T15:00:00Z";
const AT_MS = Date.parse(AT);
const state = (Status: string, more = {}) => ({ Status, ExitCode: 0, OOMKilled: false, FinishedAt: AT, ...more });

describe("judgeContainer()", () => {
  it.each([
    ["created", "created"],
    ["configured", "created"],
    ["running", "runs"],
    ["paused", "runs"],
    ["stopping", "runs"],
    ["exited", "exited"],
    ["dead", "exited"],
  ])("should see that one which is %s is %s", (status, kind) => {
    expect(judgeContainer(state(status), null).kind).toBe(kind);
  });

  it("should tell how and when it ended", () => {
    expect(judgeContainer(state("exited", { ExitCode: 137, OOMKilled: true }), null)).toEqual({
      kind: "exited",
      exit: { code: 137, signal: null, memoryKill: { kind: "yes" } },
      wallMs: AT_MS,
    });
    expect(judgeContainer(state("exited", { FinishedAt: "0001-01-01T00:00:00Z" }), null)).toMatchObject({
      wallMs: null,
    });
  });

  it.each([
    [AT_MS + 1, true],
    [AT_MS, false],
  ])("should believe an end of another boot when it was written down before this one: %d", (bootWallMs, isSeen) => {
    const verdict = judgeContainer(state("exited"), bootWallMs);
    expect(verdict.kind === "exited" && verdict.exit !== null).toBe(isSeen);
  });
});
