// Makes the wheel for Python from sdk/python and from files generated from the schema.
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { SERVICES_FILE } from "./services.mjs";

const SOURCE = join(WORKSPACE, "sdk/python");
const CACHE = join(WORKSPACE, "node_modules/.cache/rollcall-sdk");
const TOOLS = join(CACHE, "python-tools");
const STAGE = join(CACHE, "python");

/** Make the wheel. Returns its path. */
export async function makePython({ schema, out, check }) {
  const python = await installTools();
  await rm(STAGE, { recursive: true, force: true });
  await cp(SOURCE, STAGE, { recursive: true });
  await run(python, [join(STAGE, "generate.py"), schema, SERVICES_FILE, join(STAGE, "src")]);
  if (check) {
    await run(python, ["-m", "ruff", "check", "."], { cwd: SOURCE });
    await run(python, ["-m", "ruff", "format", "--check", "."], { cwd: SOURCE });
    await run(python, ["-m", "mypy", "-p", "rollcall"], { cwd: STAGE, env: { MYPYPATH: join(STAGE, "src") } });
  }
  await mkdir(out, { recursive: true });
  await run(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", out, STAGE]);
  const wheel = (await readdir(out)).find((name) => name.endsWith(".whl"));
  return join(out, wheel);
}

/** Install the generator and the checkers at the versions that sdk/python names. Returns the path of their Python. */
async function installTools() {
  const python = join(TOOLS, "bin/python");
  await run("python3", ["-m", "venv", TOOLS]);
  await run(python, ["-m", "pip", "install", "--quiet", "--requirement", join(SOURCE, "requirements-build.txt")]);
  return python;
}
