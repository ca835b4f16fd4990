import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
// A minute and a half, where the machine is not busy.
const LIMIT_MS = 600_000;

describe("the drill of slow dependencies, shrunk", () => {
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
