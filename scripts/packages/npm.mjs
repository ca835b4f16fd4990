// The package for npm: the bundled program, and Postgres for those platforms that have it, by its exact version.
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeTarGz } from "./archive.mjs";
import { ENGINES, POSTGRES_PACKAGES, WORKSPACE } from "./workspace.mjs";

/** Write the .tgz file that `npm install --global` takes, in a scratch folder `work`. */
export async function writeNpm(file, { program, version, info, timeS, work }) {
  await rm(work, { recursive: true, force: true });
  const folder = join(work, "package");
  await cp(program.folder, folder, { recursive: true });
  await cp(join(WORKSPACE, "README.md"), join(folder, "README.md"));
  const manifest = {
    name: "rollcall",
    version,
    description:
      "The control plane that answers, for any fleet of machines: who is here, who is well, who may take work.",
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
