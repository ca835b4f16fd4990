import { type ChildProcess, spawn } from "node:child_process";
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/runtime";
import { eventually } from "@rollcall/testkit";
import pg from "pg";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";

const SETTINGS = { fsync: "off", shared_buffers: "16MB", max_connections: "20" };

let root: string;
let directories = 0;
const running: EmbeddedPostgres[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "rollcall-embedded-"));
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
});

afterAll(async () => {
  await rm(root, { recursive: true, force: true, maxRetries: 10 });
});

function newDir(): string {
  directories += 1;
  return join(root, `${directories}`);
}

async function start(
  dir: string,
  options: Partial<Omit<EmbeddedPostgresOptions, "dir" | "log" | "settings">> = {},
) {
  const server = await startEmbeddedPostgres({
    dir,
    log: silentLogger,
    settings: SETTINGS,
    ...options,
  });
  running.push(server);
  return server;
}

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Write what a server that crashed long ago would have left. */
async function leavePostmasterFile(dir: string, pid: number, port: number): Promise<void> {
  const lines = [pid, join(dir, "data"), 1_700_000_000, port, "", "127.0.0.1", "1 1", "ready"];
  await writeFile(join(dir, "data", "postmaster.pid"), `${lines.join("\n")}\n`, { mode: 0o600 });
}

function portOf({ url }: EmbeddedPostgres): number {
  return Number(new URL(url).port);
}

/** A process that has nothing to do with any of this. */
function startStranger(): ChildProcess {
  return spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
}

function isAlive(stranger: ChildProcess): boolean {
  return stranger.exitCode === null && stranger.signalCode === null;
}

