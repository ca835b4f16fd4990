/** A named view of nodes: the query of its address. */
export interface SavedView {
  readonly name: string;
  readonly query: string;
}

/** Parse the views that the browser stores; invalid ones are skipped. */
export function parseViews(text: string | null): readonly SavedView[] {
  if (text === null) return [];
  try {
    const values: unknown = JSON.parse(text);
    return Array.isArray(values) ? values.filter(isView) : [];
  } catch {
    // Return no views, because this page did not write the stored text.
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const view = value as Partial<SavedView> | null;
  return typeof view === "object" && typeof view?.name === "string" && typeof view.query === "string";
}
