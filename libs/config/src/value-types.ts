import { isIP } from "node:net";
// Use the small variant, because importing all of zod would cost each process, including agents, 3 MiB.
import * as z from "zod/mini";
import { formatDuration, readDuration } from "./values/duration.ts";
import { readBytes } from "./values/quantity.ts";
import { readAuthority, readUrl, type UrlRules } from "./values/read-url.ts";
import { readServerAddress, type ServerAddress, shownAddress } from "./values/server-address.ts";

/** A value as written. Files, environment and flags all provide strings, lists and maps of strings. */
export type Written = string | readonly Written[] | { readonly [key: string]: Written };

/** Where a server listens or can be reached. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Maximum number of items of a list or map. */
const MOST_ITEMS = 1_000;

/** Formatters, keyed by schema. Values of other schemas are written with String(). */
const writers = new WeakMap<object, (value: never) => Written | undefined>();

/** Descriptions of the accepted strings, keyed by schema. */
const descriptions = new WeakMap<object, string>();

/** Format a value so that its schema parses it back; undefined when the value is unset. */
export function writeValue<T>(schema: z.ZodMiniType<T>, value: T): Written | undefined {
  const write = writers.get(schema) as ((value: T) => Written | undefined) | undefined;
  if (write !== undefined) return write(value);
  return value === undefined ? undefined : String(value);
}

/** Describe the accepted strings for people: "a duration such as 15s, 1h30m or 250ms, from 1s to 1h". */
export function describeValue(schema: z.ZodMiniType<unknown>): string {
  return descriptions.get(schema) ?? "a value";
}

/** A duration, in milliseconds once parsed: "15s", "1m", "1h30m", "250ms"; a bare number means seconds. */
export function duration(limits: { readonly minMs?: number; readonly maxMs?: number } = {}): z.ZodMiniType<number> {
  const { minMs = 0, maxMs = 365 * 86_400_000 } = limits;
  const type = valueType("a duration such as 15s, 1h30m or 250ms", formatDuration, (text) => {
    const read = readDuration(text);
    return read.ok ? within(read.ms, minMs, maxMs, formatDuration) : { problem: `${shown(text)} ${read.problem}` };
  });
  return withLimits(type, limits.minMs, limits.maxMs, formatDuration);
}

/** A number of bytes: "512Mi", "2GiB", "1.5G" or a plain number. */
export function bytes(): z.ZodMiniType<number> {
  return valueType("an amount of bytes such as 512Mi, 2GiB or 1048576", String, (text) => {
    const read = readBytes(text);
    return read.ok ? read.value : { problem: `${shown(text)} ${read.problem}` };
  });
}

/** A boolean: true, yes, on and 1, or false, no, off and 0. */
export function bool(): z.ZodMiniType<boolean> {
  return valueType("true or false", String, (text) => {
    const word = text.toLowerCase();
    if (["true", "yes", "on", "1"].includes(word)) return true;
    return ["false", "no", "off", "0"].includes(word) ? false : null;
  });
}

/** A host name or IP address. The brackets of an IPv6 address in a URL are removed. */
export function host(): z.ZodMiniType<string> {
  return valueType("a host without a port, such as 10.0.0.7 or ::1", String, (written) => {
    const bare = /^\[([0-9a-fA-F:.%]+)\]$/.exec(written)?.[1] ?? written;
    // Allow a zone in an IPv6 address, because the address is resolved on this machine.
    return isIP(bare) !== 0 || /^[^[\]\s/:@]{1,253}$/.test(bare) ? bare : null;
  });
}

/** A whole number. */
export function int(limits: { readonly min?: number; readonly max?: number } = {}): z.ZodMiniType<number> {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = limits;
  const type = valueType("a whole number", String, (text) =>
    /^[+-]?\d+$/.test(text) ? within(Number(text), min, max, String) : null,
  );
  return withLimits(type, limits.min, limits.max, String);
}

/** A number, with or without a fraction. */
export function decimal(limits: { readonly min?: number; readonly max?: number } = {}): z.ZodMiniType<number> {
  const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE } = limits;
  const type = valueType("a number", String, (text) =>
    /^[+-]?\d+(\.\d+)?$/.test(text) ? within(Number(text), min, max, String) : null,
  );
  return withLimits(type, limits.min, limits.max, String);
}

