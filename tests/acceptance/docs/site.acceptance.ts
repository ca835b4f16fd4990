import { execFile } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { linkOf, sitePages } from "../../../docs/.vitepress/site/pages.ts";
import { searchWeights } from "../../../docs/.vitepress/site/search-weights.ts";
import { weightOf } from "../../../docs/.vitepress/site/weight-of.ts";
import { workspaceRoot } from "../../support/workspace.ts";

const BUILD_LIMIT_MS = 600_000;
/** The part of MiniSearch that the test uses. */
interface Search {
  loadJSON(
    json: string,
    options: { readonly fields: readonly string[]; readonly storeFields: readonly string[] },
  ): {
    search(words: string, options: object & { boostDocument(id: unknown): number }): { readonly id: unknown }[];
  };
}

const SITE = join(workspaceRoot, "dist/docs");

describe("make docs", () => {
  let files: readonly string[];
  let MiniSearch: Search;

  // Build the site. The build also checks links, because VitePress fails on broken links.
  beforeAll(async () => {
    await promisify(execFile)("make", ["docs"], { cwd: workspaceRoot, timeout: BUILD_LIMIT_MS });
    files = readdirSync(SITE, { recursive: true, encoding: "utf8" });
    // Import the library of the site's search, which is a dependency of VitePress.
    const vitepress = realpathSync(join(workspaceRoot, "docs/.vitepress/node_modules/vitepress/package.json"));
    MiniSearch = createRequire(vitepress)("minisearch") as Search;
  }, BUILD_LIMIT_MS);

  const read = (path: string) => readFileSync(join(SITE, path), "utf8");
  const built = (ending: RegExp) => files.filter((path) => ending.test(path) && !path.startsWith("files/"));

  it("should make each page, with its title", () => {
    for (const page of sitePages()) {
      const path = linkOf(page).replace(/\/$/, "/index").slice(1);
      expect(files).toContain(`${path}.html`);
      expect(read(`${path}.html`)).toContain("<h1");
    }
  });

  it("should link only to its existing pages and files, and their headings", () => {
    const anchors = new Map(built(/\.html$/).map((path) => [path, anchorsOf(read(path))]));
    const dead = [...anchors.keys()].flatMap((path) => deadLinks(path, read(path), anchors));
    expect(dead).toEqual([]);
  });

  it("should load nothing from elsewhere, and let the browser refuse it", () => {
    for (const path of built(/\.html$/)) {
      const html = read(path);
      if (path !== "404.html") expect(html).toContain("default-src 'self'");
      expect(html.match(/<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)="(?:https?:)?\/\//g)).toBeNull();
    }
    for (const path of built(/\.css$/)) {
      expect(read(path).match(/@import|url\(["']?(?:https?:)?\/\//g)).toBeNull();
    }
  });

  it("should find how-to guides before the reference, and nothing of the changelog", async () => {
    const [index = "", ...others] = built(/localSearchIndexroot.*\.js$/);
    expect(others).toEqual([]);
    const { default: json } = (await import(join(SITE, index))) as { default: string };
    // Search in the same way as the site.
    const search = MiniSearch.loadJSON(json, { fields: ["title", "titles", "text"], storeFields: ["title", "titles"] });
    const weights = searchWeights(readFileSync(join(workspaceRoot, "docs/README.md"), "utf8"), sitePages());
    const find = (words: string) =>
      search
        .search(words, {
          ...{ fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } },
          boostDocument: (id) => weightOf(String(id), weights),
        })
        .map(({ id }) => String(id));
    for (const [words, page] of [
      ["drain", "/how-to/drain.html"],
      ["tls", "/how-to/tls.html"],
      ["approve", "/how-to/approve.html"],
      ["webhook", "/webhooks.html"],
    ] as const) {
      expect([words, find(words)[0]?.replace(/#.*/, "")]).toEqual([words, page]);
    }
    expect(find("kohakuriver").length).toBeGreaterThan(0);
    expect(find("released").filter((id) => id.includes("changelog"))).toEqual([]);
  });

  function deadLinks(path: string, html: string, anchors: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
    const links = [...html.matchAll(/<a\b[^>]*\bhref="(\/[^"/][^"]*|#[^"]+|\/)"/g)].map(([, href = ""]) => href);
    return links.flatMap((href) => {
      const [target = "", anchor = ""] = href.split("#", 2);
      const file = target === "" ? path : fileOf(decodeURIComponent(target));
      if (!files.includes(file)) return [`${path}: ${href}`];
      const isDead = anchor !== "" && anchors.get(file)?.has(decodeURIComponent(anchor)) === false;
      return isDead ? [`${path}: ${href}`] : [];
    });
  }

  function fileOf(target: string): string {
    const path = target.slice(1);
    if (path === "" || path.endsWith("/")) return `${path}index.html`;
    if (files.includes(`${path}/index.html`)) return `${path}/index.html`;
    return path.startsWith("files/") || /\.\w+$/.test(path) ? path : `${path}.html`;
  }
});

function anchorsOf(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(/\bid="([^"]+)"/g)].map(([, id = ""]) => id));
}
