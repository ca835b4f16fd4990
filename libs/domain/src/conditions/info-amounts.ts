import { isJsonObject, type Json, type JsonObject } from "../events/events.ts";

/**
 * Fluctuating amounts of a machine, keyed by name: "memory", "disk", and "numa 0" for the memory of a NUMA node.
 */
export type Amounts = ReadonlyMap<string, number>;

/**
 * How a report differs from the previous one: in "facts", which change only when someone changes them, or only in
 * amounts. A small difference in amounts is "jitter", a larger one "amounts".
 */
export type ReportChange = "none" | "facts" | "jitter" | "amounts";

/**
 * Time after a change to amounts during which further changes are not reported, in milliseconds. A balloon driver
 * may take and return memory every minute.
 */
export const AMOUNTS_REST_MS = 600_000;

/**
 * Fraction by which an amount can change and still count as unchanged. Kernels, firmware and file systems take
 * slightly more or less over time.
 */
export const AMOUNT_TOLERANCE = 0.02;
/**
 * Fraction by which the memory of one NUMA node can change and still count as unchanged. A balloon driver can take
 * memory from any NUMA node, and scheduling and hardware conditions use only the sum.
 */
const NUMA_TOLERANCE = 0.1;

/**
 * Whether amounts are equal except for normal fluctuation. An amount that appears or disappears is not fluctuation.
 */
export function isJitter(kept: Amounts, read: Amounts): boolean {
  if (!isOfSameNames(kept, read)) return false;
  return [...read].every(([name, amount]) => {
    const before = kept.get(name) ?? 0;
    return amount === before || Math.abs(amount - before) <= before * toleranceOf(name);
  });
}

/** Compare two reports, each a NodeInfo as protobuf JSON. */
export function changeOfReport(before: Json, after: Json): ReportChange {
  if (!isSame(withoutAmounts(before), withoutAmounts(after))) return "facts";
  const [kept, read] = [amountsIn(before), amountsIn(after)];
  if (!isOfSameNames(kept, read)) return "facts";
  if ([...read].every(([name, amount]) => kept.get(name) === amount)) return "none";
  return isJitter(kept, read) ? "jitter" : "amounts";
}

/**
 * Keeps an agent's reported amounts stable: small changes are not reported, larger ones at most every ten minutes.
 */
export class SteadyAmounts {
  #kept: Amounts | undefined;
  #movedAtMs: number | undefined;

  /** Return the amounts to report instead of the amounts read. `nowMs` is monotonic. */
  take(read: Amounts, nowMs: number): Amounts {
    const kept = this.#kept;
    if (kept === undefined || !isOfSameNames(kept, read)) {
      this.#kept = read;
      return read;
    }
    if (isJitter(kept, read)) return kept;
    const isSoon = this.#movedAtMs !== undefined && nowMs - this.#movedAtMs < AMOUNTS_REST_MS;
    if (isSoon) return kept;
    this.#kept = read;
    this.#movedAtMs = nowMs;
    return read;
  }
}

function toleranceOf(name: string): number {
  return name.startsWith("numa ") ? NUMA_TOLERANCE : AMOUNT_TOLERANCE;
}

function isOfSameNames(left: Amounts, right: Amounts): boolean {
  return left.size === right.size && [...left.keys()].every((name) => right.has(name));
}

/** Omit unknown amounts, like protobuf JSON, so that an amount that appears or disappears is a change. */
function amountsIn(info: Json): Amounts {
  if (!isJsonObject(info)) return new Map();
  const numa = numaNodesIn(info).map(({ id, memoryBytes }) => [`numa ${String(id ?? 0)}`, memoryBytes] as const);
  const all = [["memory", info.memoryBytes], ["disk", info.diskBytes], ...numa] as const;
  return new Map(all.flatMap(([name, amount]) => (amount === undefined ? [] : [[name, Number(amount)]])));
}

function withoutAmounts(info: Json): Json {
  if (!isJsonObject(info)) return info;
  const { memoryBytes: _, diskBytes: __, ...rest } = info;
  if (rest.numaNodes === undefined) return rest;
  const numaNodes = numaNodesIn(info).map(({ memoryBytes: ___, ...node }) => node);
  return { ...rest, numaNodes };
}

function numaNodesIn({ numaNodes }: JsonObject): readonly JsonObject[] {
  return Array.isArray(numaNodes) ? numaNodes.filter(isJsonObject) : [];
}

/** Compare regardless of the order of keys: the store returns them in its own order. */
function isSame(left: Json, right: Json): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((it, at) => isSame(it, right[at] ?? null));
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return left === right;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isSame(left[key] ?? null, right[key] ?? null))
  );
}
