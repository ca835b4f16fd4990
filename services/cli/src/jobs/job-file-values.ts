import { isScalar, type Node } from "yaml";

/** What a value of the job file means, or what is wrong with it. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string };

const wrong = (message: string) => ({ ok: false, message }) as const;
const right = <T>(value: T) => ({ ok: true, value }) as const;

/** A text, or a number or truth value as it is written: `MODE: 1.10` is "1.10". */
export function readText(node: Node): Read<string> {
  if (!isScalar(node)) return wrong("should be a text");
  const { value, source } = node;
  if (typeof value === "string") return right(value);
  if (value === null || value === undefined) return wrong('should be a text; an empty one is ""');
  return right(source ?? String(value));
}

export function readFlag(node: Node): Read<boolean> {
  return isScalar(node) && typeof node.value === "boolean" ? right(node.value) : wrong("should be true or false");
}

export function readWhole(node: Node, most: number): Read<number> {
  const value = isScalar(node) ? node.value : undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most) return right(value);
  return wrong(`should be a whole number from 0 to ${most}`);
}

const MOST_CORES = 1_000_000;
const CORES = /^(\d{1,9}(?:\.\d{1,3})?)$/;
const MILLICORES = /^(\d{1,9})m$/;

/** Thousandths of a processor. "500m" is half of one, as in Kubernetes. */
export function readCores(node: Node): Read<number> {
  const text = sourceOf(node);
  const thousandths = MILLICORES.exec(text)?.[1];
  const cores = CORES.exec(text)?.[1];
  const value = thousandths !== undefined ? Number(thousandths) : Math.round(Number(cores ?? Number.NaN) * 1000);
  if (value >= 0 && value <= MOST_CORES * 1000) return right(value);
  return wrong("should be a number of processors such as 2, 0.5 or 250m");
}

const BYTES = /^(\d{1,16}(?:\.\d{1,6})?)(Ki|Mi|Gi|Ti|k|K|M|G|T)?B?$/;
const BYTE_UNITS: Readonly<Record<string, number>> = {
  ...{ Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 },
  ...{ k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 },
};

export function readBytes(node: Node): Read<number> {
  const [, amount, unit] = BYTES.exec(sourceOf(node)) ?? [];
  const factor = unit === undefined ? 1 : BYTE_UNITS[unit];
  const value = Math.round(Number(amount ?? Number.NaN) * (factor ?? Number.NaN));
  if (Number.isSafeInteger(value)) return right(value);
  return wrong("should be a number of bytes such as 512Mi, 2Gi, 1.5G or 1048576");
}

const DURATION = /^(?:\d{1,9}(?:\.\d{1,3})?(?:ms|s|m|h|d))+$/;
const DURATION_PART = /(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)/g;
const MOST_DURATION_MS = 10 * 365 * 86_400_000;
const DURATION_UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds. Without a unit only 0 is clear. */
export function readDurationMs(node: Node): Read<number> {
  const text = sourceOf(node);
  if (text === "0") return right(0);
  if (DURATION.test(text)) {
    const ms = [...text.matchAll(DURATION_PART)].reduce(
      (sum, [, amount, unit = ""]) => sum + Number(amount) * (DURATION_UNITS_MS[unit] ?? Number.NaN),
      0,
    );
    if (ms <= MOST_DURATION_MS) return right(Math.round(ms));
  }
  return wrong("should be a length of time such as 500ms, 5s, 1m30s or 2h");
}

const MOST_PORT = 65_535;

/** The number of a port; 0 for one that the scheduler chooses. */
export function readPort(node: Node): Read<number> {
  const value = isScalar(node) ? node.value : undefined;
  if (value === "dynamic") return right(0);
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MOST_PORT) return right(value);
  return wrong(`should be dynamic, or the number of a port from 1 to ${MOST_PORT}`);
}

/** A word is one of these, or close to one of them. */
export function didYouMean(word: string, words: readonly string[]): string {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[-_ ]/g, "");
  const near = words
    .map((candidate) => ({ candidate, distance: distanceOf(plain(word), plain(candidate)) }))
    .filter(({ candidate, distance }) => distance <= mostDistance(candidate))
    .sort((left, right) => left.distance - right.distance);
  return near[0] === undefined ? "" : `; did you mean ${near[0].candidate}?`;
}

/** Two letters that are swapped count as two. */
function mostDistance(word: string): number {
  return Math.max(word.length < 5 ? 1 : 2, Math.floor(word.length / 3));
}

/** How many letters have to be put in, left out or replaced. Long words are compared by their beginning. */
function distanceOf(left: string, right: string): number {
  const [from, to] = [left.slice(0, 64), right.slice(0, 64)];
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let at = 1; at <= from.length; at += 1) {
    const next = [at];
    for (let other = 1; other <= to.length; other += 1) {
      const replaced = (row[other - 1] ?? 0) + (from[at - 1] === to[other - 1] ? 0 : 1);
      next.push(Math.min((row[other] ?? 0) + 1, (next[other - 1] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

function sourceOf(node: Node): string {
  if (!isScalar(node)) return "";
  return typeof node.value === "string" ? node.value.trim() : (node.source ?? String(node.value)).trim();
}
