// Fetches libatomic from Debian. Node's executable needs this library, many machines lack it, and no npm package
// contains it.
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { integrityOf } from "./archive.mjs";
import { run } from "./run.mjs";
import { PLATFORMS, WORKSPACE } from "./workspace.mjs";

const LIBRARY = "libatomic.so.1";
const LICENCE = "LICENSE.libatomic";
const COMPONENT = "component.json";

/**
 * Download the library and its licence for a platform with Debian's tools, unless they are cached. Returns their paths,
 * and the component for the list of the package's contents.
 */
export async function fetchLibatomic(platform, cache) {
  const folder = join(cache, `libatomic-${platform}`);
  if (!existsSync(folder)) await fetchInto(folder, platform, cache);
  const component = JSON.parse(await readFile(join(folder, COMPONENT), "utf8"));
  return { library: join(folder, LIBRARY), licence: join(folder, LICENCE), component };
}

async function fetchInto(folder, platform, cache) {
  const architecture = PLATFORMS[platform];
  await mkdir(cache, { recursive: true });
  const draft = await mkdtemp(join(cache, "draft-"));
  try {
    const debs = join(draft, "debs");
    await run(join(WORKSPACE, "deploy/debian/fetch.sh"), [architecture, debs, "libatomic1"]);
    const names = await readdir(debs);
    for (const name of names) await run("dpkg-deb", ["--extract", join(debs, name), join(draft, "files")]);
    const found = await readdir(join(draft, "files"), { recursive: true });
    // Search for the library, because the name of its directory depends on the architecture.
    const [library, licence] = [/\/libatomic\.so\.1$/, /\/gcc-\d+-base\/copyright$/].map((pattern) => {
      const path = found.find((one) => pattern.test(one));
      if (path === undefined) throw new Error(`${names.join(", ")} have no ${pattern.source}`);
      return join(draft, "files", path);
    });
    const deb = join(
      debs,
      names.find((name) => name.startsWith("libatomic1_")),
    );
    const version = String(await run("dpkg-deb", ["--field", deb, "Version"])).trim();
    const laidOut = join(draft, "laid-out");
    await mkdir(laidOut);
    await copyFile(library, join(laidOut, LIBRARY));
    await copyFile(licence, join(laidOut, LICENCE));
    const component = {
      name: "libatomic1",
      version,
      license: "GPL-3.0-or-later WITH GCC-exception-3.1",
      integrity: await integrityOf(deb),
      purl: `pkg:deb/debian/libatomic1@${encodeURIComponent(version)}?arch=${architecture}`,
    };
    await writeFile(join(laidOut, COMPONENT), JSON.stringify(component));
    // Ignore an existing folder, because another build may have fetched the library first.
    await rename(laidOut, folder).catch((error) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
