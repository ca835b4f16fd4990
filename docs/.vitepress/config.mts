import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { copyLinkedFiles } from "./site/copied-files.ts";
import { parseLink, siteLink } from "./site/links.ts";
import { repositoryRoot, sideBar, sitePages, slugOf } from "./site/pages.ts";

const pages = sitePages();
const bySource = new Map(pages.map((page) => [page.source, page]));
const folders = readdirSync(repositoryRoot, { withFileTypes: true }).filter((entry) => entry.isDirectory());

/** The path below which the site is served. */
const base = process.env.BASE || "/";

/** Nothing may be loaded from elsewhere: browsers refuse what this does not name. */
const POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

export default defineConfig({
  title: "Rollcall",
  description:
    "The control plane that answers, for any fleet of machines: who is here, who is well, who may take work.",
  lang: "en",
  base,
  // Pages stay where repository browsers show them; the whole repository is the source, and all else is left out.
  srcDir: "..",
  srcExclude: [
    ...folders.filter(({ name }) => !["docs", "sdk", "bench"].includes(name)).map(({ name }) => `${name}/**`),
    "docs/.vitepress/**",
    "bench/*/**",
    "sdk/*/*/**",
    "sdk/*.md",
  ],
  rewrites: Object.fromEntries(pages.map(({ source, target }) => [source, target])),
  outDir: "../dist/docs",
  cacheDir: "../node_modules/.cache/vitepress",
  head: [["meta", { "http-equiv": "Content-Security-Policy", content: POLICY }]],
  markdown: {
    // Pages are Markdown alone, as repository browsers take it: no HTML, and no templates of Vue's.
    html: false,
    anchor: { slugify: slugOf },
    config: (md) => {
      md.core.ruler.after("normalize", "comments", (state) => {
        state.src = state.src.replaceAll(/^<!--[\s\S]*?-->$/gm, "");
      });
      md.renderer.rules.text = (tokens, at) =>
        md.utils.escapeHtml(tokens[at]?.content ?? "").replaceAll("{{", "&#123;&#123;");
      md.core.ruler.push("repository-links", ({ tokens, env }) => {
        const source = (env.realPath ?? env.path).slice(repositoryRoot.length).replaceAll("\\", "/");
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          if (token.type !== "link_open") continue;
          const href = String(token.attrGet("href"));
          const { file } = parseLink(source, href);
          const found = siteLink(source, href, bySource);
          // VitePress reports what leads nowhere.
          if (found === null || file === null || !existsSync(join(repositoryRoot, file))) continue;
          if (found.isFile) {
            // Else VitePress takes it for a page, by its name.
            const end = statSync(join(repositoryRoot, file)).isDirectory() ? "/" : "";
            token.attrSet("target", "_self");
            token.attrSet("href", `${base.replace(/\/$/, "")}${found.href}${end}`);
          } else {
            token.attrSet("href", found.href);
          }
        }
      });
    },
  },
  themeConfig: {
    sidebar: sideBar(readFileSync(join(repositoryRoot, "docs/README.md"), "utf8"), pages),
    outline: { level: [2, 3] },
    search: { provider: "local" },
  },
  buildEnd: ({ outDir }) => copyLinkedFiles(repositoryRoot, pages, outDir),
});
