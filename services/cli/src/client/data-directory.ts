import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemErrorWords } from "@rollcall/process";
import { Failure, systemCodeOf } from "../failure.ts";
import type { Shell } from "../shell.ts";

/** File in the data directory where `up` writes its addresses. */
export const RUN_FILE = "run.json";
/** File in the data directory where `up` keeps the first access token. */
export const ADMIN_TOKEN_FILE = "admin-token";

/** Where system services keep their data. */
const SYSTEM_DIRECTORY = "/var/lib/rollcall";

/** Environment variables that the command line reads and servers do not. */
export const CLIENT_VARIABLES: readonly string[] = [
  "ROLLCALL_CONFIG",
  "ROLLCALL_SERVER",
  "ROLLCALL_REGISTRY",
  "ROLLCALL_HEALTH",
  "ROLLCALL_ADMIN",
  "ROLLCALL_SCHEDULER",
  "ROLLCALL_TOKEN",
  "ROLLCALL_TOKEN_FILE",
  "ROLLCALL_CONTEXT",
  "ROLLCALL_CA_FILE",
  "ROLLCALL_CLIENT_CERT",
  "ROLLCALL_CLIENT_KEY",
  "ROLLCALL_TLS_SERVER_NAME",
];

/** The file that a running `up` writes for the other programs of its user. */
export interface RunFile {
  /** The process id of `up`. */
  readonly pid: number;
  /** HOST:PORT of the API. */
  readonly server: string;
  /** HOST:PORT at which other machines reach the API; absent when only this machine can reach it. */
  readonly elsewhere?: string;
  /** HOST:PORT of the agents' streams. */
  readonly agents: string;
  /** HOST:PORT of probes and metrics. */
  readonly probes: string;
  /** TLS settings for clients; absent for clear text. */
  readonly tls?: {
    /** PEM file of the authority to trust; null to trust the system's authorities. */
    readonly caFile: string | null;
    /** The name in the server's certificate; null when this name is the host of the address. */
    readonly serverName: string | null;
  };
}

/**
 * Find the data directory, by the rule that `up` and its clients share. In order of precedence: ROLLCALL_DATA_DIR;
 * `.rollcall` in the working directory, if it belongs to this user; `~/.rollcall`; for root without a `~/.rollcall`,
 * the system's directory, because Postgres never runs as root and its user cannot enter root's home. The path is
 * absolute and need not exist.
 */
export function findDataDirectory({ env, cwd, home, userId }: Pick<Shell, "env" | "cwd" | "home" | "userId">): string {
  const named = env.ROLLCALL_DATA_DIR;
  if (named !== undefined && named !== "") return resolve(cwd, named);
  const here = join(cwd, ".rollcall");
  // Ignore a directory of another user, whose run file could send our calls, and our token, to that user's server.
  if (belongsTo(here, userId)) return here;
  const own = join(home, ".rollcall");
  return userId === 0 && !belongsTo(own, userId) ? SYSTEM_DIRECTORY : own;
}

/** Read the run file of the running `up` of this data directory; null when there is none. */
export function readRunFile(dataDirectory: string): RunFile | null {
  const text = readRunText(join(dataDirectory, RUN_FILE));
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRunFile(value) ? value : null;
  } catch {
    // Treat a partial file, which a crash left, as missing. The next `up` writes it again.
    return null;
  }
}

function readRunText(path: string): string | null {
  try {
    return readIfThere(path);
  } catch (cause) {
    const why = `cannot read ${path}: ${systemErrorWords(cause)}`;
    const isAnothers = systemCodeOf(cause) === "EACCES";
    const advice = "run this as the owner of that data directory, or set ROLLCALL_DATA_DIR to another one";
    throw new Failure(isAnothers ? `${why}; ${advice}` : why, { cause });
  }
}

/** A file's trimmed text; null when the file does not exist. Throws when it exists and cannot be read. */
function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return null;
    throw error;
  }
}

function belongsTo(path: string, userId: number | null): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (userId === null || found.uid === userId);
}

function isRunFile(value: unknown): value is RunFile {
  return (
    typeof value === "object" &&
    value !== null &&
    "pid" in value &&
    typeof value.pid === "number" &&
    "server" in value &&
    typeof value.server === "string" &&
    "agents" in value &&
    typeof value.agents === "string" &&
    "probes" in value &&
    typeof value.probes === "string" &&
    (!("elsewhere" in value) || typeof value.elsewhere === "string") &&
    (!("tls" in value) || isTrust(value.tls))
  );
}

function isTrust(value: unknown): value is NonNullable<RunFile["tls"]> {
  if (typeof value !== "object" || value === null) return false;
  if (!("caFile" in value && "serverName" in value)) return false;
  return [value.caFile, value.serverName].every((it) => it === null || typeof it === "string");
}
