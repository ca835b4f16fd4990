// Bundles the program of a package, without Node.js. npm installs this bundle, and the other packages are made from
// it.
import { chmod, copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bundle } from "../../services/rollcall/bundle.mjs";
import { bundledPackages, noticesOf } from "./bundled-packages.mjs";
import { WORKSPACE } from "./workspace.mjs";

/** The kinds of packages: one with everything, and one with only the agent and the command line. */
export const KINDS = {
  rollcall: {
    program: "main",
    summary: "Control plane for fleets of machines: membership, health and work",
    hasPostgres: true,
  },
  "rollcall-agent": {
    program: "agent-main",
    summary: "Agent and command line of Rollcall, the control plane for fleets of machines",
    hasPostgres: false,
  },
};

/**
 * Bundle the program of a kind into a folder. A kind always has the same folder, because the names of chunks and the
 * paths in source maps depend on the folder. Returns the folder and the packages in the bundle.
 */
export async function buildProgram(kind, { stage, info }) {
  const folder = join(stage, kind);
  await rm(folder, { recursive: true, force: true });
  const { inputs } = await bundle(folder, { program: KINDS[kind].program, info });
  await mkdir(join(folder, "bin"));
  await copyFile(join(WORKSPACE, "deploy/package/rollcall.cjs"), join(folder, "bin/rollcall.cjs"));
  await chmod(join(folder, "bin/rollcall.cjs"), 0o755);
  const packages = await bundledPackages(inputs);
  await writeFile(join(folder, "NOTICES.txt"), await noticesOf(packages));
  await copyFile(join(WORKSPACE, "LICENSE"), join(folder, "LICENSE"));
  return { folder, packages };
}
