import { spawnSync } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { findLibfaketime } from "../../bench/src/drills/libfaketime.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { runDrill } from "./drill.ts";

const AGENTS = "40";
const LIMIT_MS = 110_000;
/** The time limit of a drill. Starting processes takes most of the time. */
const WORK_LIMIT_MS = 400_000;

const hasGo = spawnSync("go", ["version"]).status === 0;
const drill = (name: string) => runDrill(["--short", name], LIMIT_MS, { AGENTS });

// Runs drills with real processes, signals and sockets, but with shorter thresholds and faults. A drill exits with 1
// if a node was declared lost without a cause.
describe("the drills, in a small size", () => {
  it.concurrent.each(["stop", "network", "dead-path", "postgres", "kill-all"])(
    "should declare no node lost: %s",
    async (name) => {
      expect(await drill(name)).toContain(`PASSED: ${AGENTS} agents`);
    },
  );

  it("should stop nothing because of an old backup: restored-work", async () => {
    expect(await runDrill(["--short", "restored-work"], WORK_LIMIT_MS)).toContain("PASSED: 100 of 100 executions run");
  });

  it("should lose and double nothing however often schedulers die: scheduler-crashes", async () => {
    expect(await runDrill(["--short", "scheduler-crashes"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  it("should deliver each event, in order of its subject, although sender and receiver die: webhooks", async () => {
    expect(await runDrill(["--short", "webhooks"], WORK_LIMIT_MS)).toContain("PASSED: 400 events");
  });

  it("should name the slow dependency, lose no decision and catch up: slow-dependencies", async () => {
    expect(await runDrill(["--short", "slow-dependencies"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  needs("go", hasGo).it(
    "should leave a linearizable history of each node: histories",
    async () => {
      expect(await runDrill(["--short", "histories"], WORK_LIMIT_MS)).toContain("PASSED: ");
    },
    WORK_LIMIT_MS,
  );

  it("should declare no node unhealthy wrongly and refuse no call while everything changes: churn", async () => {
    expect(await runDrill(["--short", "churn"], LIMIT_MS, { AGENTS })).toContain(`PASSED: ${AGENTS} agents`);
  });

  it("should hold every node that is broken, and let it go once it is repaired: broken-agents", async () => {
    expect(await runDrill(["--no-clock", "broken-agents"], WORK_LIMIT_MS)).toContain("PASSED: ");
  });

  const { it: itWithFaketime } = needs("libfaketime", findLibfaketime() !== null);
  itWithFaketime("should declare no node lost: clock", async () => {
    expect(await drill("clock")).toContain(`PASSED: ${AGENTS} agents`);
  });
});
