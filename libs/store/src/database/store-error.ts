import { isNativeError } from "node:util/types";
import { StoreUnavailableError } from "@rollcall/errors";

/** What an error of the Postgres driver means, for the caller and for the connection that reported it. */
export interface StoreErrorMeaning {
  /** Whether the database is unavailable: the same statement can succeed later, over another connection. */
  readonly isUnavailable: boolean;
  /** What must not be used again: nothing, the connection, or every connection of the pool that is open now. */
  readonly spoils: "nothing" | "connection" | "pool";
}

const HARMLESS: StoreErrorMeaning = { isUnavailable: false, spoils: "nothing" };
const BUSY: StoreErrorMeaning = { isUnavailable: true, spoils: "nothing" };
const LOST: StoreErrorMeaning = { isUnavailable: true, spoils: "connection" };
const MOVED: StoreErrorMeaning = { isUnavailable: true, spoils: "pool" };
const DOUBTFUL: StoreErrorMeaning = { isUnavailable: false, spoils: "connection" };

/** Session states that outlive a statement, by SQLSTATE. The first match applies. */
const MEANINGS: readonly (readonly [RegExp, StoreErrorMeaning])[] = [
  // A read-only session, or a server in recovery. Sessions that are as old were opened at the same server.
  [/^(25006|55000)$/, MOVED],
  // Connection exceptions; a server that ends, crashes or starts; a dropped database; timeouts that end a session.
  [/^(08...|57P0[1-5]|25P0[34])$/, LOST],
  // The session's transaction is not the one that this program began. An aborted transaction (25P02) is ended by its
  // rollback; the pool handles one that it did not begin.
  [/^25(?!P02)...$/, LOST],
  // A prepared statement that is missing, or that belongs to another client of a pooler; an unknown commit.
  [/^(26000|42P05|40003)$/, LOST],
  // The role, its rights, its search path or the database changed after the session began: so do missing tables and
  // functions, since the schema was complete when the session began.
  [/^(28...|0P000|3D000|3F000|42501|42P01|42883)$/, LOST],
  // The server lacks memory, disk or connections; its operating system failed. Only the memory is the session's.
  [/^53200$/, LOST],
  [/^(53...|58...)$/, BUSY],
  // Cancelled by a person, or by a timeout, which may be one that another client set in the session.
  [/^57014$/, LOST],
  // Most often defects, deadlocks or locks that take too long. But if the session is the cause (its timeouts, a stale
  // cache), it reports them until it ends.
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
// Of other calls, these are a missing file or a full pipe; of a connect call, a socket that is missing or has too many
// clients waiting.
const OF_CONNECT_ONLY = new Set(["ENOENT", "EAGAIN"]);

const UNANSWERED = /^Query read timeout$/;
// pg reports these without a code.
const LOST_TEXTS = [
  UNANSWERED,
  /^Connection terminated/i,
  /^Client (has encountered a connection error|was closed)/i,
  /^timeout (exceeded when trying to connect|expired)/i,
  /^Cannot use a pool after calling end/i,
  /^Received (unexpected|invalid)/i,
];

/** What an error of the driver, or one of its causes, means. */
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

/** An error of the driver as the rest of the program expects it: StoreUnavailableError while the database is away. */
export function toStoreError(error: unknown): unknown {
  return classifyStoreError(error).isUnavailable ? toConnectError(error) : error;
}

/** The same for an error of connecting: whatever it is, the database cannot be used until a connection succeeds. */
export function toConnectError(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  return new StoreUnavailableError(messageOf(error), { cause: error });
}

/** The SQLSTATE, or the code of the system call, of an error or the first of its causes with one; empty for none. */
export function storeErrorCode(error: unknown): string {
  for (const current of chainOf(error)) {
    if ("code" in current && typeof current.code === "string") return current.code;
  }
  return "";
}

/** Why Postgres refuses a client for good. */
export type DatabaseProblem = "password" | "user" | "no-database" | "privilege" | "disk-full" | "tls" | "pool-mode";

const PROBLEM_OF_SQLSTATE: ReadonlyMap<string, DatabaseProblem> = new Map([
  ["28P01", "password"],
  ["28000", "user"],
  ["3D000", "no-database"],
  ["42501", "privilege"],
  ["53100", "disk-full"],
]);

/** Why Postgres refuses until a person repairs it, by an error of its driver; null for any other error. */
export function databaseProblem(error: unknown): DatabaseProblem | null {
  if ([...chainOf(error)].some(({ message }) => /statement pooling mode/.test(message))) return "pool-mode";
  const problem = PROBLEM_OF_SQLSTATE.get(storeErrorCode(error)) ?? null;
  return problem === null && /SSL|certificate/i.test(String(error)) ? "tls" : problem;
}

/** Insufficient privilege, feature not supported, undefined function. */
const NOT_TOLD = new Set(["42501", "0A000", "42883"]);

/** Whether a server keeps what was asked for to itself, as some managed ones do. */
export function isNotTold(error: unknown): boolean {
  return NOT_TOLD.has(storeErrorCode(error));
}

/** Waited for a lock for as long as lock_timeout lets it; deadlock, which others go on from. */
const LOCK_NOT_GOT = new Set(["55P03", "40P01"]);

/** Whether a transaction did not get a lock, and may be tried again. */
export function isLockNotGot(error: unknown): boolean {
  return LOCK_NOT_GOT.has(storeErrorCode(error));
}

/** Whether a table that was named is not there. */
export function isUndefinedTable(error: unknown): boolean {
  return storeErrorCode(error) === "42P01";
}

/** Whether the database refuses writes: a standby, or a role or server that was made read-only. */
export function isReadOnly(error: unknown): boolean {
  return ["25006", "55000"].includes(storeErrorCode(error));
}

const TOO_MANY_CONNECTIONS = "53300";
/** The code with which PgBouncer refuses clients, for whatever reason. */
const PROTOCOL_VIOLATION = "08P01";

/**
 * Whether a connection was refused because what listens allows no more of them. A pooler that cannot log in to its
 * server passes on what the server says, which can be about the server's connections.
 */
export function isConnectionLimit(error: unknown): boolean {
  const code = storeErrorCode(error);
  if (code !== PROTOCOL_VIOLATION) return code === TOO_MANY_CONNECTIONS;
  const texts = [...chainOf(error)].map(({ message }) => message);
  return texts.some((text) => /connections/i.test(text) && !/server login/i.test(text));
}

function meaningOf(error: Error): StoreErrorMeaning {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  // A plan that was made before the schema changed; its code also stands for what the server does not support.
  if ("routine" in error && error.routine === "RevalidateCachedQuery") return LOST;
  const isConnect = "syscall" in error && error.syscall === "connect";
  if (LOST_ERRNO.has(code) && (isConnect || !OF_CONNECT_ONLY.has(code))) return LOST;
  if (LOST_TEXTS.some((text) => text.test(error.message))) return LOST;
  return MEANINGS.find(([pattern]) => pattern.test(code))?.[1] ?? HARMLESS;
}

/** An error and its causes, outermost first. */
function* chainOf(error: unknown): Generator<Error> {
  let current = error;
  // A cause may be its own ancestor; no honest chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    yield current;
    current = current.cause;
  }
}

/** A host with several addresses fails with a list of errors, and no message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  const message = error instanceof Error ? error.message : String(error);
  return UNANSWERED.test(message) ? "the server did not answer in time" : message;
}
