import { readDuration } from "@rollcall/config/duration";
import { readBytes, readMillicores } from "@rollcall/config/quantity";
import { isScalar, type Node } from "yaml";

/** A value of the job file, or why it is invalid. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string };

const wrong = (message: string) => ({ ok: false, message }) as const;
const right = <T>(value: T) => ({ ok: true, value }) as const;

/** A string, or a number or boolean as written: `MODE: 1.10` is "1.10". */
export function readText(node: Node): Read<string> {
  if (!isScalar(node)) return wrong("should be a string");
  const { value, source } = node;
  if (typeof value === "string") return right(value);
  if (value === null || value === undefined) return wrong('should be a string; an empty one is ""');
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

/** Read a number of processors, in thousandths. "500m" is half a processor, as in Kubernetes. */
export function readCores(node: Node): Read<number> {
  const read = readMillicores(sourceOf(node));
  if (!read.ok) return wrong(`${sourceOf(node)} ${read.problem}`);
  return read.value <= MOST_CORES * 1000 ? right(read.value) : wrong(`should be at most ${MOST_CORES} processors`);
}

export function readByteCount(node: Node): Read<number> {
  const read = readBytes(sourceOf(node));
  return read.ok ? right(read.value) : wrong(`${sourceOf(node)} ${read.problem}`);
}

const MOST_DURATION_MS = 10 * 365 * 86_400_000;

/** Read a duration in milliseconds. Only 0 is valid without a unit. */
export function readDurationMs(node: Node): Read<number> {
  const read = readDuration(sourceOf(node));
  if (read.ok && read.ms <= MOST_DURATION_MS && (read.hasUnit || read.ms === 0)) return right(read.ms);
  return wrong("should be a duration such as 500ms, 5s, 1m30s or 2h");
}

const MOST_PORT = 65_535;

/** Read a port number; 0 for "dynamic", which lets the scheduler choose the port. */
export function readPort(node: Node): Read<number> {
  const value = isScalar(node) ? node.value : undefined;
  if (value === "dynamic") return right(0);
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MOST_PORT) return right(value);
  return wrong(`should be dynamic, or the number of a port from 1 to ${MOST_PORT}`);
}

/**
 * Suggest the known word that is closest to `word`, as text to append to an error message; empty when none is
 * close.
 */
export function didYouMean(word: string, words: readonly string[]): string {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[-_ ]/g, "");
  const near = words
    .map((candidate) => ({ candidate, distance: distanceOf(plain(word), plain(candidate)) }))
    .filter(({ candidate, distance }) => distance <= mostDistance(candidate))
    .sort((left, right) => left.distance - right.distance);
  return near[0] === undefined ? "" : `; did you mean ${near[0].candidate}?`;
}

/** The largest distance at which a word counts as close. Two swapped characters count as two edits. */
function mostDistance(word: string): number {
  return Math.max(word.length < 5 ? 1 : 2, Math.floor(word.length / 3));
}

/** The number of characters to insert, remove or replace. Only the first 64 characters are compared. */
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
