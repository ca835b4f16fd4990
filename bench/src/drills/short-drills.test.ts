import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { findLibfaketime } from "./libfaketime.ts";

const MAIN = fileURLToPath(new URL("../../dist/drills/main.js", import.meta.url));
const AGENTS = "40";
// Replicas and Postgres are started and ended for each, on a machine that is busy with other tests.
const LIMIT_MS = 110_000;
// Nearly a hundred scenarios, one after the other.
const HOSTILE_LIMIT_MS = 300_000;

/** Run a drill in a process of its own, as `make drill SHORT=1` does. Answers what it prints. */
async function drill(name: string, timeout = LIMIT_MS): Promise<string> {
  const env = { ...process.env, AGENTS };
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "--short", name], {
    env,
    timeout,
  });
  return stdout;
}

// Real processes, signals and sockets, with thresholds and faults shrunk together. A drill exits with 1 when somebody was misjudged.
describe("the drills, shrunk", () => {
  it.concurrent.each(["stop", "network", "dead-path", "postgres", "kill-all"])(
    "should judge nobody: %s",
    async (name) => {
      expect(await drill(name)).toContain(`PASSED: ${AGENTS} agents`);
    },
  );

  it(
    "should let no well-behaved agent notice: hostile",
    async () => {
      expect(await drill("hostile", HOSTILE_LIMIT_MS)).toContain(`PASSED: ${AGENTS} agents`);
    },
    HOSTILE_LIMIT_MS,
  );

  const itWithFaketime = findLibfaketime() === null ? it.skip : it;
  itWithFaketime("should judge nobody: clock", async () => {
    expect(await drill("clock")).toContain(`PASSED: ${AGENTS} agents`);
  });
});
