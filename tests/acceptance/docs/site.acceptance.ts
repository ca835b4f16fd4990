import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { linkOf, sitePages } from "../../../docs/.vitepress/site/pages.ts";
import { workspaceRoot } from "../../support/workspace.ts";

const BUILD_LIMIT_MS = 600_000;
const SITE = join(workspaceRoot, "dist/docs");

describe("make docs", () => {
  let files: readonly string[];

  // VitePress fails on links that lead nowhere.
  beforeAll(async () => {
    await promisify(execFile)("make", ["docs"], { cwd: workspaceRoot, timeout: BUILD_LIMIT_MS });
    files = readdirSync(SITE, { recursive: true, encoding: "utf8" });
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

  it("should link to pages and files of its own that exist, with their headings", () => {
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

  it("should have an index for the search", () => {
    const index = built(/localSearchIndexroot.*\.js$/);
    expect(index).toHaveLength(1);
    expect(read(index[0] ?? "")).toContain("kohakuriver");
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
