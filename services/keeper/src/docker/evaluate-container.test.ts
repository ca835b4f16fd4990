import { describe, expect, it } from "@jest/globals";
import { evaluateContainer } from "./evaluate-container.ts";

const AT = "2026-11-23T15:00:00Z";
const AT_MS = Date.parse(AT);
const state = (Status: string, more = {}) => ({ Status, ExitCode: 0, OOMKilled: false, FinishedAt: AT, ...more });

describe("evaluateContainer()", () => {
  it.each([
    ["created", "created"],
    ["configured", "created"],
    ["running", "runs"],
    ["paused", "runs"],
    ["stopping", "runs"],
    ["exited", "exited"],
    ["dead", "exited"],
  ])("should treat a container in state %s as %s", (status, kind) => {
    expect(evaluateContainer(state(status), null).kind).toBe(kind);
  });

  it("should report how and when it ended", () => {
    expect(evaluateContainer(state("exited", { ExitCode: 137, OOMKilled: true }), null)).toEqual({
      kind: "exited",
      exit: { code: 137, signal: null, memoryKill: { kind: "yes" } },
      wallMs: AT_MS,
    });
    expect(evaluateContainer(state("exited", { FinishedAt: "0001-01-01T00:00:00Z" }), null)).toMatchObject({
      wallMs: null,
    });
  });

  it.each([
    [AT_MS + 1, true],
    [AT_MS, false],
  ])(
    "should accept the end of a container of another boot only if it was recorded before this boot: %d",
    (bootWallMs, isSeen) => {
      const programStatus = evaluateContainer(state("exited"), bootWallMs);
      expect(programStatus.kind === "exited" && programStatus.exit !== null).toBe(isSeen);
    },
  );
});
