// Finds the libraries that the Postgres package contains in addition to its own. The lists of contents name these
// libraries, and their licences are included.
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { integrityOf } from "./archive.mjs";
import { WORKSPACE } from "./workspace.mjs";

const POSTGRES_OWN = /^lib(pq|ecpg|ecpg_compat|pgtypes)\.so/;

/**
 * Name the libraries in an unpacked Postgres package, as components for the list of a package's contents. Throws if a
 * library is missing in deploy/package/postgres-libraries.json, because its licence would then be missing.
 */
export async function postgresLibraries(folder) {
  const known = JSON.parse(await readFile(join(WORKSPACE, "deploy/package/postgres-libraries.json"), "utf8"));
  const components = [];
  for (const file of (await readdir(join(folder, "native/lib"))).sort()) {
    const path = join(folder, "native/lib", file);
    const isLibrary = file.includes(".so") && (await lstat(path)).isFile();
    if (!isLibrary || POSTGRES_OWN.test(file)) continue;
    const library = known.find(({ files }) => files.includes(file));
    if (library === undefined) throw new Error(`the licence of ${file}, which is bundled with Postgres, is unknown`);
    const { files, ...described } = library;
    const purl = `pkg:generic/${library.name}@${library.version}#native/lib/${file}`;
    components.push({ ...described, purl, integrity: await integrityOf(path) });
  }
  return components;
}
