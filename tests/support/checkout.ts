import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundledMain } from "../../services/rollcall/src/testing/bundled-main.ts";
import { workspaceRoot } from "./workspace.ts";

const MAIN = await bundledMain();

/**
 * Create a folder where commands work as they do in a built checkout while `make run` runs. Returns
 * its path.
 */
export function layOutCheckout(dataDirectory: string): string {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-readme-"));
  symlinkSync(dataDirectory, join(folder, ".rollcall"));
  symlinkSync(join(workspaceRoot, "node_modules"), join(folder, "node_modules"));
  mkdirSync(join(folder, "bin"));
  const program = join(folder, "bin/rollcall");
  // Run the current sources, as all tests do, because the built program may be older or missing.
  writeFileSync(program, `#!/bin/sh\nunset NODE_OPTIONS\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(program, 0o755);
  return folder;
}
