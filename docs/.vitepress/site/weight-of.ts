/**
 * The weight of a search result, which is a section of a page: the weight of the page or, if it has none, of the
 * nearest folder above it with a weight. 1 if there is none.
 * @param id The section's address, such as "/base/how-to/drain.html#labels".
 */
export function weightOf(id: string, weights: Readonly<Record<string, number>>, base = "/"): number {
  let path = `/${id.slice(base.length)}`.replace(/#.*$/, "").replace(/(?:index)?\.html$/, "");
  while (path !== "") {
    const weight = weights[path];
    if (weight !== undefined) return weight;
    path = path.slice(0, path.lastIndexOf("/", path.length - 2) + 1);
    if (path === "/") return 1;
  }
  return 1;
}
