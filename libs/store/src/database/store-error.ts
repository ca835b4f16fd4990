import { isNativeError } from "node:util/types";
import { StoreUnavailableError } from "@rollcall/errors";

/** What an error of the Postgres driver means for the caller, and for the connection that reported it. */
export interface StoreErrorMeaning {
  /** Whether the database is unavailable: the same statement can succeed later on another connection. */
  readonly isUnavailable: boolean;
  /** What must not be used again: nothing, the connection, or every connection that is now open in the pool. */
  readonly spoils: "nothing" | "connection" | "pool";
}

const HARMLESS: StoreErrorMeaning = { isUnavailable: false, spoils: "nothing" };
const BUSY: StoreErrorMeaning = { isUnavailable: true, spoils: "nothing" };
const LOST: StoreErrorMeaning = { isUnavailable: true, spoils: "connection" };
const MOVED: StoreErrorMeaning = { isUnavailable: true, spoils: "pool" };
const DOUBTFUL: StoreErrorMeaning = { isUnavailable: false, spoils: "connection" };

/** Errors whose cause outlives the statement, matched by SQLSTATE. The first match applies. */
const MEANINGS: readonly (readonly [RegExp, StoreErrorMeaning])[] = [
  // A read-only session, or a server in recovery. The pool's other open sessions are connected to the same server.
  [/^(25006|55000)$/, MOVED],
  // Connection exceptions; a server that shuts down, crashes or starts; a dropped database; timeouts that end a
  // session.
  [/^(08...|57P0[1-5]|25P0[34])$/, LOST],
  // The session is in the wrong transaction: one that this program did not begin, or none. An aborted transaction
  // (25P02) needs only a rollback; the pool detects one that this program did not begin.
  [/^25(?!P02)...$/, LOST],
  // A prepared statement that is missing, or belongs to another client of a pooler; a commit whose outcome is unknown.
  [/^(26000|42P05|40003)$/, LOST],
  // The role, its rights, its search path or the database changed after the session started. Missing tables and
  // functions are also a sign of such a change, because the schema was complete when the session started.
  [/^(28...|0P000|3D000|3F000|42501|42P01|42883)$/, LOST],
  // The server is out of memory, disk space or connections, or its operating system failed. Only lack of memory can be
  // caused by the session itself.
  [/^53200$/, LOST],
  [/^(53...|58...)$/, BUSY],
  // A person cancelled the statement, or it exceeded a time limit that another client may have set in the session.
  [/^57014$/, LOST],
  // Most often these are defects, deadlocks, or locks that take too long. But if the session is the cause (its
  // timeouts, a stale cache), it reports the error again and again until it is closed.
  [/^(55P03|42703|42704|XX...)$/, DOUBTFUL],
];

