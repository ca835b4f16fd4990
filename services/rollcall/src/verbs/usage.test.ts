import { describe, expect, it } from "@jest/globals";
import { UsageError } from "@rollcall/cli";
import { createTestShell } from "../testing/run-client.ts";
import { runAgent } from "./agent.ts";
import { runBackup } from "./backup.ts";
import { runKeeper } from "./keeper.ts";
import { runMigrate } from "./migrate.ts";
import { runRestore } from "./restore.ts";
import { runServe } from "./serve.ts";
import { runUp } from "./up.ts";

const shell = createTestShell();

describe("up, serve and agent", () => {
  it.each([
    [runServe, [], "missing service, should be one of: registry, health, health-query, admin, scheduler, console"],
    [
      runServe,
      ["pages"],
      "'pages' is not a service, should be one of: registry, health, health-query, admin, scheduler, console",
    ],
    [runServe, ["admin", "admin"], "'admin' is given twice"],
    [runServe, ["health-query", "health"], "health includes health-query: name only one of them"],
    [runServe, ["admin", "registry"], "serve registry admin needs a Postgres: set DATABASE_URL or --database-url"],
    [runMigrate, [], "migrate needs a Postgres: set DATABASE_URL or --database-url"],
    [runMigrate, ["now"], "migrate takes no arguments: 'now'"],
    [runServe, ["console"], "serve console needs a Postgres: set DATABASE_URL or --database-url"],
    [runServe, ["registry"], "serve registry needs a Postgres: set DATABASE_URL or --database-url"],
    [runServe, ["registry", "--agent"], "unknown option '--agent'"],
    [runUp, ["now"], "up takes no arguments: 'now'"],
    [runUp, ["--prt", "7"], "unknown option '--prt'\n(Did you mean --port?)"],
    [runUp, ["--database-direct-url", "x"], /Database\.DirectURL: /],
    [runBackup, ["a", "b"], "backup takes one file; unexpected argument 'b'"],
    [runBackup, ["verify"], "backup verify takes one file"],
    [runRestore, [], "restore takes one file"],
    [runAgent, ["now"], "agent takes no arguments: 'now'"],
    [runAgent, ["--manual-approval"], "unknown option '--manual-approval'"],
  ] as const)("should refuse wrong usage (%#)", async (run, words, message) => {
    const error = typeof message === "string" ? new UsageError(message) : message;
    await expect(run(words, shell, process)).rejects.toThrow(error);
  });

  it("should name every problem of the configuration", async () => {
    await expect(runUp(["--port", "x", "--log-level", "loud"], shell, process)).rejects.toThrow(
      /^invalid configuration:\nflag --port: Listen\.Port: "x" is not a whole number\nflag --log-level: /,
    );
    await expect(runUp(["--set", "Database.PoolSize=x"], shell, process)).rejects.toThrow(
      /^invalid configuration:\nflag --set: Database\.PoolSize: "x" is not a whole number/,
    );
    await expect(runAgent(["--label", "rollcall.io/x=y"], shell, process)).rejects.toThrow(/rollcall\.io\/x/);
  });

  it.each([
    [runUp, "up [options]"],
    [runServe, "serve <service>... [options]"],
    [runMigrate, "migrate [options]"],
    [runAgent, "agent [options]"],
    [runKeeper, "keeper [options]"],
    [runBackup, "backup [file] [options]"],
    [runRestore, "restore <file> [options]"],
  ] as const)("should print help (%#)", async (run, usage) => {
    const asked = createTestShell();
    expect(await run(["--help"], asked, process)).toBe(0);
    expect(asked.written()).toContain(`Usage: rollcall ${usage}`);
  });

  it("should wrap help to COLUMNS without a terminal", async () => {
    const longest = async (env: Readonly<Record<string, string>>) => {
      const asked = createTestShell({ env });
      await runServe(["--help"], asked, process);
      const prose = asked
        .written()
        .split("\n")
        .filter((line) => !line.startsWith("  "));
      return Math.max(...prose.map((line) => line.length));
    };
    expect(await longest({})).toBeLessThanOrEqual(80);
    expect(await longest({ COLUMNS: "62" })).toBeLessThanOrEqual(62);
    expect(await longest({ COLUMNS: "120" })).toBeGreaterThan(80);
  });

  it.each([
    ["registry", /--port VALUE[^-]*Default 7710\./, false],
    ["health", /--probe-port VALUE[\s\S]{0,200}Default 7792\./, true],
    ["admin", /--port VALUE[^-]*Default 7712\./, false],
    ["health-query", /--port VALUE[\s\S]{0,200}Default 7711\./, false],
    ["console", /--probe-port VALUE[^-]*Default 7795\./, false],
    ["admin registry", /--port VALUE[^-]*Default 7700\./, false],
    ["health registry", /--probe-port VALUE[^-]*Default 7790\./, true],
  ])("should print the ports of the named services: %s", async (services, port, hasStreams) => {
    const asked = createTestShell();
    expect(await runServe([...services.split(" "), "--help"], asked, process)).toBe(0);
    expect(asked.written()).toMatch(port);
    expect(asked.written().includes("--agent-port")).toBe(hasStreams);
    expect(asked.written().includes("--workers")).toBe(hasStreams);
  });
});
