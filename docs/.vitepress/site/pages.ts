import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole repository. */
export const repositoryRoot = fileURLToPath(new URL("../../..", import.meta.url));

/** A page of the repository that the site shows. */
export interface SitePage {
  /** The page's file in the repository, for example "docs/concepts.md". */
  readonly source: string;
  /** The page's file in the site, for example "concepts.md". */
  readonly target: string;
  /** The first heading of the page. */
  readonly title: string;
}

/** Pages outside docs/, with their files in the site. The READMEs of SDKs are found automatically. */
const OTHERS: Readonly<Record<string, string>> = {
  "README.md": "project/readme.md",
  "ARCHITECTURE.md": "project/architecture.md",
  "CONTRIBUTING.md": "project/contributing.md",
  "CHANGELOG.md": "project/changelog.md",
  "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
  "RELEASING.md": "project/releasing.md",
  "SECURITY.md": "project/security-policy.md",
  "bench/README.md": "project/benchmarks.md",
};

/** All pages of the site, sorted by source. */
export function sitePages(root = repositoryRoot): readonly SitePage[] {
  const docs = filesBelow(root, "docs")
    .map((path) => path.slice("docs/".length))
    .filter((path) => path.endsWith(".md"))
    .map((path): [string, string] => [`docs/${path}`, path.replace(/(^|\/)README\.md$/, "$1index.md")]);
  const sdks = readdirSync(join(root, "sdk"))
    .filter((name) => existsSync(join(root, "sdk", name, "README.md")))
    .map((name): [string, string] => [`sdk/${name}/README.md`, `sdk/${name}.md`]);
  return [...docs, ...sdks, ...Object.entries(OTHERS)]
    .map(([source, target]) => ({ source, target, title: titleOf(readFileSync(join(root, source), "utf8"), source) }))
    .sort((one, other) => (one.source < other.source ? -1 : 1));
}

export interface SideBarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: SideBarItem[];
}

const DECISIONS = "docs/decisions/";
const API = "docs/reference/api/";
/** Pages about the repository itself. The side bar omits them, because other pages link to them. */
const UNLISTED = ["docs/checklists/", "docs/README.md"];

/**
 * Create the side bar: the kinds and pages that docs/README.md lists, in the same order. Decisions and pages of the API
 * appear below their index. All other pages come last, so that each page is reachable.
 */
export function sideBar(overview: string, pages: readonly SitePage[]): SideBarItem[] {
  const bySource = new Map(pages.map((page) => [page.source, page]));
  const listed = new Set<string>();
  const itemOf = (page: SitePage, text = page.title): SideBarItem => {
    listed.add(page.source);
    return { text, link: linkOf(page) };
  };
  const below = (folder: string) => pages.filter(({ source }) => source.startsWith(folder));
  const groups = sectionsOf(overview).map(({ kind, links }): SideBarItem => {
    const items = links.flatMap(({ text, target }): SideBarItem[] => {
      const page = bySource.get(sourceOf(target));
      if (page === undefined) return [];
      const folder = [DECISIONS, API].find((one) => page.source === `${one}README.md`);
      if (folder === undefined) return [itemOf(page, text)];
      const own = itemOf(page, text);
      return [
        {
          ...own,
          collapsed: true,
          items: below(folder)
            .filter((one) => one !== page)
            .map((one) => itemOf(one)),
        },
      ];
    });
    return { text: kind, collapsed: false, items };
  });
  const rest = pages.filter(({ source }) => !listed.has(source) && !UNLISTED.some((one) => source.startsWith(one)));
  return rest.length === 0
    ? groups
    : [...groups, { text: "Further pages", collapsed: false, items: rest.map((one) => itemOf(one)) }];
}

/** The address of a page within the site. */
export function linkOf({ target }: SitePage): string {
  return `/${target.replace(/\.md$/, "").replace(/(^|\/)index$/, "$1")}`;
}

/** Convert a heading to its anchor, in the same way as repository browsers. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .trim()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

/** Find the files below a folder. Hidden folders are skipped, because they contain the packages of the site itself. */
function filesBelow(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith("."))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(root, path) : [path];
    });
}

function titleOf(text: string, source: string): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? source;
}

/** Resolve a link of docs/README.md to the source of a page. */
export function sourceOf(target: string): string {
  return posix.normalize(posix.join("docs", target));
}

/** Parse the sections of docs/README.md. Each has a kind of pages as its heading, and a list of links. */
export function sectionsOf(overview: string) {
  return overview
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      kind: section.split("\n")[0] ?? "",
      links: [...section.matchAll(/^- \[([^\]]+)\]\(([^)#]+)\)/gm)].map(([, text = "", target = ""]) => ({
        text,
        target,
      })),
    }));
}
