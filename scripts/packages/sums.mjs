// Writes the digests of packages.
import { readdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { digestOf } from "./archive.mjs";

/**
 * Write SHA256SUMS with the digests of all files below a folder, except an earlier list and its signature. Returns
 * the number of files. sha256sum can check the list: `sha256sum --check SHA256SUMS`.
 */
export async function writeSums(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith("SHA256SUMS"))
    .sort();
  const lines = [];
  for (const name of names) lines.push(`${await digestOf(join(folder, name))}  ${name}\n`);
  await writeFile(join(folder, "SHA256SUMS"), lines.join(""));
  return names.length;
}