const LOST_ERRNO = new Set([
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
// Codes that, in a connect call, mean that a socket is missing or has too many waiting clients. In other calls, they
// mean a missing file or a full pipe.
const OF_CONNECT_ONLY = new Set(["ENOENT", "EAGAIN"]);

const UNANSWERED = /^Query read timeout$/;
// Messages of errors that pg reports without a code.
const LOST_TEXTS = [
  UNANSWERED,
  /^Connection terminated/i,
  /^Client (has encountered a connection error|was closed)/i,
  /^timeout (exceeded when trying to connect|expired)/i,
  /^Cannot use a pool after calling end/i,
  /^Received (unexpected|invalid)/i,
];

/** Find what an error of the driver means, from the error and its causes. */
export function classifyStoreError(error: unknown): StoreErrorMeaning {
  for (const current of chainOf(error)) {
    if (current instanceof AggregateError) {
      const known = current.errors.map(classifyStoreError).find(({ isUnavailable }) => isUnavailable);
      if (known !== undefined) return known;
    }
    const meaning = meaningOf(current);
    if (meaning !== HARMLESS) return meaning;
  }
  return HARMLESS;
}

/**
 * Convert a driver error to StoreUnavailableError if it means that the database is unavailable. Other errors are
 * returned unchanged.
 */
export function toStoreError(error: unknown): unknown {
  return classifyStoreError(error).isUnavailable ? toConnectError(error) : error;
}

/**
 * Convert an error of an attempt to connect. Whatever the cause, the database is unavailable until an attempt
 * succeeds.
 */
export function toConnectError(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  return new StoreUnavailableError(messageOf(error), { cause: error });
}

/** The SQLSTATE or system error code of an error, or of its first cause that has one; empty for none. */
export function storeErrorCode(error: unknown): string {
  for (const current of chainOf(error)) {
    if ("code" in current && typeof current.code === "string") return current.code;
  }
  return "";
}

/** Why Postgres refuses a client until a person fixes it. */
export type DatabaseProblem = "password" | "user" | "no-database" | "privilege" | "disk-full" | "tls" | "pool-mode";

const PROBLEM_OF_SQLSTATE: ReadonlyMap<string, DatabaseProblem> = new Map([
  ["28P01", "password"],
  ["28000", "user"],
  ["3D000", "no-database"],
  ["42501", "privilege"],
  ["53100", "disk-full"],
]);

/** Find why Postgres refuses a client until a person fixes it, from a driver error; null for any other error. */
export function databaseProblem(error: unknown): DatabaseProblem | null {
  if ([...chainOf(error)].some(({ message }) => /statement pooling mode/.test(message))) return "pool-mode";
  const problem = PROBLEM_OF_SQLSTATE.get(storeErrorCode(error)) ?? null;
  return problem === null && /SSL|certificate/i.test(String(error)) ? "tls" : problem;
}

/** SQLSTATEs for insufficient privilege, an unsupported feature and an undefined function. */
const NOT_TOLD = new Set(["42501", "0A000", "42883"]);

/** Whether the server does not expose the requested information, as is the case on some managed servers. */
export function isNotTold(error: unknown): boolean {
  return NOT_TOLD.has(storeErrorCode(error));
}

/** SQLSTATEs for an exceeded lock_timeout and for a deadlock. */
const LOCK_NOT_GOT = new Set(["55P03", "40P01"]);

/** Whether a transaction could not get a lock, and can be retried. */
export function isLockNotGot(error: unknown): boolean {
  return LOCK_NOT_GOT.has(storeErrorCode(error));
}

/** Whether a table that the statement names does not exist. */
export function isUndefinedTable(error: unknown): boolean {
  return storeErrorCode(error) === "42P01";
}

/** Whether the database refuses writes: it is a standby, or its role or server was made read-only. */
export function isReadOnly(error: unknown): boolean {
  return ["25006", "55000"].includes(storeErrorCode(error));
}

const TOO_MANY_CONNECTIONS = "53300";
/** The code with which PgBouncer refuses clients, for any reason. */
const PROTOCOL_VIOLATION = "08P01";

/**
 * Whether the server or the pooler refused a connection because of its limit. A pooler that cannot log in to its
 * server passes on the server's message, which may be about the server's own limit.
 */
export function isConnectionLimit(error: unknown): boolean {
  const code = storeErrorCode(error);
  if (code !== PROTOCOL_VIOLATION) return code === TOO_MANY_CONNECTIONS;
  const texts = [...chainOf(error)].map(({ message }) => message);
  return texts.some((text) => /connections/i.test(text) && !/server login/i.test(text));
}

function meaningOf(error: Error): StoreErrorMeaning {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  // This routine reports a cached plan that is older than a schema change. From any other routine, the same code means
  // that the server does not support a feature.
  if ("routine" in error && error.routine === "RevalidateCachedQuery") return LOST;
  const isConnect = "syscall" in error && error.syscall === "connect";
  if (LOST_ERRNO.has(code) && (isConnect || !OF_CONNECT_ONLY.has(code))) return LOST;
  if (LOST_TEXTS.some((text) => text.test(error.message))) return LOST;
  return MEANINGS.find(([pattern]) => pattern.test(code))?.[1] ?? HARMLESS;
}

/** List an error and its causes, the outermost first. */
function* chainOf(error: unknown): Generator<Error> {
  let current = error;
  // Limit the depth, because causes can form a cycle. No real chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    yield current;
    current = current.cause;
  }
}

/**
 * The message of an error. For a host with several addresses, the error is a list of errors and has no message itself.
 */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  const message = error instanceof Error ? error.message : String(error);
  return UNANSWERED.test(message) ? "the server did not answer in time" : message;
}
