// Fetches npm packages whose contents are copied into Rollcall's packages.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { integrityOf } from "./archive.mjs";
import { run } from "./run.mjs";

/**
 * Fetch a package from the registry that npm is configured with, and unpack it into a folder of the cache. Does
 * nothing if the package is cached. The package must have the given digest. Returns the folder.
 */
export async function fetchPackage({ name, version, integrity }, cache) {
  const folder = join(cache, `${name.replace("/", "-")}-${version}`);
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const draft = await mkdtemp(join(cache, "draft-"));
  try {
    const words = ["pack", `${name}@${version}`, "--pack-destination", draft, "--json", "--ignore-scripts"];
    const [{ filename }] = JSON.parse(await run("npm", words, { cwd: draft }));
    const tarball = join(draft, filename.replace("@", "").replace("/", "-"));
    const found = await integrityOf(tarball);
    if (found !== integrity) {
      throw new Error(`${name}@${version} is corrupt: its digest is ${found} instead of ${integrity}`);
    }
    await run("tar", ["-xzf", tarball, "-C", draft]);
    // Ignore an existing folder. Another build may have fetched the package first, and the contents are the
    // same.
    await rename(join(draft, "package"), folder).catch((error) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return folder;
}
