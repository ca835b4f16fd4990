import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundledMain } from "../../services/rollcall/src/testing/bundled-main.ts";
import { workspaceRoot } from "./workspace.ts";

const MAIN = await bundledMain();

/** A folder in which commands work as in a checkout that was built and in which `make run` runs. */
export function layOutCheckout(dataDirectory: string): string {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-readme-"));
  symlinkSync(dataDirectory, join(folder, ".rollcall"));
  symlinkSync(join(workspaceRoot, "node_modules"), join(folder, "node_modules"));
  mkdirSync(join(folder, "bin"));
  const program = join(folder, "bin/rollcall");
  // Of the present sources, like all tests: the built program may be older, or not be there.
  writeFileSync(program, `#!/bin/sh\nunset NODE_OPTIONS\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(program, 0o755);
  return folder;
}
