import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const AGENTS = "40";
// The time limit of the test. Nearly a hundred scenarios run one after the other. They take a minute on a machine
// that is not busy.
const LIMIT_MS = 600_000;

/** Floods that end a session while the server still reads the session's data. */
const RESETS = ["rapid-reset", "made-reset", "reset-burst"].flatMap((name) => [`${name}-api`, `${name}-agents`]);

describe("the drill of hostile peers, in a small size", () => {
  it.each([
    ["in clear text", "hostile", {}],
    ["through TLS, where calls are reset at once", "hostile-tls", { SCENARIO: RESETS.join() }],
  ])(
    "should let no well-behaved agent notice: %s",
    async (_, name, env) => {
      const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=source", MAIN, "--short", name], {
        env: { ...process.env, AGENTS, ...env },
        timeout: LIMIT_MS,
      });
      expect(stdout).toContain(`PASSED: ${AGENTS} agents`);
    },
    LIMIT_MS,
  );
});
