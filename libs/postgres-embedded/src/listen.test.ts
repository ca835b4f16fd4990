import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { eventually } from "@rollcall/testkit";
import { needsRoot } from "@rollcall/testkit/needs";
import { EmbeddedServers, query } from "../test/embedded-servers.ts";

const servers = new EmbeddedServers();

afterEach(() => servers.stopAll());

afterAll(() => servers.dispose());

// Uses a real server, because only its clients can confirm where it listens.
describe("where an embedded Postgres listens and runs", () => {
  it("should run a server on a socket that other users cannot reach, with a password that only the owner can read", async () => {
    const dir = await servers.newDir();
    const server = await servers.start(dir);
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

  it.each(["socket", "loopback"] as const)("should keep data, password and place over a stop: %s", async (listen) => {
    const dir = await servers.newDir();
    const first = await servers.start(dir, { listen });
    await query(first.url, "create table kept (n int)");
    await first.stop();
    await expect(query(first.url, "select 1")).rejects.toThrow(/ECONNREFUSED|ENOENT/);
    const second = await servers.start(dir, { listen });
    expect(second.url).toBe(first.url);
    expect(second.adopted).toBe(false);
    expect(await query(second.url, "select * from kept")).toEqual([]);
  });

  it("should listen on loopback when requested, below the ephemeral ports", async () => {
    const server = await servers.start(await servers.newDir(), { listen: "loopback" });
    expect(server.host).toBe("127.0.0.1");
    expect(Number(new URL(server.url).port)).toBeLessThan(32_768);
    const [settings] = await query(
      server.url,
      "select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as " +
        "directories",
    );
    expect(settings).toEqual({ addresses: "127.0.0.1", directories: "" });
  });

  it("should continue on a socket with data that was served on loopback", async () => {
    const dir = await servers.newDir();
    const first = await servers.start(dir, { listen: "loopback" });
    await query(first.url, "create table kept (n int)");
    await first.stop();
    const second = await servers.start(dir);
    expect(second.host).toBe(join(dir, "socket"));
    expect(await query(second.url, "select * from kept")).toEqual([]);
  });

  it("should use a short socket directory for a long path, the same after a restart", async () => {
    const dir = join(await servers.newDir(), "long".repeat(25), "x");
    const first = await servers.start(dir);
    expect(first.host).toMatch(/rollcall-\w+$/);
    expect((await stat(first.host)).mode & 0o777).toBe(0o700);
    expect(await query(first.url, "select 1 as one")).toEqual([{ one: 1 }]);
    await first.stop();
    const second = await servers.start(dir);
    expect(second.url).toBe(first.url);
    await second.stop();
    await rm(first.host, { recursive: true });
  });

  it("should listen in a directory with special characters in its name", async () => {
    const dir = join(await servers.newDir(), `a b,c"d'e%20+ü#?&=`);
    const server = await servers.start(dir);
    expect(server.host).toBe(join(dir, "socket"));
    expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should start despite a socket lock file that names an unrelated process", async () => {
    const dir = await servers.newDir();
    const first = await servers.start(dir);
    await first.stop();
    await writeFile(join(first.host, ".s.PGSQL.5432.lock"), `${process.pid}\n`, { mode: 0o600 });
    const second = await servers.start(dir);
    expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("should report that the required port is taken", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await eventually(() => expect(silent.listening).toBe(true));
    const { port } = silent.address() as { port: number };
    await expect(servers.start(await servers.newDir(), { listen: "loopback", port })).rejects.toThrow(
      `port ${port} on 127.0.0.1 is in use by another process`,
    );
    await new Promise((resolve) => silent.close(resolve));
  });

  const { it: asRoot } = needsRoot();

  asRoot("should say which folder another user cannot enter, and open one that is its caller's", async () => {
    const parent = await mkdtemp("/tmp/rollcall-user-");
    const dir = join(parent, "pg");
    try {
      await expect(servers.start(dir, { withoutNamespaces: true })).rejects.toThrow(
        /^Postgres does not run as root, and user \d+, which it runs as here, cannot enter (\S+) \(mode 0700\) on the way to \1\/pg: /,
      );
      const server = await servers.start(dir, { withoutNamespaces: true, parent });
      expect((await stat(parent)).mode & 0o777).toBe(0o711);
      expect(server.host).toBe(join(dir, "socket"));
      expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
      await server.stop();
    } finally {
      await rm(parent, { recursive: true, force: true, maxRetries: 10 });
    }
  });

  asRoot("should run under another user where root cannot enter a namespace", async () => {
    // Use /tmp, because the other user must be able to reach the directory.
    const parent = await mkdtemp("/tmp/rollcall-user-");
    await chmod(parent, 0o755);
    try {
      const first = await servers.start(join(parent, "pg"), { withoutNamespaces: true });
      const status = await readFile(`/proc/${first.pid}/status`, "utf8");
      expect(status).not.toMatch(/^Uid:\s+0\s/m);
      await first.stop();
      // If another user owns the data, the server runs as that user, with or without namespaces.
      const second = await servers.start(join(parent, "pg"));
      expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
      await second.stop();
    } finally {
      await rm(parent, { recursive: true, force: true, maxRetries: 10 });
    }
  });
});
