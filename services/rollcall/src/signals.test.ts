import { once } from "node:events";
import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { endAll, RollcallProcess } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

/** Signals that supervisors, log rotation and curious people send to a process that must continue. */
const STRAY = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO"] as const;
const ANY_PORT = ["--port", "0", "--probe-port", "0"];

describe("a long-running process", () => {
  let database: TestDatabase;
  let directory: string;
  let fixture: UpFixture;
  const authority = new TestAuthority();

  beforeAll(async () => {
    database = await createTestDatabase();
    directory = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-signals-"));
    fixture = await createUpFixture();
  });
  afterAll(async () => {
    await endAll();
    await fixture.dispose();
    await database.drop();
    for (const used of [directory, authority.dir]) await rm(used, { recursive: true, force: true });
  });

  const serveWith = (env: Readonly<Record<string, string>>, ...words: readonly string[]) => {
    const all = ["serve", ...words, ...ANY_PORT, "--data-dir", directory];
    return new RollcallProcess(all, { DATABASE_URL: database.url, ...env });
  };
  const serve = (...words: readonly string[]) => serveWith({}, ...words);
  const workers = ["--workers", "2", "--agent-port", "0", "--internal-port", "0"];
  const certificate = () => {
    const { certFile, keyFile } = authority.write("server");
    return ["--tls-cert", certFile, "--tls-key", keyFile];
  };
  const up = (...more: readonly string[]) => fixture.launch("--set", "Up.Agent=false", ...more);
  const agent = () => fixture.agent("n1", ...WITHOUT_WORK);
  const keeper = () => new RollcallProcess(["keeper", "--state-dir", join(directory, "keeper")]);

  it.each<[string, () => RollcallProcess, string, string]>([
    ["serve", () => serve("scheduler"), "serving", "nothing to reload"],
    ["serve with TLS", () => serve("scheduler", ...certificate()), "serving", "reloading"],
    ["serve with workers", () => serve("health", ...workers), "serving", "nothing to reload"],
    ["serve with workers and TLS", () => serve("health", ...workers, ...certificate()), "serving", "reloading"],
    ["up", () => up(), "everything is up", "nothing to reload"],
    ["up with TLS", () => up(...certificate()), "everything is up", "reloading"],
    ["agent", agent, "agent starting", "nothing to reload"],
    ["keeper", keeper, "keeper started", "nothing to reload"],
  ])("should continue on every signal that does not ask it to end: %s", async (_, start, ready, reloads) => {
    const process = start();
    await process.logged(ready);
    for (const times of [0, 1]) {
      process.kill("SIGHUP");
      await process.logged(reloads, { signal: "SIGHUP" }, times);
    }
    for (const signal of STRAY) {
      process.kill(signal);
      await process.logged("signal ignored", { signal });
    }
    // SIGPIPE must not write a log line.
    process.kill("SIGPIPE");
    process.kill("SIGHUP");
    await process.logged(reloads, { signal: "SIGHUP" }, 2);
    // Without a handler, Node.js would start its debugger on SIGUSR1 and report that on standard error.
    expect(process.err).toBe("");
    process.kill("SIGTERM");
    expect(await process.exit()).toBe(0);
    await process.logged("stopped");
  });

  it("should shut down cleanly on SIGQUIT, and when SIGHUP and SIGCONT arrive with SIGTERM", async () => {
    for (const signals of [["SIGQUIT"], ["SIGTERM", "SIGCONT", "SIGHUP"]] as const) {
      const process = serve("scheduler");
      await process.logged("serving");
      for (const signal of signals) process.kill(signal);
      expect(await process.exit()).toBe(0);
      await process.logged("stopped");
    }
  });

  it("should end a migration that waits for its database, without a stack", async () => {
    const silent = createServer();
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const process = new RollcallProcess(["migrate"], { DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/d` });
    await once(silent, "connection");
    process.kill("SIGTERM");
    const code = await process.exit();
    silent.close();
    expect({ code, err: process.err }).toEqual({ code: 1, err: "interrupted by SIGTERM: run migrate again\n" });
  });

  it("should give up a migration whose database stays away, with the reason", async () => {
    const absent = createServer().listen(0, "127.0.0.1");
    await once(absent, "listening");
    const { port } = absent.address() as AddressInfo;
    absent.close();
    const database = { DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/d` };
    const process = new RollcallProcess(["migrate", "--wait", "1s"], database);
    expect({ code: await process.exit(), err: process.err }).toEqual({
      code: 1,
      err: expect.stringMatching(/cannot be reached, gave up waiting: connection refused; start it, or correct host/),
    });
  });

  it("should work when its output is no longer read", async () => {
    const process = await fixture.up("--set", "Compute.Name=here", ...WITHOUT_WORK);
    process.closeOutput();
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) process.kill(signal);
    await fixture.client.becomes("here", "APPROVED CONNECTED HEALTHY");
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) process.kill(signal);
    expect((await fetch(`http://${fixture.probes}/readyz`)).status).toBe(200);
    process.kill("SIGTERM");
    expect(await process.exit()).toBe(0);
  });

  it("should work when standard error breaks, to which Node.js writes its warnings", async () => {
    // Let Node.js write a line to standard error about every connection.
    const process = serveWith({ NODE_DEBUG: "net" }, "scheduler");
    const { probe_port: port } = await process.logged("serving");
    process.closeOutput();
    for (let calls = 0; calls < 3; calls += 1) {
      const headers = { connection: "close" };
      expect((await fetch(`http://127.0.0.1:${port}/livez`, { headers })).status).toBe(200);
    }
    process.kill("SIGTERM");
    expect(await process.exit()).toBe(0);
  });
});
