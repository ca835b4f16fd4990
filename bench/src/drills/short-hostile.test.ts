import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const AGENTS = "40";
// Nearly a hundred scenarios, one after the other: a minute, where the machine is not busy.
const LIMIT_MS = 600_000;

describe("the drill of hostile peers, shrunk", () => {
  it(
    "should let no well-behaved agent notice",
    async () => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--conditions=source", MAIN, "--short", "hostile"],
        { env: { ...process.env, AGENTS }, timeout: LIMIT_MS },
      );
      expect(stdout).toContain(`PASSED: ${AGENTS} agents`);
    },
    LIMIT_MS,
  );
});
