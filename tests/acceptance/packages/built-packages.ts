import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { workspaceRoot } from "../../support/workspace.ts";

const MAIN = join(workspaceRoot, "scripts/packages/main.mjs");
const LIMIT_MS = 900_000;

/** Packages built from this checkout. */
export interface BuiltPackages {
  readonly folder: string;
  /** The version of all packages. */
  readonly version: string;
  /** The lines of SHA256SUMS. */
  readonly sums: readonly string[];
  /** Return the path of a package's file. `VERSION` in the name is replaced by the version. */
  path(name: string): string;
  dispose(): void;
}

/**
 * Build packages in a separate shell as `make dist` does. `platform` selects the platforms of packages (default: all),
 * and `images` those of images.
 */
export async function buildPackages({ platform = "", images = "none", before = "" } = {}): Promise<BuiltPackages> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-packages-"));
  const own = platform === "" ? [] : ["--platform", platform];
  const words = ["--out", join(folder, "out"), "--images", images, ...own];
  await promisify(execFile)("sh", ["-ec", `${before}\nexec "$@"`, "sh", process.execPath, MAIN, ...words], {
    timeout: LIMIT_MS,
  });
  const { version } = JSON.parse(readFileSync(join(workspaceRoot, "services/rollcall/package.json"), "utf8"));
  const out = join(folder, "out");
  return {
    folder: out,
    version,
    sums: readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split("\n"),
    path: (name) => join(out, name.replace("VERSION", version)),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
}