/** Any string; must not be empty unless minLength is 0. `expects` describes the pattern, for example "a node id". */
export function text(
  limits: {
    readonly minLength?: number;
    readonly maxLength?: number;
    readonly pattern?: RegExp;
    readonly expects?: string;
  } = {},
): z.ZodMiniType<string> {
  const { minLength = 1, maxLength = 4_096, pattern, expects } = limits;
  const wanted = expects ?? (minLength > 0 ? "a non-empty string" : "a string");
  return valueType(wanted, String, (value) => {
    const fits = value.length >= minLength && value.length <= maxLength;
    return fits && (pattern === undefined || pattern.test(value)) ? value : null;
  });
}

/**
 * A trimmed string with a custom check. `problemOf` returns null for a valid string. Its message is shown even for a
 * secret value, so the message must not contain anything secret.
 */
export function checkedText(expects: string, problemOf: (text: string) => string | null): z.ZodMiniType<string> {
  const schema = z.transform((raw, context): string => {
    if (typeof raw !== "string") return refused(context, `is not ${expects}`);
    const problem = problemOf(raw.trim());
    if (problem === null) return raw.trim();
    context.issues.push({ code: "custom", message: problem, input: raw, params: { isPublic: true } });
    return z.NEVER;
  });
  return register(schema, String, expects);
}

/** Whether a problem's message can be shown even when the value is a secret. */
export function isPublicProblem(issue: object): boolean {
  return "params" in issue && Object(issue.params).isPublic === true;
}

/** One of a few words, ignoring case. */
export function oneOf<const W extends string>(words: readonly W[]): z.ZodMiniType<W> {
  return valueType(`one of ${words.join(", ")}`, String, (value) => {
    return words.find((word) => word.toLowerCase() === value.toLowerCase()) ?? null;
  });
}

/** HOST:PORT, with an IPv6 host in brackets. Port 0 selects a free port. */
export function address(): z.ZodMiniType<Address> {
  return valueType("an address HOST:PORT", formatAddress, parseAddress);
}

/** HOST:PORT, or a URL whose scheme selects TLS or plain text: https://HOST or http://HOST, with or without a port. */
export function serverAddress(): z.ZodMiniType<ServerAddress> {
  const write = (value: ServerAddress) =>
    value.scheme === undefined ? formatAddress(value) : `${value.scheme}://${formatAddress(value)}`;
  return valueType("an address HOST:PORT or https://HOST:PORT", write, (text) => {
    const read = readServerAddress(text);
    if (read.ok) return read.address;
    return { problem: `"${shownAddress(text)}" is not an address HOST:PORT or https://HOST:PORT: ${read.reason}` };
  });
}

/** A URL, kept as written. Messages about it omit anything that may be a password. */
export function url(example: string, rules: UrlRules): z.ZodMiniType<string> {
  return checkedText(`a URL such as ${example}`, (text) => urlProblem(text, example, rules));
}

/** The problem with a URL; null when it is valid. */
export function urlProblem(text: string, example: string, rules: UrlRules): string | null {
  const read = readUrl(text, rules);
  if (read.ok && read.scheme !== null) return null;
  const reason = read.ok ? `it does not begin with ${rules.schemes.join(":// or ")}://` : read.reason;
  return `"${shownAddress(text)}" is not a URL such as ${example}: ${reason}`;
}

/** Several values: a list, or one comma-separated string. At most 1,000. */
export function list<T>(item: z.ZodMiniType<T>): z.ZodMiniType<readonly T[]> {
  const split = (raw: unknown) =>
    typeof raw === "string"
      ? raw
          .split(",")
          .map((it) => it.trim())
          .filter(Boolean)
      : raw;
  const items = z.array(item, { error: ({ input }) => `${shown(input)} is not a list` });
  const most = z.maxLength(MOST_ITEMS, `has more than ${MOST_ITEMS} items`);
  const schema = z.pipe(z.transform(split), z.readonly(items.check(most)));
  const write = (values: readonly T[]) => values.map((value) => writeValue(item, value) ?? "");
  return register(schema, write, `a list, each ${describeValue(item)}`);
}

/**
 * Named strings: a map, a string such as "zone=a,rack=7", or a list of such strings (a repeated flag). At most 1,000.
 */
export function stringMap(): z.ZodMiniType<Readonly<Record<string, string>>> {
  const schema = z.transform((raw, context): Readonly<Record<string, string>> => {
    const entries = pairsIn(raw);
    if (entries !== null && entries.length <= MOST_ITEMS) return Object.fromEntries(entries);
    return refused(context, `${shown(raw)} is not a map of strings such as zone=a,rack=7`);
  });
  return register(schema, (value: Readonly<Record<string, string>>) => ({ ...value }), "a map of strings");
}

