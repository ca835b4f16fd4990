import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
// The time limit of the test. The drill takes a minute and a half on a machine that is
// not busy.
const LIMIT_MS = 600_000;

describe("the drill of slow dependencies, in a small size", () => {
  it(
    "should lose no decision, declare no node unhealthy, name what is slow, and catch up",
    async () => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--conditions=source", MAIN, "--short", "slow-dependencies"],
        { timeout: LIMIT_MS },
      );
      expect(stdout).toMatch(/PASSED: \d+ agents/);
    },
    LIMIT_MS,
  );
});
