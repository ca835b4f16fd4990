// Writes the pages of docs/ that are generated from sources. tests/docs/reference.test.ts compares them.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { API_FOLDER, generatedPages } from "./generated-pages.ts";

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const pages = await generatedPages();
// Remove the pages of packages that no longer exist.
rmSync(at(API_FOLDER), { recursive: true, force: true });
for (const [path, text] of pages) {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
}
