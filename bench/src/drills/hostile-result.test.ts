import { describe, expect, it } from "@jest/globals";
import { type HostileOutcome, hostileResult, type ScenarioOutcome } from "./hostile-result.ts";

const CALM: ScenarioOutcome = {
  name: "ping-flood-api",
  attack: { connections: 8, ended: 8, bytes: 1_048_576 },
  agents: { lost: 0, acks: 2_500, p50Ms: 0.6, p99Ms: 12, slowestMs: 40 },
  api: { answers: 100, failures: [], slowestMs: 80 },
};
const HELD = { descriptors: 120, heapBytes: 60 * 1_048_576 };
const LIMITS = { ackP99Ms: 100, apiMs: 1_000 };

function outcome(scenario: Partial<ScenarioOutcome>, after = HELD): HostileOutcome {
  return { agents: 50, outcomes: [{ ...CALM, ...scenario }], before: HELD, after };
}

describe("hostileResult()", () => {
  it("should pass if no client was affected", () => {
    const { passed, text } = hostileResult(outcome({}), LIMITS);
    expect(passed).toBe(true);
    expect(text).toContain("PASSED: 50 agents, 1 scenarios, 0 streams lost");
  });

  it.each<[string, Partial<ScenarioOutcome>, string]>([
    ["streams were lost", { agents: { ...CALM.agents, lost: 2 } }, "2 streams lost"],
    ["nothing was acknowledged", { agents: { ...CALM.agents, acks: 0 } }, "no acknowledgement"],
    ["acknowledgements were late", { agents: { ...CALM.agents, p99Ms: 100 } }, "p99 100 ms"],
    ["the API failed", { api: { ...CALM.api, failures: ["cut"] } }, "1 calls of an operator failed"],
    ["the API was slow", { api: { ...CALM.api, slowestMs: 1_000 } }, "the API took 1000 ms"],
  ])("should fail when %s", (_, change, problem) => {
    const { passed, text } = hostileResult(outcome(change), LIMITS);
    expect(passed).toBe(false);
    expect(text).toContain(problem);
  });

  it.each([
    ["descriptors", { ...HELD, descriptors: 137 }, "137 descriptors"],
    ["memory", { ...HELD, heapBytes: 90 * 1_048_576 }, "90.0 MiB of heap"],
  ])("should fail when %s did not come back", (_, after, problem) => {
    const { passed, text } = hostileResult(outcome({}, after), LIMITS);
    expect(passed).toBe(false);
    expect(text).toContain(problem);
  });

  it("should evaluate no times without limits", () => {
    const slow = outcome({ agents: { ...CALM.agents, p99Ms: 5_000 } });
    expect(hostileResult(slow, { ackP99Ms: null, apiMs: null }).passed).toBe(true);
  });
});
