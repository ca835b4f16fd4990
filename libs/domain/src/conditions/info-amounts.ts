import { isJsonObject, type Json, type JsonObject } from "../events/events.ts";

/**
 * Amounts of a machine that move by themselves, by name: "memory", "disk", and "numa 0" for the memory of a NUMA node.
 */
export type Amounts = ReadonlyMap<string, number>;

/**
 * How a report differs from the one before: not at all, in what stays the same until it is changed, or in amounts
 * alone, by little or by more.
 */
export type ReportChange = "none" | "facts" | "jitter" | "amounts";

/**
 * For so long after one change of amounts no further one is reported: a balloon may take and give back memory each
 * minute.
 */
export const AMOUNTS_REST_MS = 600_000;

/** Kernels, firmware and file systems take a little more or less of it from time to time. */
export const AMOUNT_TOLERANCE = 0.02;
/** A balloon takes memory where it finds it. The sum is what work and hardware conditions look at. */
const NUMA_TOLERANCE = 0.1;

/** Whether amounts are the same but for what moves by itself. Something that came or went is a change. */
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
 * Holds the amounts that an agent reports still: small changes are not reported, larger ones at most every ten
 * minutes.
 */
export class SteadyAmounts {
  #kept: Amounts | undefined;
  #movedAtMs: number | undefined;

  /** The amounts to report now that these were read. `nowMs` is monotonic. */
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

/** 0 is left out in protobuf JSON, and so here: a size that appears or disappears is a change. */
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

/** Keys may come in any order: the record sorts them in its own way. */
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
