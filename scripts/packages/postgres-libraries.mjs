// The libraries that the package of Postgres has besides its own: they are named in our lists, and their licences shipped.
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { integrityOf } from "./archive.mjs";
import { WORKSPACE } from "./workspace.mjs";

const POSTGRES_OWN = /^lib(pq|ecpg|ecpg_compat|pgtypes)\.so/;

/**
 * Name the libraries in a package of Postgres that was laid out in a folder, as components of the list of what is in a
 * package. Throws for one that is not in deploy/package/postgres-libraries.json, whose licence would be missing.
 */
export async function postgresLibraries(folder) {
  const known = JSON.parse(await readFile(join(WORKSPACE, "deploy/package/postgres-libraries.json"), "utf8"));
  const components = [];
  for (const file of (await readdir(join(folder, "native/lib"))).sort()) {
    const path = join(folder, "native/lib", file);
    const isLibrary = file.includes(".so") && (await lstat(path)).isFile();
    if (!isLibrary || POSTGRES_OWN.test(file)) continue;
    const library = known.find(({ files }) => files.includes(file));
    if (library === undefined) throw new Error(`the licence of ${file}, which Postgres brings along, is not known`);
    const { files, ...described } = library;
    const purl = `pkg:generic/${library.name}@${library.version}#native/lib/${file}`;
    components.push({ ...described, purl, integrity: await integrityOf(path) });
  }
  return components;
}