/** An optional value; undefined when absent. */
export function optional<T>(inner: z.ZodMiniType<T>): z.ZodMiniType<T | undefined> {
  const write = (value: T | undefined) => (value === undefined ? undefined : writeValue(inner, value));
  return register(z.optional(inner), write, describeValue(inner));
}

/**
 * Add a second step that parses a schema's result. Messages show the problem but not the value, which may be a secret.
 */
export function readFurther<T, U>(
  schema: z.ZodMiniType<T>,
  read: (value: T) => { readonly value: U } | { readonly problem: string },
): z.ZodMiniType<U> {
  const further = z.transform((value: T, context): U => {
    const found = read(value);
    if ("value" in found) return found.value;
    context.issues.push({ code: "custom", message: found.problem, input: value, params: { isPublic: true } });
    return z.NEVER;
  });
  return z.pipe(schema, further);
}

/** Format an address as HOST:PORT. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Parse HOST:PORT; null for anything else. Port 0 selects a free port. */
export function parseAddress(value: string): Address | null {
  const text = value.trim();
  const free = /^(.*):0+$/.exec(text)?.[1];
  const read = readAuthority(free ?? text);
  if (!read.ok || (free === undefined) === (read.port === null)) return null;
  return { host: read.host, port: read.port ?? 0 };
}

type Parsed<T> = T | null | { readonly problem: string };

/** A schema that parses one string; `parse` returns null for an invalid string. */
function valueType<T extends string | number | boolean | Address>(
  expects: string,
  write: (value: T) => string,
  parse: (text: string) => Parsed<T>,
): z.ZodMiniType<T> {
  const schema = z.transform((raw, context): T => {
    const parsed = typeof raw === "string" ? parse(raw) : null;
    if (parsed === null) return refused(context, `${shown(raw)} is not ${expects}`);
    if (typeof parsed === "object" && "problem" in parsed) return refused(context, parsed.problem);
    return parsed as T;
  });
  return register(schema, write, expects);
}

function refused({ value, issues }: z.core.ParsePayload, message: string): never {
  issues.push({ code: "custom", message, input: value });
  return z.NEVER;
}

function register<T>(
  schema: z.ZodMiniType<T>,
  write: (value: T) => Written | undefined,
  description: string,
): z.ZodMiniType<T> {
  writers.set(schema, write);
  descriptions.set(schema, description);
  return schema;
}

/** The description with the limits that a key sets. Limits that only protect the machine are omitted. */
function withLimits(
  schema: z.ZodMiniType<number>,
  min: number | undefined,
  max: number | undefined,
  format: (value: number) => string,
): z.ZodMiniType<number> {
  const most = max === undefined ? "" : min === undefined ? `, at most ${format(max)}` : ` to ${format(max)}`;
  const least = min === undefined ? "" : max === undefined ? `, at least ${format(min)}` : `, ${format(min)}`;
  descriptions.set(schema, `${describeValue(schema)}${least}${most}`);
  return schema;
}

function within(value: number, min: number, max: number, format: (value: number) => string): Parsed<number> {
  if (value < min) return { problem: `${format(value)} is less than ${format(min)}` };
  if (value > max) return { problem: `${format(value)} is more than ${format(max)}` };
  return value;
}

function pairsIn(raw: unknown): [string, string][] | null {
  if (typeof raw === "string") return splitPairs(raw);
  if (!Array.isArray(raw)) return pairsOf(raw);
  const lists = raw.map((item) => (typeof item === "string" ? splitPairs(item) : null));
  return lists.every((pairs) => pairs !== null) ? lists.flat() : null;
}

function splitPairs(value: string): [string, string][] | null {
  const parts = value
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
  const pairs = parts.map((part): [string, string] => {
    const at = part.indexOf("=");
    return [part.slice(0, Math.max(at, 0)).trim(), part.slice(at + 1).trim()];
  });
  return pairs.every(([key]) => key !== "") ? pairs : null;
}

function pairsOf(raw: unknown): [string, string][] | null {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return null;
  const pairs = Object.entries(raw).map(([key, value]): [string, unknown] => [key, value]);
  const isText = (pair: [string, unknown]): pair is [string, string] => typeof pair[1] === "string";
  return pairs.every(isText) ? pairs : null;
}

/** Quote a value, without anything that may be a URL's password. */
function shown(raw: unknown): string {
  const whole = typeof raw === "string" ? `"${raw}"` : (JSON.stringify(raw) ?? "nothing");
  const written = whole.replaceAll(/(["/])[^\s"/@]*:[^\s"@]*@/g, "$1***@");
  return written.length > 80 ? `${written.slice(0, 77)}...` : written;
}
