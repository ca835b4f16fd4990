import { linkOf, type SitePage, sectionsOf, sourceOf } from "./pages.ts";

/** Weights of pages in the search, keyed by their kind in docs/README.md. Pages without a kind have the weight 1. */
const WEIGHTS: Readonly<Record<string, number>> = {
  Tutorials: 2,
  "How-to guides": 3,
  Explanation: 1.5,
  Reference: 1,
  Internals: 0.5,
};

/** The weight of each page that docs/README.md lists, keyed by its address within the site. */
export function searchWeights(overview: string, pages: readonly SitePage[]): Readonly<Record<string, number>> {
  const bySource = new Map(pages.map((page) => [page.source, page]));
  return Object.fromEntries(
    sectionsOf(overview).flatMap(({ kind, links }) =>
      links.flatMap(({ target }): [string, number][] => {
        const page = bySource.get(sourceOf(target));
        return page === undefined ? [] : [[linkOf(page), WEIGHTS[kind] ?? 1]];
      }),
    ),
  );
}
