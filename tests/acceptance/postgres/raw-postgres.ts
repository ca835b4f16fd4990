import { type ChildProcess, execFile, spawn } from "node:child_process";
import { appendFile, chmod, chown, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Binaries, locateBinaries, programsFor } from "../../../libs/postgres-embedded/src/programs.ts";
import {
  chooseRunAs,
  commandAs,
  namespacesWork,
  type RunAs,
  unprivilegedAccount,
} from "../../../libs/postgres-embedded/src/run-as.ts";
import { query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";

const run = promisify(execFile);

/** A Postgres of any version, without a supervisor. It can be killed, copied and promoted. */
export interface RawServer {
  readonly dataDirectory: string;
  readonly port: number;
  /** The URL of the database `rollcall` or of another one. */
  url(database?: string): string;
  start(): Promise<void>;
  /** End the server. The default is a fast shutdown; SIGKILL ends it as in a crash. */
  end(signal?: NodeJS.Signals): Promise<void>;
  log(): string;
}

/** The servers of one test. */
export interface RawCluster {
  readonly root: string;
  readonly runAs: RunAs;
  /** Create a data directory. After its start, the server has a database `rollcall`. */
  init(name: string, settings?: readonly string[]): Promise<RawServer>;
  /** Create a server for an existing data directory. */
  serve(dataDirectory: string): Promise<RawServer>;
  /** Stop every server and remove all files. */
  drop(): Promise<void>;
}

/** Prepare servers of the packaged version or of another version. */
export async function createRawCluster(other?: Binaries): Promise<RawCluster> {
  const root = await mkdtemp(join(await realpath(tmpdir()), "rollcall-raw-"));
  const installed = other ?? (await locateBinaries(process.platform, process.arch));
  const unprivileged = unprivilegedAccount();
  const runAs = chooseRunAs({
    ...{ uid: process.getuid?.(), namespacesWork: namespacesWork(), dataOwnerUid: null, unprivileged },
  });
  await chmod(root, 0o755);
  const binaries = runAs.kind === "user" ? await programsFor(installed, runAs, root) : installed;
  const servers: RawServer[] = [];
  const serve = async (dataDirectory: string) => {
    const [port = 0] = await freePorts(1);
    const server = rawServer(binaries, runAs, dataDirectory, port);
    servers.push(server);
    return server;
  };
  return {
    root,
    runAs,
    serve,
    init: async (name, settings = []) => {
      const dataDirectory = join(root, name);
      await mkdir(dataDirectory, { mode: 0o700 });
      await giveTo(runAs, dataDirectory);
      const words = [
        "-D",
        dataDirectory,
        "-U",
        "rollcall",
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
        "--no-sync",
      ];
      const { command, args, options } = commandAs(runAs, binaries.initdb, words);
      await run(command, [...args], { ...options, cwd: "/" });
      await appendFile(join(dataDirectory, "postgresql.conf"), `${["fsync = off", ...settings].join("\n")}\n`);
      return serve(dataDirectory);
    },
    drop: async () => {
      await Promise.all(servers.map((server) => server.end("SIGINT")));
      await rm(root, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Copy a directory with the owners of its files. */
export async function copyDirectory(from: string, to: string): Promise<void> {
  await run("cp", ["-a", from, to]);
}

async function giveTo(runAs: RunAs, path: string): Promise<void> {
  if (runAs.kind === "user") await chown(path, runAs.uid, runAs.gid);
}

function rawServer(binaries: Binaries, runAs: RunAs, dataDirectory: string, port: number): RawServer {
  let child: ChildProcess | null = null;
  let said = "";
  const url = (database = "rollcall") => `postgres://rollcall@127.0.0.1:${port}/${database}`;
  return {
    dataDirectory,
    port,
    url,
    log: () => said,
    start: async () => {
      const listening = ["-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
      const { command, args, options } = commandAs(runAs, binaries.postgres, ["-D", dataDirectory, ...listening]);
      const started = spawn(command, [...args], { ...options, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
      started.stderr.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
      child = started;
      await until(`Postgres to answer at ${port}`, async () => {
        if (started.exitCode !== null) return true;
        return query(url("postgres"), "select 1").then(
          () => true,
          () => false,
        );
      });
      if (started.exitCode !== null) throw new Error(`Postgres ended: ${said}`);
      const [recovery] = await query(url("postgres"), "select pg_is_in_recovery() as standby");
      if (recovery?.standby === true) return;
      const found = await query(url("postgres"), "select from pg_database where datname = 'rollcall'");
      if (found.length === 0) await query(url("postgres"), "create database rollcall");
    },
    end: async (signal = "SIGINT") => {
      const running = child;
      child = null;
      if (running === null || running.exitCode !== null || running.signalCode !== null) return;
      running.kill(signal);
      await until("the end of Postgres", () => running.exitCode !== null || running.signalCode !== null);
    },
  };
}
