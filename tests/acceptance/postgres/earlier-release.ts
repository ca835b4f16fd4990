import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { workspaceRoot } from "../../support/workspace.ts";

const run = promisify(execFile);

/** An earlier program, bundled from its sources. */
export interface EarlierRelease {
  /** The file to run with Node.js. */
  readonly main: string;
  remove(): Promise<void>;
}

/**
 * Bundle the program of a commit in git's history. It uses the dependencies of this workspace, linked in the same
 * way.
 */
export async function buildEarlier(commit: string): Promise<EarlierRelease> {
  const root = await mkdtemp(join(tmpdir(), "rollcall-earlier-"));
  const archive = join(root, "sources.tar");
  await run("git", ["archive", "--output", archive, commit], { cwd: workspaceRoot });
  await run("tar", ["-xf", archive, "-C", root]);
  await rm(archive);
  await symlink(join(workspaceRoot, "node_modules"), join(root, "node_modules"));
  const packages = ["services/console/web"];
  for (const parent of ["libs", "services"]) {
    for (const name of await readdir(join(root, parent))) packages.push(join(parent, name));
  }
  for (const folder of packages) {
    const links = join(workspaceRoot, folder, "node_modules");
    if (!existsSync(links)) continue;
    const filter = (path: string) => !path.endsWith("/.cache");
    // In the copy, links to other packages of the workspace lead to the earlier packages.
    await cp(links, join(root, folder, "node_modules"), { recursive: true, verbatimSymlinks: true, filter });
  }
  const folder = join(root, "services/rollcall/earlier");
  await run(process.execPath, [join(root, "services/rollcall/bundle.mjs"), folder], { cwd: root });
  return {
    main: join(folder, "src/main.js"),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
