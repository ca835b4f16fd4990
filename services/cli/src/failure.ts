import { readDuration } from "@rollcall/config/duration";
import { isSystemError, systemErrorText, systemErrorWords } from "@rollcall/process";

/** Wrong usage, such as an unknown value or conflicting options: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * The error for an unreadable input file that the user named on the command line, in the environment or in a context.
 * `what` describes the file. For unreadable files that Rollcall maintains, such as contexts, throw a Failure instead.
 */
export function unreadableFile(file: string, cause: unknown, what = ""): UsageError {
  const named = what === "" ? file : `${what} ${file}`;
  return new UsageError(`cannot read ${named}: ${systemErrorWords(cause)}`, { cause });
}

/** The request was refused or failed: exit code 1. The message is shown to the user. */
export class Failure extends Error {
  override readonly name = "Failure";
}

/**
 * The control plane could not be reached, so there is no result: exit code 3, unless the command has another code for
 * that.
 */
export class Unreached extends Failure {}

/** Combine failures. The result is Unreached only if all of them are. */
export function failureOfAll(failures: readonly Failure[]): Failure {
  const text = failures.map(({ message }) => message).join("\n");
  return failures.every((failure) => failure instanceof Unreached) ? new Unreached(text) : new Failure(text);
}

/** The text of an error that is not a usage error. For a bug in this program it includes the stack. */
export function failureText(error: unknown): string {
  if (error instanceof Failure) return error.message;
  if (isSystemError(error)) return systemErrorText(error);
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The command ends with a specific exit code. The message, if any, is shown to the user. */
export class Exit extends Error {
  override readonly name = "Exit";
  readonly code: number;

  constructor(code: number, message = "", options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The code of a system error, for example "ENOENT"; null for other errors. */
export function systemCodeOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error)) return null;
  return typeof error.code === "string" && /^E[A-Z_]+$/.test(error.code) ? error.code : null;
}

/** Pick one of an option's words, ignoring case. Throws UsageError in the wording that scripts for Bacalhau expect. */
export function pickWord<W extends string>(option: string, value: string, words: readonly W[]): W {
  const word = words.find((candidate) => candidate === value.toLowerCase());
  if (word !== undefined) return word;
  const choices = words.map((candidate) => `"${candidate}"`).join(" ");
  throw new UsageError(`cannot use '${value}' as ${option} value, should be one of: [${choices}]`);
}

/** Pick several words, separated by commas. */
export function pickWords<W extends string>(option: string, value: string, words: readonly W[]): readonly W[] {
  return splitWords(value).map((part) => pickWord(option, part, words));
}

/** Split a comma-separated list. Blanks around items and empty items are dropped. */
export function splitWords(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Read a whole number of at least `least`. Throws UsageError. */
export function parseCount(option: string, value: string, least: number): number {
  const count = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (count >= least) return count;
  throw new UsageError(`cannot use '${value}' as ${option} value, should be a whole number, ${least} or greater`);
}

/** Whether a duration of 0 is accepted, for options where 0 has a meaning. */
export interface DurationOptions {
  readonly zero?: boolean;
}

/**
 * Read a duration as the configuration does: "500ms", "15s", "1h30m", "7d"; a bare number is seconds. More than 0
 * unless `zero` is true. Throws UsageError.
 */
export function parseDurationMs(option: string, value: string, { zero = false }: DurationOptions = {}): number {
  const read = readDuration(value);
  if (read.ok && (zero || read.ms > 0)) return read.ms;
  throw new UsageError(`cannot use '${value}' as ${option} value, should be a duration such as 500ms, 15s or 1m`);
}

/** Read a duration with a unit, which cannot be mistaken for a time; null for anything else, and for 0. */
export function spanIn(text: string): number | null {
  const read = readDuration(text);
  return read.ok && read.hasUnit && read.ms > 0 ? read.ms : null;
}

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i;

/**
 * Read a point in time: a duration before now, an RFC 3339 time, or a day in UTC. Returns milliseconds since 1970.
 * Throws UsageError.
 */
export function parseMoment(option: string, text: string, nowMs: number): number {
  const atMs = momentIn(text, nowMs);
  if (atMs !== null) return atMs;
  throw new UsageError(
    `cannot use '${text}' as ${option} value, should be a duration ago such as 1h, or a time such as ` +
      "2026-05-01T12:00:00Z",
  );
}

/** Like parseMoment, but null for text that is neither a duration nor a time. */
export function momentIn(text: string, nowMs: number): number | null {
  const spanMs = spanIn(text);
  if (spanMs !== null) return nowMs - spanMs;
  const atMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : atMs;
}
