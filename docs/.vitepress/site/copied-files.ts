import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FILES, linksIn } from "./links.ts";
import type { SitePage } from "./pages.ts";

/** The files and folders of the repository that pages link to, except pages and pictures. */
export function linkedFiles(root: string, pages: readonly SitePage[]): readonly string[] {
  const known = new Set(pages.flatMap(({ source }) => [source, source.replace(/\/README\.md$/, "")]));
  const files = pages.flatMap(({ source }) =>
    linksIn(source, readFileSync(join(root, source), "utf8")).flatMap(({ file }) => file ?? []),
  );
  return [...new Set(files)]
    .filter((file) => !known.has(file) && !/\.(svg|png)$/.test(file) && existsSync(join(root, file)))
    .sort();
}

/**
 * Copy the linked files into the site, so that all links work within it. A folder gets a page that lists its contents.
 */
export function copyLinkedFiles(root: string, pages: readonly SitePage[], site: string): void {
  for (const file of linkedFiles(root, pages)) {
    const [from, to] = [join(root, file), join(site, FILES, file)];
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true });
    if (statSync(from).isDirectory()) listFolders(to, file);
  }
}

function listFolders(folder: string, name: string): void {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  const items = entries.map((entry) => {
    const path = entry.isDirectory() ? `${entry.name}/index.html` : entry.name;
    return `<li><a href="${path}">${entry.name}</a></li>`;
  });
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${name}</title>`;
  writeFileSync(join(folder, "index.html"), `${head}<h1>${name}</h1><ul>${items.join("")}</ul></html>\n`);
  for (const entry of entries) if (entry.isDirectory()) listFolders(join(folder, entry.name), `${name}/${entry.name}`);
}
