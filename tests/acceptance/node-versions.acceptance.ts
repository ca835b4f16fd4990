import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { until } from "../../libs/testkit/src/time.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { workspaceRoot } from "../support/workspace.ts";
import { startProgram } from "./packages/program.ts";

const LIMIT_MS = 840_000;
const PATIENCE_MS = 120_000;
jest.setTimeout(LIMIT_MS);

const execute = promisify(execFile);

/** The oldest version that the npm package supports. */
const OLDEST = "22.15";
/** The versions that the npm package supports. The last one is bundled, and .ci/run installs the others. */
const VERSIONS = [
  [OLDEST, join(workspaceRoot, ".tools/node/node_modules/node-22.15/bin/node")],
  ["22", join(workspaceRoot, ".tools/node/node_modules/node-22/bin/node")],
  ["24", join(workspaceRoot, ".tools/node/node_modules/node-24/bin/node")],
  ["26", process.execPath],
] as const;
const PROGRAM = join(workspaceRoot, "services/rollcall/bundle/src/start.cjs");
const DRILLS = join(workspaceRoot, "bench/dist/drills/main.js");
/** Floods that end a session while the server reads it. Versions of Node.js handle these floods in different ways. */
const RESETS = ["rapid-reset", "made-reset", "reset-burst"].flatMap((name) => [`${name}-api`, `${name}-agents`]);

for (const [version, node] of VERSIONS) {
  needs(`Node.js ${version} in .tools`, existsSync(node)).describe(`Node.js ${version}`, () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "rollcall-node-"));
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));

    const drill = async (words: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const options = { timeout: LIMIT_MS, maxBuffer: 16 * 1_048_576, env: { ...process.env, AGENTS: "40", ...env } };
      return (await execute(node, [DRILLS, ...words], options)).stdout;
    };

    it("should run `up` with its agent, and the command line", async () => {
      const [port = 0, agents = 0, probes = 0, internal = 0] = await freePorts(4);
      const env = { ...process.env, HOME: folder, ROLLCALL_DATA_DIR: join(folder, "data") };
      const ports = ["--port", port, "--agent-port", agents, "--probe-port", probes, "--internal-port", internal];
      const up = startProgram(node, [PROGRAM, "up", ...ports.map(String)], env);
      try {
        await up.prints("everything is up");
        const rollcall = async (...words: readonly string[]) =>
          (await execute(node, [PROGRAM, ...words, "--server", `127.0.0.1:${port}`], { env })).stdout;
        expect(await rollcall("version")).toContain(`Node.js ${version}.`);
        await until("a HEALTHY node", async () => (await rollcall("node", "list")).includes(" healthy "), PATIENCE_MS);
      } finally {
        await up.end();
      }
    });

    // Skip the oldest version, because it lacks fixes that the latest release of its line has.
    if (version === OLDEST) return;

    it("should not let hostile peers affect well-behaved agents", async () => {
      expect(await drill(["hostile", "--short"])).toContain("PASSED: 40 agents");
    });

    it.each(["hostile", "hostile-tls"])("should survive seconds of calls that are reset at once: %s", async (name) => {
      expect(await drill([name, "--no-clock"], { SCENARIO: RESETS.join() })).toContain("PASSED: 40 agents");
    });
  });
}
