import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { copyLinkedFiles } from "./site/copied-files.ts";
import { editPattern } from "./site/edit-link.ts";
import { parseLink, siteLink } from "./site/links.ts";
import { repositoryRoot, sideBar, sitePages, slugOf } from "./site/pages.ts";
import { searchWeights } from "./site/search-weights.ts";

const pages = sitePages();
const bySource = new Map(pages.map((page) => [page.source, page]));
const overview = readFileSync(join(repositoryRoot, "docs/README.md"), "utf8");
const icon = readFileSync(join(repositoryRoot, "services/console/web/src/icon.svg")).toString("base64");
const logo = `data:image/svg+xml;base64,${icon}`;
const edit = editPattern(process.env.REPOSITORY || originOf(repositoryRoot));
const folders = readdirSync(repositoryRoot, { withFileTypes: true }).filter((entry) => entry.isDirectory());

/** The path below which the site is served. */
const base = process.env.BASE || "/";

/** Browsers load nothing from other origins. */
const POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

export default defineConfig({
  title: "Rollcall",
  description:
    "A control plane for fleets of machines: it knows which are connected, which are healthy and which can take work.",
  lang: "en",
  base,
  // The whole repository is the source, so that pages stay where repository browsers show them. Exclude the rest.
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
  head: [
    ["meta", { "http-equiv": "Content-Security-Policy", content: POLICY }],
    ["link", { rel: "icon", href: logo, type: "image/svg+xml" }],
  ],
  markdown: {
    // Pages are plain Markdown, as repository browsers show it: no HTML, and no Vue templates.
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
          // VitePress reports broken links.
          if (found === null || file === null || !existsSync(join(repositoryRoot, file))) continue;
          if (found.isFile) {
            // Otherwise VitePress treats it as a page, because of its name.
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
    logo: { src: logo, alt: "" },
    sidebar: sideBar(overview, pages),
    outline: { level: [2, 3] },
    ...(edit === null ? {} : { editLink: { pattern: edit, text: "Edit this page" } }),
    // Read by theme/index.ts.
    searchWeights: searchWeights(overview, pages),
    search: {
      provider: "local",
      options: {
        // What changed long ago answers no question.
        _render: (source, env, md) => (/(?:^|\/)changelog\.md$/i.test(env.relativePath) ? "" : md.render(source, env)),
      },
    },
  },
  buildEnd: ({ outDir }) => copyLinkedFiles(repositoryRoot, pages, outDir),
});

/** The address of the remote that the repository was cloned from; "" for none. */
function originOf(folder: string): string {
  try {
    return execFileSync("git", ["-C", folder, "remote", "get-url", "origin"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}
