import { posix } from "node:path";
import { linkOf, type SitePage, slugOf } from "./pages.ts";

/** Where the site has copies of the repository's files that pages link to. */
export const FILES = "/files/";

/** Link in a page's Markdown. */
export interface PageLink {
  /** As it is written, without its anchor. */
  readonly path: string;
  /** Without "#"; empty where there is none. */
  readonly anchor: string;
  /** The file or folder of the repository that it leads to; null for one to elsewhere. */
  readonly file: string | null;
}

/** Every link and picture of a page, code aside. */
export function linksIn(source: string, markdown: string): readonly PageLink[] {
  return [...withoutCode(markdown).matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)].map(([, href = ""]) =>
    parseLink(source, href),
  );
}

/** Understand a link of a page. */
export function parseLink(source: string, href: string): PageLink {
  const [path = "", anchor = ""] = href.split("#", 2);
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(href)) return { path: href, anchor: "", file: null };
  const file = path === "" ? source : posix.normalize(posix.join(posix.dirname(source), path)).replace(/\/$/, "");
  return { path, anchor, file };
}

/** The anchors of a page's headings, as repository browsers and the site make them. */
export function anchorsIn(markdown: string): ReadonlySet<string> {
  const counts = new Map<string, number>();
  const headings = [...withoutFences(markdown).matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, text = ""]) => text);
  return new Set(
    headings.map((heading) => {
      const slug = slugOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
      const count = counts.get(slug) ?? 0;
      counts.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

/** The address in the site of what a page links to; null for a link that stays as it is. */
export function siteLink(
  source: string,
  href: string,
  pages: ReadonlyMap<string, SitePage>,
): { readonly href: string; readonly isFile: boolean } | null {
  const { file, anchor } = parseLink(source, href);
  if (file === null || href.startsWith("#")) return null;
  // A folder is its overview, where it has one.
  const page = pages.get(file) ?? pages.get(`${file}/README.md`);
  const hash = anchor === "" ? "" : `#${anchor}`;
  return page === undefined
    ? { href: `${FILES}${file}`, isFile: true }
    : { href: `${linkOf(page)}${hash}`, isFile: false };
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^ *```[\s\S]*?^ *```/gm, "");
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replaceAll(/`[^`\n]*`/g, "");
}
