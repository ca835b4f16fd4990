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

/** Any version of Postgres, without a supervisor: it may be killed, copied and promoted. */
export interface RawServer {
  readonly dataDirectory: string;
  readonly port: number;
  /** Of the database `rollcall`, or of another. */
  url(database?: string): string;
  start(): Promise<void>;
  /** Fast shutdown; SIGKILL is a crash. */
  end(signal?: NodeJS.Signals): Promise<void>;
  log(): string;
}

/** Where servers of one test are. */
export interface RawCluster {
  readonly root: string;
  readonly runAs: RunAs;
  /** Make a data directory, with a database `rollcall` once it is started. */
  init(name: string, settings?: readonly string[]): Promise<RawServer>;
  /** A server on a data directory that is there. */
  serve(dataDirectory: string): Promise<RawServer>;
  /** End every server and remove everything. */
  drop(): Promise<void>;
}

/** Prepare servers of the packaged version, or of other programs. */
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

/** Copy a directory as it is, owners included. */
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
