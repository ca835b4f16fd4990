import { isNativeError } from "node:util/types";
import { StoreUnavailableError } from "@rollcall/errors";

// Class 08 is "connection exception"; 57P0x is a server that ends, crashes, or starts; 53300 has no connection left.
const UNAVAILABLE_SQLSTATE = /^(08...|57P0[1-5]|53300)$/;
const UNAVAILABLE_ERRNO = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
  "EAGAIN",
]);
// Alone, these would also be a missing file, or a full pipe; of a connect call they are a socket that is missing, or
// one at which too many wait.
const OF_CONNECT_ALONE = new Set(["ENOENT", "EAGAIN"]);
// pg reports these without a code.
const UNAVAILABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Cannot use a pool after calling end)/i;

/**
 * An error of the Postgres driver as the rest of the program knows it: StoreUnavailableError when the server could not
 * be reached.
 */
export function toStoreError(error: unknown): unknown {
  if (!isUnreachable(error)) return error;
  return new StoreUnavailableError(messageOf(error), { cause: error });
}

/** Why Postgres refuses a client for good. */
export type DatabaseProblem = "password" | "user" | "no-database" | "privilege" | "disk-full";

const PROBLEM_OF_SQLSTATE: ReadonlyMap<unknown, DatabaseProblem> = new Map([
  ["28P01", "password"],
  ["28000", "user"],
  ["3D000", "no-database"],
  ["42501", "privilege"],
  ["53100", "disk-full"],
]);

/** Why Postgres refuses for good, by an error of its driver; null for any other error. */
export function databaseProblem(error: unknown): DatabaseProblem | null {
  return PROBLEM_OF_SQLSTATE.get(Object(error).code) ?? null;
}

/** Insufficient privilege, feature not supported, undefined function. */
const NOT_TOLD = new Set(["42501", "0A000", "42883"]);

/** Whether a server keeps what was asked for to itself, as some managed ones do. */
export function isNotTold(error: unknown): boolean {
  return NOT_TOLD.has(Object(error).code);
}

/** Waited for a lock for as long as lock_timeout lets it; deadlock, which others go on from. */
const LOCK_NOT_GOT = new Set(["55P03", "40P01"]);

/** Whether a transaction did not get a lock, and may be tried again. */
export function isLockNotGot(error: unknown): boolean {
  return LOCK_NOT_GOT.has(Object(error).code);
}

/** Whether a table that was named is not there. */
export function isUndefinedTable(error: unknown): boolean {
  return Object(error).code === "42P01";
}

/** A host with several addresses fails with a list of errors, and no message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}

/** Whether an error of the driver, or one of its causes, means that the server could not be reached. */
function isUnreachable(error: unknown): boolean {
  let current = error;
  // A cause may be its own ancestor; no honest chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    if (current instanceof AggregateError && current.errors.some(isUnreachable)) return true;
    if (isConnectionError(current)) return true;
    current = current.cause;
  }
  return false;
}

function isConnectionError(error: Error): boolean {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (UNAVAILABLE_SQLSTATE.test(code)) return true;
  const isConnect = "syscall" in error && error.syscall === "connect";
  if (UNAVAILABLE_ERRNO.has(code) && (isConnect || !OF_CONNECT_ALONE.has(code))) return true;
  return UNAVAILABLE_TEXT.test(error.message);
}
