import { matches, parseSelector } from "@rollcall/domain";
import type { NodeRow } from "./node-row.ts";

/** Which nodes a view shows. A node must match every set field; the values of one field are alternatives. */
export interface NodeFilter {
  /** A substring of the id, host name, labels or models, ignoring case. */
  readonly q: string;
  readonly type: readonly string[];
  readonly approval: readonly string[];
  readonly health: readonly string[];
  readonly connection: readonly string[];
  readonly scheduling: readonly string[];
  /** A label selector in Kubernetes' syntax. */
  readonly labels: string;
}

/** The fields that select states. */
export const STATE_FIELDS = ["type", "approval", "health", "connection", "scheduling"] as const;
export type StateField = (typeof STATE_FIELDS)[number];

/** The possible values of each state field. */
export const STATE_CHOICES: Readonly<Record<StateField, readonly string[]>> = {
  type: ["compute", "control-plane"],
  approval: ["PENDING", "APPROVED", "REJECTED"],
  health: ["HEALTHY", "UNHEALTHY", "UNKNOWN"],
  connection: ["CONNECTED", "DISCONNECTED"],
  scheduling: ["ELIGIBLE", "INELIGIBLE", "DRAINING", "DRAINED", "UNCONFIRMED"],
};

/** The default filter: machines only, without processes of the control plane. */
export const NO_FILTER: NodeFilter = {
  q: "",
  type: [],
  approval: [],
  health: [],
  connection: [],
  scheduling: [],
  labels: "",
};

/** Read a filter from search parameters. Unknown values are ignored, so that old links still show nodes. */
export function filterFromSearch(search: Readonly<Record<string, unknown>>): NodeFilter {
  const text = (value: unknown) => (typeof value === "string" ? value.slice(0, MOST_CHARACTERS) : "");
  const choice = (field: StateField) => {
    const words = text(search[field]).split(",");
    return STATE_CHOICES[field].filter((word) => words.some((one) => one.toUpperCase() === word.toUpperCase()));
  };
  return {
    q: text(search.q),
    type: choice("type"),
    approval: choice("approval"),
    health: choice("health"),
    connection: choice("connection"),
    scheduling: choice("scheduling"),
    labels: text(search.labels),
  };
}

const MOST_CHARACTERS = 4096;

/** The search parameters of a filter; unset fields are undefined. */
export function filterToSearch(filter: NodeFilter): Readonly<Record<string, string | undefined>> {
  const list = (words: readonly string[]) => (words.length === 0 ? undefined : words.join(",").toLowerCase());
  return {
    q: filter.q === "" ? undefined : filter.q,
    ...Object.fromEntries(STATE_FIELDS.map((field) => [field, list(filter[field])])),
    labels: filter.labels === "" ? undefined : filter.labels,
  };
}

/** A compiled filter, or the error in its selector. */
export type NodeTest =
  | { readonly ok: true; readonly test: (row: NodeRow) => boolean }
  | { readonly ok: false; readonly message: string };

/** Compile a filter. Without a choice of types, only machines match. */
export function nodeTest(filter: NodeFilter): NodeTest {
  const parsed = parseSelector(filter.labels);
  if (!parsed.ok) return { ok: false, message: parsed.message };
  const { selector } = parsed;
  const types = filter.type.length === 0 ? ["compute"] : filter.type;
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean).map(contains);
  const passes = (chosen: readonly string[], word: string) => chosen.length === 0 || chosen.includes(word);
  const test = (row: NodeRow) =>
    types.includes(row.type) &&
    passes(filter.approval, row.membership.word) &&
    passes(filter.health, row.health.word) &&
    passes(filter.connection, row.connection.word) &&
    passes(filter.scheduling, row.scheduling.word) &&
    (selector.length === 0 || matches(selector, row.labels)) &&
    words.every((isIn) => isIn(row));
  return { ok: true, test };
}

/** Whether the filter differs from the default. */
export function isFiltered(filter: NodeFilter): boolean {
  return filter.q !== "" || filter.labels !== "" || STATE_FIELDS.some((field) => filter[field].length > 0);
}

/** Maximum number of texts to remember the result for. */
const MOST_REMEMBERED = 1_000;

/** Create a test for whether a row contains a word. Texts that many rows share are searched once. */
function contains(word: string): (row: NodeRow) => boolean {
  const known = new Map<string, boolean>();
  const has = (text: string) => text.toLowerCase().includes(word);
  const hasShared = (text: string) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const found = has(text);
    if (known.size < MOST_REMEMBERED) known.set(text, found);
    return found;
  };
  return (row) =>
    has(row.id) ||
    has(row.hostname) ||
    hasShared(row.labelsText) ||
    hasShared(row.gpuModels) ||
    hasShared(row.cpuModel);
}
