import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
// The time limit of the test. Some twenty faults happen one after the other. They take a minute on a
// machine that is not busy.
const LIMIT_MS = 600_000;

describe("the drill of poisoned sessions, in a small size", () => {
  it(
    "should find that every fault leads to new sessions, and no node is declared unhealthy because of it",
    async () => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--conditions=source", MAIN, "--short", "poisoned-sessions"],
        { timeout: LIMIT_MS },
      );
      expect(stdout).toMatch(/PASSED: \d+ faults/);
    },
    LIMIT_MS,
  );
});
