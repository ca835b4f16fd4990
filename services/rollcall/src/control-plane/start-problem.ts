import { readdir, readFile, readlink } from "node:fs/promises";
import { postgresPlace } from "@rollcall/domain";
import { EmbeddedPostgresError } from "@rollcall/postgres-embedded";
import { isSystemError, StartError, systemErrorText } from "@rollcall/process";
import { ListeningError } from "@rollcall/rpc";
import { type DatabaseProblem, databaseProblem } from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";
import { internalPort, type ProcessPlan } from "./process-plan.ts";

/** The settings that a process starts with, so that an error can name the one to change. */
export interface StartFacts {
  /** The flag that sets each port. */
  readonly portFlags: ReadonlyMap<number, string>;
  /** The configured Postgres; null for the embedded one. */
  readonly databaseUrl: string | null;
  /** The data directory; null for a process without one. */
  readonly dataDirectory: string | null;
}

/** The port flags of a process that runs everything, or one service. */
export function portFlagsOf(plan: ProcessPlan, config: ProcessConfig): StartFacts["portFlags"] {
  const flags: readonly (readonly [number, string])[] = [
    [plan.port, "--port"],
    [plan.probePort, "--probe-port"],
    [config["Listen.AgentPort"], "--agent-port"],
    [internalPort(plan, config), "--internal-port"],
  ];
  return new Map([...flags].reverse());
}

/** Run a start, and convert errors that the user can fix to a StartError. */
export async function explainingStart<T>(facts: StartFacts, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    throw await explained(error, facts);
  }
}

async function explained(error: unknown, facts: StartFacts): Promise<unknown> {
  if (error instanceof ListeningError) return listeningProblem(error, facts);
  const problem = databaseProblem(error);
  // Without a database URL, do not blame the database for a TLS error. The embedded Postgres has no TLS, so such an
  // error concerns a file of this process.
  if (problem !== null && !(problem === "tls" && facts.databaseUrl === null)) {
    return databaseRefusal(error, problem, facts);
  }
  if (error instanceof EmbeddedPostgresError) {
    const advice = error.failure === "supervised-elsewhere" ? ", or use another --data-dir" : "";
    return new StartError(`${error.message}${advice}`, { cause: error });
  }
  if (Object(error).code === "ENOSPC")
    return new StartError(`the disk is full: ${Object(error).message}`, { cause: error });
  if (isSystemError(error) && facts.dataDirectory !== null && "path" in error) {
    const unusable = `the data directory ${facts.dataDirectory} cannot be used: ${systemErrorText(error)}`;
    return new StartError(`${unusable}; choose another one with --data-dir`, { cause: error });
  }
  return error;
}

async function listeningProblem(error: ListeningError, { portFlags }: StartFacts): Promise<StartError> {
  const { code, port, message, cause } = error;
  const flag = portFlags.get(port);
  const change = flag === undefined ? "choose another port" : `choose another port with ${flag}`;
  switch (code) {
    case "EADDRINUSE": {
      const holder = await portHolder(port);
      const by = holder === null ? "stop the process that uses it" : `stop ${holder}`;
      return new StartError(`${message}: ${by}, or ${change}`, { cause });
    }
    case "EACCES":
      return new StartError(`${message}: ${change}, above 1023`, { cause });
    default:
      return new StartError(`${message}: change --listen`, { cause });
  }
}

const DATABASE_ADVICE: Readonly<Record<DatabaseProblem, string>> = {
  password: "check user and password in the URL; percent-encode characters such as @ : / # % in a password, @ as %40",
  user: "check the user in the URL and pg_hba.conf; if the server requires TLS, add sslmode=require to the URL",
  "no-database": "create the database, or name another one in the URL",
  privilege:
    "the user in the URL must be able to create tables: make it the owner of the database, or grant it CREATE " +
    "on its schema",
  "disk-full": "the disk of Postgres is full: free some space",
  "pool-mode":
    "set pool_mode = transaction for the pooler, and Database.DirectURL to the address of Postgres itself, or " +
    "pool_mode = session",
  tls: "add sslmode=require to its URL, with sslrootcert=FILE for an authority of your own",
};

function databaseRefusal(error: unknown, problem: DatabaseProblem, { databaseUrl }: StartFacts): StartError {
  const place = databaseUrl === null ? "the embedded Postgres" : `Postgres at ${postgresPlace(databaseUrl)}`;
  return new StartError(`${place}: ${Object(error).message}; ${DATABASE_ADVICE[problem]}`, { cause: error });
}

/** The process that listens on a port, as "NAME (pid PID)"; null when the system does not show it to this user. */
async function portHolder(port: number): Promise<string | null> {
  try {
    const inodes = await listeningInodes(port);
    for (const pid of await readdir("/proc")) {
      if (!/^\d+$/.test(pid)) continue;
      const links = await readdir(`/proc/${pid}/fd`).catch(() => []);
      for (const link of links) {
        const target = await readlink(`/proc/${pid}/fd/${link}`).catch(() => "");
        if (!inodes.has(target)) continue;
        return `${(await readFile(`/proc/${pid}/comm`, "utf8")).trim()} (pid ${pid})`;
      }
    }
    return null;
  } catch {
    // The system has no /proc.
    return null;
  }
}

/** The inodes of sockets that listen on a port, as they appear in the links in /proc/PID/fd. */
async function listeningInodes(port: number): Promise<ReadonlySet<string>> {
  const LISTENING = "0A";
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((file) => readFile(file, "utf8")));
  const rows = tables.flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)));
  const listening = rows.filter(([, local = "", , state]) => state === LISTENING && local.endsWith(suffix));
  return new Set(listening.map((row) => `socket:[${row[9]}]`));
}
