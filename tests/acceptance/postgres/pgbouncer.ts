import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../libs/testkit/src/time.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";

/** A PgBouncer in transaction mode before one database. */
export interface Pgbouncer {
  readonly url: string;
  /** What it has said. */
  log(): string;
  stop(): Promise<void>;
}

/** Start Debian's PgBouncer before the database of a URL, which has a port. */
export async function startPgbouncer(databaseUrl: string): Promise<Pgbouncer> {
  const target = new URL(databaseUrl);
  const [port = 0] = await freePorts(1);
  const dir = await mkdtemp(join(tmpdir(), "rollcall-pgbouncer-"));
  // It refuses to be root, and must read its configuration as whom it runs.
  await chmod(dir, 0o755);
  const [host, password] = [target.hostname, decodeURIComponent(target.password)];
  const file = join(dir, "pgbouncer.ini");
  const lines = [
    "[databases]",
    `record = host=${host} port=${target.port} dbname=${target.pathname.slice(1)} user=${target.username} ` +
      `password=${password}`,
    "[pgbouncer]",
    "pool_mode = transaction",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "default_pool_size = 20",
    "max_client_conn = 500",
  ];
  await writeFile(file, `${lines.join("\n")}\n`, { mode: 0o644 });
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
    log: () => said,
    stop: async () => {
      await ended(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

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
