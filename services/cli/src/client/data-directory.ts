import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemErrorWords } from "@rollcall/process";
import { Failure, systemCodeOf } from "../failure.ts";
import type { Shell } from "../shell.ts";

/** Where `up` writes where it can be reached, inside its data directory. */
export const RUN_FILE = "run.json";
/** Where `up` keeps the first access token, inside its data directory. */
export const ADMIN_TOKEN_FILE = "admin-token";

/** Where services of the system keep their data. */
const SYSTEM_DIRECTORY = "/var/lib/rollcall";

/** Environment variables that the command line reads, and no server knows. */
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

/** What a running `up` writes for the other programs of its user. */
export interface RunFile {
  /** Its process id. */
  readonly pid: number;
  /** HOST:PORT of the API. */
  readonly server: string;
  /** HOST:PORT by which other machines reach the API; absent when it is for this machine alone. */
  readonly elsewhere?: string;
  /** HOST:PORT of the agents' streams. */
  readonly agents: string;
  /** HOST:PORT of probes and metrics. */
  readonly probes: string;
  /** How it is reached when it speaks TLS; absent for clear text. */
  readonly tls?: {
    /** PEM file of the authority to trust; null for those that the system trusts. */
    readonly caFile: string | null;
    /** The name that its certificate is for; null when that is the address's. */
    readonly serverName: string | null;
  };
}

/**
 * Find the data directory by the one rule that `up` and its clients share: ROLLCALL_DATA_DIR; else `.rollcall` in the
 * working directory, where there is one that belongs to this user; else `~/.rollcall`, and for root, unless it has
 * that, the system's directory: Postgres never runs as root, and its user could not enter root's home. Absolute; it
 * need not exist.
 */
export function findDataDirectory({ env, cwd, home, userId }: Pick<Shell, "env" | "cwd" | "home" | "userId">): string {
  const named = env.ROLLCALL_DATA_DIR;
  if (named !== undefined && named !== "") return resolve(cwd, named);
  const here = join(cwd, ".rollcall");
  // Another user's directory could send our calls, and our token with them, to a server of theirs.
  if (belongsTo(here, userId)) return here;
  const own = join(home, ".rollcall");
  return userId === 0 && !belongsTo(own, userId) ? SYSTEM_DIRECTORY : own;
}

/** Read what the running `up` of this data directory wrote; null when there is none. */
export function readRunFile(dataDirectory: string): RunFile | null {
  const text = readRunText(join(dataDirectory, RUN_FILE));
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRunFile(value) ? value : null;
  } catch {
    // A crash left half of it: it counts as missing, and the next `up` writes it again.
    return null;
  }
}

function readRunText(path: string): string | null {
  try {
    return readIfThere(path);
  } catch (cause) {
    const why = `cannot read ${path}: ${systemErrorWords(cause)}`;
    const isAnothers = systemCodeOf(cause) === "EACCES";
    const advice = "run this as the user of that data directory, or name another one with ROLLCALL_DATA_DIR";
    throw new Failure(isAnothers ? `${why}; ${advice}` : why, { cause });
  }
}

/** A file's text without blanks around it; null when it is not there. Throws when it is there and cannot be read. */
export function readIfThere(path: string): string | null {
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
