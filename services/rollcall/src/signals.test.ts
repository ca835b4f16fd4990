import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { endAll, RollcallProcess } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

/** What supervisors, log rotation and curious people send to a process that is to continue. */
const STRAY = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO"] as const;
const ANY_PORT = ["--port", "0", "--probe-port", "0"];

describe("a process that runs for long", () => {
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
    // No line answers to it.
    process.kill("SIGPIPE");
    process.kill("SIGHUP");
    await process.logged(reloads, { signal: "SIGHUP" }, 2);
    // What Node.js does on SIGUSR1 unless it is kept from it.
    expect(process.err).toBe("");
    process.kill("SIGTERM");
    expect(await process.exit()).toBe(0);
    await process.logged("ended");
  });

  it("should end in order on SIGQUIT, and when a service manager sends SIGHUP and SIGCONT along with SIGTERM", async () => {
    for (const signals of [["SIGQUIT"], ["SIGTERM", "SIGCONT", "SIGHUP"]] as const) {
      const process = serve("scheduler");
      await process.logged("serving");
      for (const signal of signals) process.kill(signal);
      expect(await process.exit()).toBe(0);
      await process.logged("ended");
    }
  });

  it("should work when nobody reads what it writes any more", async () => {
    const process = await fixture.up("--set", "Compute.Name=here", ...WITHOUT_WORK);
    process.closeOutput();
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) process.kill(signal);
    await fixture.client.becomes("here", "APPROVED CONNECTED HEALTHY");
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) process.kill(signal);
    expect((await fetch(`http://${fixture.probes}/readyz`)).status).toBe(200);
    process.kill("SIGTERM");
    expect(await process.exit()).toBe(0);
  });

  it("should work when standard error breaks, where Node.js writes its warnings", async () => {
    // Node.js writes a line about every connection.
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
