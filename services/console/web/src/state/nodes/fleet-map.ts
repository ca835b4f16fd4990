import type { Tone } from "../words.ts";
import type { NodeRow } from "./node-row.ts";

/** The states that a cell of the map can show, with the tone of each. */
export const CELLS = {
  unhealthy: "bad",
  unknown: "warn",
  "not approved": "busy",
  held: "muted",
  healthy: "good",
} as const satisfies Readonly<Record<string, Tone>>;

export type Cell = keyof typeof CELLS;

/** Nodes with the same value of a label. */
export interface MapGroup {
  /** The value of the label; null for nodes that do not have it. */
  readonly value: string | null;
  readonly rows: readonly NodeRow[];
  readonly counts: Readonly<Record<Cell, number>>;
}

/** What a node's cell shows: its most serious state. A held node is healthy, but gets no new work. */
export function cellOf(row: NodeRow): Cell {
  if (row.membership.word !== "APPROVED") return "not approved";
  if (row.status === "UNHEALTHY" || row.status === "DISCONNECTED") return "unhealthy";
  if (row.status === "UNKNOWN") return "unknown";
  return row.scheduling.word === "ELIGIBLE" ? "healthy" : "held";
}

/** Group nodes by a label, in the order of its values, and by id within each group. Nodes without it come last. */
export function mapGroups(rows: readonly NodeRow[], label: string): readonly MapGroup[] {
  const groups = new Map<string | null, NodeRow[]>();
  for (const row of rows) {
    const value = row.labels.get(label) ?? null;
    const group = groups.get(value);
    if (group === undefined) groups.set(value, [row]);
    else group.push(row);
  }
  const values = [...groups.keys()].sort((a, b) =>
    a === null ? 1 : b === null ? -1 : a.localeCompare(b, "en", { numeric: true }),
  );
  return values.map((value) => {
    const members = byId(groups.get(value) ?? []);
    const counts: Record<Cell, number> = { unhealthy: 0, unknown: 0, "not approved": 0, held: 0, healthy: 0 };
    for (const row of members) counts[cellOf(row)] += 1;
    return { value, rows: members, counts };
  });
}

/** Sort rows by id. Most views already are in that order, and comparing neighbours is cheaper than sorting. */
function byId(rows: NodeRow[]): readonly NodeRow[] {
  const isSorted = rows.every((row, at) => at === 0 || (rows[at - 1]?.id ?? "") <= row.id);
  return isSorted ? rows : rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The labels to group by: those that most nodes have, at most `most`. */
export function mapLabels(rows: readonly NodeRow[], most: number): readonly string[] {
  // Nodes with the same labels are counted together, because many nodes have the same ones.
  const same = new Map<string, { readonly labels: NodeRow["labels"]; count: number }>();
  for (const { labels, labelsText } of rows) {
    const one = same.get(labelsText);
    if (one === undefined) same.set(labelsText, { labels, count: 1 });
    else one.count += 1;
  }
  const counts = new Map<string, number>();
  for (const { labels, count } of same.values())
    for (const key of labels.keys()) counts.set(key, (counts.get(key) ?? 0) + count);
  return [...counts]
    .sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([key]) => key);
}
