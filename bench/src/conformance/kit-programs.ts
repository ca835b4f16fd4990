import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const GO = join(ROOT, "sdk/go");
const PYTHON = join(ROOT, "sdk/python");
const LIMIT_MS = 600_000;
const run = promisify(execFile);

/** The programs of a kit. Flags are appended to each command. */
export interface KitPrograms {
  /** The agent that the scenarios test. */
  readonly conformance: readonly string[];
  /** The kit's example program. */
  readonly example: readonly string[];
}

/** Build the conformance and example programs of the Go kit into a folder. */
export async function makeGoPrograms(folder: string): Promise<KitPrograms> {
  const out = `${folder}/`;
  await run("go", ["build", "-o", out, "./agent/conformance", "./agent/example"], { cwd: GO, timeout: LIMIT_MS });
  return { conformance: [join(folder, "conformance")], example: [join(folder, "example")] };
}

/** Install the wheel for Python as users do, into an environment in a folder. */
export async function makePythonPrograms(folder: string): Promise<KitPrograms> {
  const out = join(ROOT, "dist/sdk");
  await run(process.execPath, [join(ROOT, "scripts/sdk/main.mjs"), "python"], { cwd: ROOT, timeout: LIMIT_MS });
  const wheel = (await readdir(out)).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw new Error(`no wheel found in ${out}`);
  await run("python3", ["-m", "venv", folder], { timeout: LIMIT_MS });
  const python = join(folder, "bin/python");
  await run(python, ["-m", "pip", "install", "--quiet", `${join(out, wheel)}[agent]`], { timeout: LIMIT_MS });
  return {
    conformance: [python, join(PYTHON, "tests/conformance_agent.py")],
    example: [python, join(PYTHON, "examples/agent.py")],
  };
}
