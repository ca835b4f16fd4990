/** A view of nodes by name: the query of its address. */
export interface SavedView {
  readonly name: string;
  readonly query: string;
}

/** Read the views that a browser keeps; what is not one is left out. */
export function parseViews(text: string | null): readonly SavedView[] {
  if (text === null) return [];
  try {
    const values: unknown = JSON.parse(text);
    return Array.isArray(values) ? values.filter(isView) : [];
  } catch {
    // Something else wrote there: there are no views then.
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const view = value as Partial<SavedView> | null;
  return typeof view === "object" && typeof view?.name === "string" && typeof view.query === "string";
}
