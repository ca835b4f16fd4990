import { posix } from "node:path";
import { linkOf, type SitePage, slugOf } from "./pages.ts";

/** The folder of the site with copies of linked files of the repository. */
export const FILES = "/files/";

/** A link in a page's Markdown. */
export interface PageLink {
  /** The link as written, without its anchor. */
  readonly path: string;
  /** The anchor without "#"; empty if the link has none. */
  readonly anchor: string;
  /** The linked file or folder of the repository; null for external links. */
  readonly file: string | null;
}

/** Find the links and pictures of a page. Links in code are ignored. */
export function linksIn(source: string, markdown: string): readonly PageLink[] {
  return [...withoutCode(markdown).matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)].map(([, href = ""]) =>
    parseLink(source, href),
  );
}

export function parseLink(source: string, href: string): PageLink {
  const [path = "", anchor = ""] = href.split("#", 2);
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(href)) return { path: href, anchor: "", file: null };
  const file = path === "" ? source : posix.normalize(posix.join(posix.dirname(source), path)).replace(/\/$/, "");
  return { path, anchor, file };
}

/** The anchors of a page's headings, as repository browsers and the site generate them. */
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

/** The address within the site for a link of a page; null if the link stays unchanged. */
export function siteLink(
  source: string,
  href: string,
  pages: ReadonlyMap<string, SitePage>,
): { readonly href: string; readonly isFile: boolean } | null {
  const { file, anchor } = parseLink(source, href);
  if (file === null || href.startsWith("#")) return null;
  // A link to a folder leads to the folder's README.md, if it has one.
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
