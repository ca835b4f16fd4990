// Packages of npm whose contents go into ours as they are.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { integrityOf } from "./archive.mjs";
import { run } from "./run.mjs";

/**
 * Fetch a package from the registry that npm is configured for, unless the cache has it, and unpack it into a folder of
 * the cache. Its digest must be the one given. Answers the folder.
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
      throw new Error(`${name}@${version} is not what it should be: ${found} in place of ${integrity}`);
    }
    await run("tar", ["-xzf", tarball, "-C", draft]);
    // Another build may have been faster: what it has is the same.
    await rename(join(draft, "package"), folder).catch((error) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return folder;
}
