import { describe, expect, it } from "@jest/globals";
import { findLibfaketime } from "../../bench/src/drills/libfaketime.ts";
import { runDrill } from "./drill.ts";

const AGENTS = "40";
const LIMIT_MS = 110_000;
/** Mostly processes that are started. */
const WORK_LIMIT_MS = 400_000;

const drill = (name: string) => runDrill(["--short", name], LIMIT_MS, { AGENTS });

// Real processes, signals and sockets, with thresholds and faults shrunk together. A drill exits with 1 when a node was
// declared lost without a cause.
describe("the drills, shrunk", () => {
  it.concurrent.each(["stop", "network", "dead-path", "postgres", "kill-all"])(
    "should declare no node lost: %s",
    async (name) => {
      expect(await drill(name)).toContain(`PASSED: ${AGENTS} agents`);
    },
  );

  it("should stop nothing for an old backup: restored-work", async () => {
    expect(await runDrill(["--short", "restored-work"], WORK_LIMIT_MS)).toContain("PASSED: 100 of 100 executions run");
  });

  it("should lose and double nothing however often schedulers die: scheduler-crashes", async () => {
    expect(await runDrill(["--short", "scheduler-crashes"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  it("should deliver each event, in order of its subject, though both ends die: webhooks", async () => {
    expect(await runDrill(["--short", "webhooks"], WORK_LIMIT_MS)).toContain("PASSED: 400 events");
  });

  it("should name what is slow, lose no decision and catch up: slow-dependencies", async () => {
    expect(await runDrill(["--short", "slow-dependencies"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  it("should judge no node falsely and refuse no call while everything changes: churn", async () => {
    expect(await runDrill(["--short", "churn"], LIMIT_MS, { AGENTS })).toContain(`PASSED: ${AGENTS} agents`);
  });

  it("should hold every node that is broken, and let it go once it is repaired: broken-agents", async () => {
    expect(await runDrill(["--no-clock", "broken-agents"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  const itWithFaketime = findLibfaketime() === null ? it.skip : it;
  itWithFaketime("should declare no node lost: clock", async () => {
    expect(await drill("clock")).toContain(`PASSED: ${AGENTS} agents`);
  });
});
