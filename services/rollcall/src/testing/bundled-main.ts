import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../bundle.mjs";

const WORKSPACE = fileURLToPath(new URL("../../../..", import.meta.url));
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/bundles", import.meta.url));
/** Age from which a bundle is deleted, in milliseconds. By then, its sources have changed. */
const KEPT_MS = 86_400_000;

/** Bundle the executable from the current sources. An existing bundle of the same sources is reused. */
export async function bundledMain(): Promise<string> {
  const folder = join(CACHE, await sourcesKey());
  const main = join(folder, "src/main.js");
  if (existsSync(main)) return main;
  await mkdir(CACHE, { recursive: true });
  await discardOld();
  const draft = join(CACHE, randomUUID());
  await bundle(draft);
  // Keep the bundle of a worker that was faster, because it is identical.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return main;
}

/** A digest of the names, sizes and modification times of the sources. */
async function sourcesKey(): Promise<string> {
  const digest = createHash("sha256");
  for (const parent of ["libs", "services"]) {
    for (const name of (await readdir(join(WORKSPACE, parent))).sort()) {
      const folder = join(WORKSPACE, parent, name, "src");
      if (!existsSync(folder)) continue;
      for (const file of (await readdir(folder, { recursive: true })).sort()) {
        if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
        const { size, mtimeMs } = await stat(join(folder, file));
        digest.update(`${parent}/${name}/${file} ${size} ${mtimeMs}\n`);
      }
    }
  }
  // Include the console's pages, because they are part of the bundle.
  for (const file of await pageSources()) digest.update(file);
  const others = [
    ...["pnpm-lock.yaml", "services/rollcall/bundle.mjs", "services/rollcall/bundle-cli.mjs"],
    "deploy/package/join.sh",
  ];
  for (const file of others) {
    const { size, mtimeMs } = await stat(join(WORKSPACE, file));
    digest.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return digest.digest("hex").slice(0, 32);
}

async function pageSources(): Promise<readonly string[]> {
  const folder = join(WORKSPACE, "services/console/web");
  if (!existsSync(folder)) return [];
  const names = (await readdir(folder, { recursive: true })).filter(
    (it) => !/(^|\/)(node_modules|dist|\.dist-)/.test(it),
  );
  const stats = await Promise.all(names.sort().map(async (name) => [name, await stat(join(folder, name))] as const));
  return stats.filter(([, it]) => it.isFile()).map(([name, { size, mtimeMs }]) => `${name} ${size} ${mtimeMs}\n`);
}

async function discardOld(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const folder = join(CACHE, name);
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > KEPT_MS) await rm(folder, { recursive: true, force: true });
  }
}
