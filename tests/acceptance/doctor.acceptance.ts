import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { findLibfaketime } from "../../bench/src/drills/libfaketime.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { createTestDatabase, type TestDatabase, until } from "../../libs/testkit/src/index.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import type { ServiceName } from "../../services/rollcall/src/control-plane/process-plan.ts";
import { bundledMain } from "../../services/rollcall/src/testing/bundled-main.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { endAll, RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";

interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly status: string;
  readonly found: string;
}

const OLD_VERSION = "0.0.9";
const SKEW = "+90s";
const library = findLibfaketime();

let database: TestDatabase;
let authority: TestAuthority;
let root: string;
let ports: Record<ServiceName, number>;
const processes = new Map<ServiceName, RollcallProcess>();

beforeAll(async () => {
  database = await createTestDatabase();
  authority = new TestAuthority();
  root = mkdtempSync(join(tmpdir(), "rollcall-doctor-"));
  const [registry = 0, health = 0, admin = 0, scheduler = 0] = await freePorts(4);
  ports = { registry, health, admin, scheduler, "health-query": 0, console: 0 };
  // The certificate is valid until tomorrow, which doctor must report as too short.
  const { certFile, keyFile } = authority.write("server");
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile, "--tls-ca", authority.caFile];
  const skew = library === null ? {} : { LD_PRELOAD: library, FAKETIME: SKEW, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
  start("admin", []);
  start("registry", [], skew);
  start("health", tls);
  start("scheduler", [], {}, await oldBuild());
  for (const process of processes.values()) await process.logged("serving");
  await until("every process to report", async () => {
    const rows = await database.store.db.selectFrom("process_reports").select("instance").execute();
    return rows.length === 4;
  });
});

afterAll(async () => {
  await endAll();
  await database.drop();
  for (const folder of [root, authority.dir]) rmSync(folder, { recursive: true, force: true });
});

function start(service: ServiceName, more: readonly string[], env: Record<string, string> = {}, main?: string): void {
  const free = ["--probe-port", "0", "--agent-port", "0", "--internal-port", "0"];
  const words = ["serve", service, "--port", String(ports[service]), ...free, "--data-dir", root, ...more];
  const all = { DATABASE_URL: database.url, ...env };
  processes.set(service, new RollcallProcess(words, all, undefined, main));
}

/** Create a copy of the built program that reports an old release as its version. */
async function oldBuild(): Promise<string> {
  const main = await bundledMain();
  const built = dirname(dirname(main));
  const folder = join(root, "old");
  cpSync(built, folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(built, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, version: OLD_VERSION }));
  symlinkSync(join(dirname(dirname(dirname(built)))), join(folder, "node_modules"));
  return join(folder, "src/main.js");
}

async function examine(): Promise<{ readonly code: number | string; readonly findings: readonly Finding[] }> {
  const addresses = (["registry", "admin", "scheduler"] as const).flatMap((it) => [
    `--${it}`,
    `http://127.0.0.1:${ports[it]}`,
  ]);
  const health = ["--health", `https://127.0.0.1:${ports.health}`, "--ca-file", authority.caFile];
  const token = ["--token-file", join(root, "admin-token")];
  const doctor = new RollcallProcess(["doctor", "-o", "json", ...addresses, ...health, ...token]);
  const code = await doctor.exit();
  return { code, findings: JSON.parse(doctor.out).findings };
}

describe("rollcall doctor", () => {
  it("should find what is wrong with each of four processes", async () => {
    const { code, findings } = await examine();
    expect(code).toBe(1);
    const found = (check: string, subject: RegExp) =>
      findings.filter((it) => it.check === check && subject.test(it.subject));
    expect(found("certificate", /^health-/)).toMatchObject([{ status: "problem" }]);
    expect(found("certificate", /^https:/)).toMatchObject([{ status: "problem" }]);
    expect(found("tls-chain", /./)).toEqual([]);
    expect(found("versions", /./)).toMatchObject([{ found: expect.stringContaining(OLD_VERSION) }]);
    expect(found("clock", /^admin-/)).toMatchObject([{ status: "ok" }]);
  });

  needs("libfaketime", library !== null).it("should find a clock that is ahead", async () => {
    const { findings } = await examine();
    const clocks = findings.filter(({ check, subject }) => check === "clock" && subject.startsWith("registry-"));
    expect(clocks).toMatchObject([{ status: "problem", found: expect.stringMatching(/^is 1m(29|30|31)s ahead of/) }]);
  });

  it("should find that a service is gone, at its port and then by its report", async () => {
    await processes.get("scheduler")?.killed();
    const { code, findings } = await examine();
    expect(code).toBe(1);
    const address = findings.find(({ check, subject }) => check === "address" && subject.includes("scheduler"));
    expect(address).toMatchObject({ status: "problem", found: "cannot be reached: connection refused" });
    await until("its lease to run out", async () => {
      const rows = await database.store.db
        .selectFrom("leases")
        .select("name")
        .where("service", "=", "scheduler")
        .execute();
      return rows.length === 0;
    });
    const later = await examine();
    expect(later.findings).toContainEqual(expect.objectContaining({ check: "processes", subject: "scheduler" }));
  });
});
