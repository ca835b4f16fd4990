import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../libs/testkit/src/time.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";

/** The moment at which a server session returns to the pool. */
export type PoolMode = "session" | "transaction" | "statement";

/** How PgBouncer is configured. */
export interface PgbouncerOptions {
  /** The default is `transaction`. */
  readonly poolMode?: PoolMode;
  /** The default is 500. */
  readonly maxClients?: number;
}

/** A PgBouncer in front of one database. It keeps no prepared statements. */
export interface Pgbouncer {
  readonly url: string;
  /** The address as HOST:PORT. */
  readonly address: string;
  /** Return the output of PgBouncer. */
  log(): string;
  /** Change the mode while clients are connected, as an administrator does. */
  setPoolMode(mode: PoolMode): Promise<void>;
  stop(): Promise<void>;
}

/** Return the installed version as a number, such as 118 for 1.18; 0 if it is not installed. */
export function pgbouncerVersion(): number {
  const [, major, minor] = /PgBouncer (\d+)\.(\d+)/.exec(String(spawnSync("pgbouncer", ["--version"]).stdout)) ?? [];
  return major === undefined ? 0 : Number(major) * 100 + Number(minor);
}

/** Start Debian's PgBouncer in front of a database. The URL must contain a port. */
export async function startPgbouncer(databaseUrl: string, options: PgbouncerOptions = {}): Promise<Pgbouncer> {
  const target = new URL(databaseUrl);
  const [port = 0] = await freePorts(1);
  const dir = await mkdtemp(join(tmpdir(), "rollcall-pgbouncer-"));
  // PgBouncer refuses to run as root. As its own user, it must be able to read its configuration.
  await chmod(dir, 0o755);
  const [host, password] = [target.hostname, decodeURIComponent(target.password)];
  const file = join(dir, "pgbouncer.ini");
  const configuration = (mode: PoolMode) => [
    "[databases]",
    `record = host=${host} port=${target.port} dbname=${target.pathname.slice(1)} user=${target.username} ` +
      `password=${password}`,
    "[pgbouncer]",
    `pool_mode = ${mode}`,
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    `default_pool_size = ${POOL_SIZE}`,
    `max_client_conn = ${options.maxClients ?? 500}`,
    ...(pgbouncerVersion() < KEEPS_STATEMENTS_SINCE ? [] : ["max_prepared_statements = 0"]),
  ];
  const write = (mode: PoolMode) => writeFile(file, `${configuration(mode).join("\n")}\n`, { mode: 0o644 });
  await write(options.poolMode ?? "transaction");
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn("pgbouncer", [...user, file], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  await until(`pgbouncer to listen\n${said}`, () => child.exitCode !== null || isOpen(port));
  if (child.exitCode !== null) throw new Error(`pgbouncer ended: ${said}`);
  return {
    url: `postgres://any@127.0.0.1:${port}/record`,
    address: `127.0.0.1:${port}`,
    log: () => said,
    setPoolMode: async (mode) => {
      const before = said.length;
      await write(mode);
      child.kill("SIGHUP");
      await until("pgbouncer to read its configuration", () => /RELOAD|SIGHUP/i.test(said.slice(before)));
    },
    stop: async () => {
      await ended(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The size of a pool. In session mode, each connection of each process needs a server session. */
const POOL_SIZE = 100;
const KEEPS_STATEMENTS_SINCE = 121;

async function ended(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  await until("the end of pgbouncer", () => child.exitCode !== null || child.signalCode !== null);
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
