import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
// Some twenty faults, one after the other: a minute, where the machine is not busy.
const LIMIT_MS = 600_000;

describe("the drill of poisoned sessions, shrunk", () => {
  it(
    "should find that every fault ends in new sessions, and no node is judged for it",
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
