import { type ChildProcess, spawn } from "node:child_process";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, jest } from "@jest/globals";
import { eventually } from "@rollcall/testkit";
import pg from "pg";
import { EmbeddedServers, portOf, query } from "../test/embedded-servers.ts";

// Postgres is initialised and started several times.
jest.setTimeout(300_000);

const servers = new EmbeddedServers();

afterEach(() => servers.stopAll());

afterAll(() => servers.dispose());

/** Write the files that a crashed server leaves behind. */
async function leavePostmasterFile(dir: string, pid: number, port: number): Promise<void> {
  const lines = [pid, join(dir, "data"), 1_700_000_000, port, "", "127.0.0.1", "1 1", "ready"];
  await writeFile(join(dir, "data", "postmaster.pid"), `${lines.join("\n")}\n`, { mode: 0o600 });
}

/** Start an unrelated process. */
function startUnrelatedProcess(): ChildProcess {
  return spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
}

function isAlive(unrelated: ChildProcess): boolean {
  return unrelated.exitCode === null && unrelated.signalCode === null;
}

describe("startEmbeddedPostgres()", () => {
  it("should adopt a server that was released, and be able to stop it", async () => {
    const dir = await servers.newDir();
    const first = await servers.start(dir);
    await first.release();
    const second = await servers.start(dir);
    expect(second.adopted).toBe(true);
    expect(second.pid).toBe(first.pid);
    expect(second.url).toBe(first.url);
    await second.stop();
    await expect(query(first.url, "select 1")).rejects.toThrow("ENOENT");
  });

  it.each([false, true])("should bring the server back when it is killed (adopted: %s)", async (adopted) => {
    const dir = await servers.newDir();
    let server = await servers.start(dir);
    if (adopted) {
      await server.release();
      server = await servers.start(dir);
    }
    await query(server.url, "create table kept (n int)");
    const killed = server.pid;
    process.kill(killed ?? 0, "SIGKILL");
    await eventually(async () => {
      expect(await query(server.url, "select * from kept")).toEqual([]);
      expect(server.pid).not.toBe(killed);
    });
  });

  it("should keep the server when one of its backends is killed", async () => {
    const server = await servers.start(await servers.newDir());
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

  it("should start despite a file that names an unrelated process", async () => {
    const dir = await servers.newDir();
    const first = await servers.start(dir, { listen: "loopback" });
    await first.stop();
    for (const pid of [process.pid, startUnrelatedProcess().pid ?? 0]) {
      await leavePostmasterFile(dir, pid, portOf(first));
      const server = await servers.start(dir, { listen: "loopback" });
      expect(server.adopted).toBe(false);
      expect(server.pid).not.toBe(pid);
      await server.stop();
      expect(process.kill(pid, 0)).toBe(true);
      if (pid !== process.pid) process.kill(pid);
    }
  });

  it("should neither adopt nor stop another Postgres on its port, even with the same password", async () => {
    const [ours, foreign] = [await servers.newDir(), await servers.newDir()];
    const first = await servers.start(ours, { listen: "loopback" });
    await first.stop();
    await mkdir(foreign, { mode: 0o700 });
    await cp(join(ours, "password"), join(foreign, "password"));
    const unrelated = await servers.start(foreign, { listen: "loopback", port: portOf(first) });
    await query(unrelated.url, "create table theirs (n int)");
    for (const pid of [unrelated.pid ?? 0, process.pid]) {
      await leavePostmasterFile(ours, pid, portOf(first));
      const server = await servers.start(ours, { listen: "loopback" });
      expect(server.adopted).toBe(false);
      expect(portOf(server)).not.toBe(portOf(unrelated));
      expect(await query(server.url, "select to_regclass('theirs') as theirs")).toEqual([{ theirs: null }]);
      await server.stop();
      expect(await query(unrelated.url, "select * from theirs")).toEqual([]);
    }
  });

  it("should not mistake a silent process on the recorded port for its server", async () => {
    const dir = await servers.newDir();
    const first = await servers.start(dir, { listen: "loopback" });
    await first.stop();
    const unrelated = startUnrelatedProcess();
    const silent = createServer((socket) => socket.destroy()).listen(portOf(first), "127.0.0.1");
    await leavePostmasterFile(dir, unrelated.pid ?? 0, portOf(first));
    const server = await servers.start(dir, { listen: "loopback" });
    expect(server.adopted).toBe(false);
    expect(portOf(server)).not.toBe(portOf(first));
    await server.stop();
    expect(isAlive(unrelated)).toBe(true);
    unrelated.kill();
    await new Promise((resolve) => silent.close(resolve));
  });

  it("should let one of several concurrent starts win and explain it to the others", async () => {
    const dir = await servers.newDir();
    const outcomes = await Promise.allSettled([servers.start(dir), servers.start(dir), servers.start(dir)]);
    const won = outcomes.filter(({ status }) => status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      expect(String(outcome.reason)).toMatch(
        `${dir}/data is already supervised by another process (rollcall supervisor ${process.pid})`,
      );
    }
    expect(await query(servers.running[0]?.url ?? "", "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should refuse data of another version of Postgres", async () => {
    const dir = await servers.newDir();
    await mkdir(join(dir, "data"), { recursive: true, mode: 0o700 });
    await writeFile(join(dir, "data", "PG_VERSION"), "17\n");
    await expect(servers.start(dir)).rejects.toThrow(/was created by Postgres 17, but the packaged version is 18/);
  });
});