describe("startEmbeddedPostgres()", () => {
  it("should run a server on a socket that other users cannot reach, with a password that only the owner can read", async () => {
    const dir = newDir();
    const server = await start(dir);
    expect(server.adopted).toBe(false);
    expect(server.host).toBe(join(dir, "socket"));
    expect((await stat(server.host)).mode & 0o777).toBe(0o700);
    expect((await stat(join(server.host, ".s.PGSQL.5432"))).mode & 0o077).toBe(0);
    expect((await stat(join(dir, "password"))).mode & 0o777).toBe(0o600);
    expect((await stat(dir)).mode & 0o077).toBe(0);
    const [settings] = await query(
      server.url,
      "select current_database() as db, current_setting('listen_addresses') as addresses, inet_server_port() as port",
    );
    expect(settings).toEqual({ db: "rollcall", addresses: "", port: null });
    const wrong = new URL(server.url);
    wrong.password = "wrong";
    await expect(query(wrong.href, "select 1")).rejects.toThrow("password authentication failed");
    const [user] = await query(
      server.url,
      "select left(rolpassword, 13) as secret from pg_authid where rolname = 'rollcall'",
    );
    expect(user).toEqual({ secret: "SCRAM-SHA-256" });
  });

  it.each(["socket", "loopback"] as const)(
    "should keep data, password and place over a stop: %s",
    async (listen) => {
      const dir = newDir();
      const first = await start(dir, { listen });
      await query(first.url, "create table kept (n int)");
      await first.stop();
      await expect(query(first.url, "select 1")).rejects.toThrow(/ECONNREFUSED|ENOENT/);
      const second = await start(dir, { listen });
      expect(second.url).toBe(first.url);
      expect(second.adopted).toBe(false);
      expect(await query(second.url, "select * from kept")).toEqual([]);
    },
  );

  it("should listen on loopback where it is told to, below the ports of outgoing connections", async () => {
    const server = await start(newDir(), { listen: "loopback" });
    expect(server.host).toBe("127.0.0.1");
    expect(Number(new URL(server.url).port)).toBeLessThan(32_768);
    const [settings] = await query(
      server.url,
      "select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as directories",
    );
    expect(settings).toEqual({ addresses: "127.0.0.1", directories: "" });
  });

  it("should go on with what was on loopback, on a socket", async () => {
    const dir = newDir();
    const first = await start(dir, { listen: "loopback" });
    await query(first.url, "create table kept (n int)");
    await first.stop();
    const second = await start(dir);
    expect(second.host).toBe(join(dir, "socket"));
    expect(await query(second.url, "select * from kept")).toEqual([]);
  });

  it("should have its socket in a short directory where its own has too long a path, the same over a stop", async () => {
    const dir = join(newDir(), "long".repeat(25), "x");
    const first = await start(dir);
    expect(first.host).toMatch(/rollcall-\w+$/);
    expect((await stat(first.host)).mode & 0o777).toBe(0o700);
    expect(await query(first.url, "select 1 as one")).toEqual([{ one: 1 }]);
    await first.stop();
    const second = await start(dir);
    expect(second.url).toBe(first.url);
    await second.stop();
    await rm(first.host, { recursive: true });
  });

  it("should listen in a directory whose name has every kind of sign", async () => {
    const dir = join(newDir(), `a b,c"d'e%20+ü#?&=`);
    const server = await start(dir);
    expect(server.host).toBe(join(dir, "socket"));
    expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should start over the lock file of a socket that names a stranger's process", async () => {
    const dir = newDir();
    const first = await start(dir);
    await first.stop();
    await writeFile(join(first.host, ".s.PGSQL.5432.lock"), `${process.pid}\n`, { mode: 0o600 });
    const second = await start(dir);
    expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should adopt a server that was released, and be able to stop it", async () => {
    const dir = newDir();
    const first = await start(dir);
    await first.release();
    const second = await start(dir);
    expect(second.adopted).toBe(true);
    expect(second.pid).toBe(first.pid);
    expect(second.url).toBe(first.url);
    await second.stop();
    await expect(query(first.url, "select 1")).rejects.toThrow("ENOENT");
  });

  it.each([false, true])(
    "should bring the server back when it is killed (adopted: %s)",
    async (adopted) => {
      const dir = newDir();
      let server = await start(dir);
      if (adopted) {
        await server.release();
        server = await start(dir);
      }
      await query(server.url, "create table kept (n int)");
      const killed = server.pid;
      process.kill(killed ?? 0, "SIGKILL");
      await eventually(async () => {
        expect(await query(server.url, "select * from kept")).toEqual([]);
        expect(server.pid).not.toBe(killed);
      });
    },
  );

  it("should keep the server when one of its backends is killed", async () => {
    const server = await start(newDir());
    const pid = server.pid;
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => {});
    await client.connect();
    const { rows } = await client.query("select pg_backend_pid() as pid");
    process.kill(rows[0].pid, "SIGKILL");
    await eventually(async () => {
      const [answer] = await query(
        server.url,
        "select count(*)::int as supervisors from pg_stat_activity where application_name like 'rollcall supervisor%'",
      );
      expect(answer).toEqual({ supervisors: 1 });
    });
    expect(server.pid).toBe(pid);
    await client.end();
  });

  it("should start anew over a file that names a stranger's process, and leave the stranger alone", async () => {
    const dir = newDir();
    const first = await start(dir, { listen: "loopback" });
    await first.stop();
    for (const pid of [process.pid, startStranger().pid ?? 0]) {
      await leavePostmasterFile(dir, pid, portOf(first));
      const server = await start(dir, { listen: "loopback" });
      expect(server.adopted).toBe(false);
      expect(server.pid).not.toBe(pid);
      await server.stop();
      expect(process.kill(pid, 0)).toBe(true);
      if (pid !== process.pid) process.kill(pid);
    }
  });

  it("should neither adopt nor stop a foreign Postgres on its port, even one that takes its password", async () => {
    const [ours, foreign] = [newDir(), newDir()];
    const first = await start(ours, { listen: "loopback" });
    await first.stop();
    await mkdir(foreign, { mode: 0o700 });
    await cp(join(ours, "password"), join(foreign, "password"));
    const stranger = await start(foreign, { listen: "loopback", port: portOf(first) });
    await query(stranger.url, "create table theirs (n int)");
    for (const pid of [stranger.pid ?? 0, process.pid]) {
      await leavePostmasterFile(ours, pid, portOf(first));
      const server = await start(ours, { listen: "loopback" });
      expect(server.adopted).toBe(false);
      expect(portOf(server)).not.toBe(portOf(stranger));
      expect(await query(server.url, "select to_regclass('theirs') as theirs")).toEqual([
        { theirs: null },
      ]);
      await server.stop();
      expect(await query(stranger.url, "select * from theirs")).toEqual([]);
    }
  });

  it("should never take a process that is alive and silent on the recorded port for its server", async () => {
    const dir = newDir();
    const first = await start(dir, { listen: "loopback" });
    await first.stop();
    const stranger = startStranger();
    const silent = createServer((socket) => socket.destroy()).listen(portOf(first), "127.0.0.1");
    await leavePostmasterFile(dir, stranger.pid ?? 0, portOf(first));
    const server = await start(dir, { listen: "loopback" });
    expect(server.adopted).toBe(false);
    expect(portOf(server)).not.toBe(portOf(first));
    await server.stop();
    expect(isAlive(stranger)).toBe(true);
    stranger.kill();
    await new Promise((resolve) => silent.close(resolve));
  });

  it("should let one of several starts on one directory win and tell the others why", async () => {
    const dir = newDir();
    const outcomes = await Promise.allSettled([start(dir), start(dir), start(dir)]);
    const won = outcomes.filter(({ status }) => status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      expect(String(outcome.reason)).toMatch(
        `${dir}/data is already supervised by another process (rollcall supervisor ${process.pid})`,
      );
    }
    expect(await query(running[0]?.url ?? "", "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should say so when the port that is insisted on is taken", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await eventually(() => expect(silent.listening).toBe(true));
    const { port } = silent.address() as { port: number };
    await expect(start(newDir(), { listen: "loopback", port })).rejects.toThrow(
      `port ${port} on 127.0.0.1 is taken by another process`,
    );
    await new Promise((resolve) => silent.close(resolve));
  });

  it("should refuse data of another version of Postgres", async () => {
    const dir = newDir();
    await mkdir(join(dir, "data"), { recursive: true, mode: 0o700 });
    await writeFile(join(dir, "data", "PG_VERSION"), "17\n");
    await expect(start(dir)).rejects.toThrow(/was made by Postgres 17, and the packaged one is 18/);
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;

  asRoot(
    "should say which folder another user cannot enter, and open one that is its caller's",
    async () => {
      const parent = await mkdtemp("/tmp/rollcall-user-");
      const dir = join(parent, "pg");
      try {
        await expect(start(dir, { withoutNamespaces: true })).rejects.toThrow(
          /^Postgres does not run as root, and user \d+, as which it runs here, cannot enter (\S+) \(mode 0700\) on the way to \1\/pg: choose a data directory elsewhere/,
        );
        const server = await start(dir, { withoutNamespaces: true, parent });
        expect((await stat(parent)).mode & 0o777).toBe(0o711);
        expect(server.host).toBe(join(dir, "socket"));
        expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
        await server.stop();
      } finally {
        await rm(parent, { recursive: true, force: true, maxRetries: 10 });
      }
    },
  );

  asRoot("should run under another user where root cannot enter a namespace", async () => {
    // The other user has to get through to the directory.
    const parent = await mkdtemp("/tmp/rollcall-user-");
    await chmod(parent, 0o755);
    try {
      const first = await start(join(parent, "pg"), { withoutNamespaces: true });
      const status = await readFile(`/proc/${first.pid}/status`, "utf8");
      expect(status).not.toMatch(/^Uid:\s+0\s/m);
      await first.stop();
      // Data that belongs to another user is run as that user, namespaces or not.
      const second = await start(join(parent, "pg"));
      expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
      await second.stop();
    } finally {
      await rm(parent, { recursive: true, force: true, maxRetries: 10 });
    }
  });
});
