import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { fingerprintOf } from "../../libs/identity/src/index.ts";
import { openSession } from "../../libs/postgres-embedded/test/embedded-servers.ts";
import { type ProcessFacts, saveProcessReport } from "../../libs/store/src/index.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { until } from "../../libs/testkit/src/index.ts";
import { workspaceRoot } from "../support/workspace.ts";
import { useControlPlane } from "./support/cli-rig.ts";

interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly verdict: string;
  readonly found: string;
  readonly advice: string;
}

const rig = useControlPlane();

async function examine(options = ""): Promise<{ readonly code: number; readonly findings: readonly Finding[] }> {
  const { code, out } = await rig.run(`doctor -o json ${options}`.trim());
  return { code, findings: JSON.parse(out).findings };
}

/** With these the Postgres of the tests is fast and not safe: real problems, found in every run. */
const UNSAFE = ["fsync", "full_page_writes", "synchronous_commit"];

/** Measured on a machine that does much else. */
const BY_LOAD = ["record-latency", "postgres-latency", "log-lag", "clock", "report"];

const HEALTHY_FACTS: ProcessFacts = {
  ...{ version: "0.1.0", nodeVersion: "24.0.0", clockAheadMs: 0, recordLatencyMs: 1, feedLagMs: 1_000 },
  ...{ openFiles: 100, openFilesLimit: 1_024, certificateEndsAtMs: null, natsConnected: null },
  ...{ lacksNotifications: false, callsWaitingMs: 0 },
};

let others = 0;

/** Have another process report, until its lease runs out. Returns its instance. */
async function report(facts: Partial<ProcessFacts>): Promise<string> {
  others += 1;
  const instance = `other-${others}`;
  const { db } = rig.store;
  await db.insertInto("leases").values({ name: instance, instance, service: "registry", address: "" }).execute();
  await saveProcessReport(db, { instance, service: "registry", host: "other", facts: { ...HEALTHY_FACTS, ...facts } });
  return instance;
}

beforeAll(async () => {
  await rig.connect("n1");
  await until("the process to report", async () => {
    const rows = await rig.store.db.selectFrom("process_reports").select("instance").execute();
    return rows.length > 0;
  });
});

describe("doctor", () => {
  it("should find what is wrong, and say what else it has looked at", async () => {
    const { code, findings } = await examine();
    const certain = findings.filter(({ check }) => !BY_LOAD.includes(check));
    expect(certain.filter(({ verdict }) => verdict === "problem").map(({ subject }) => subject)).toEqual(UNSAFE);
    expect(findings.filter(({ verdict }) => verdict === "unknown")).toEqual([]);
    expect(code).toBe(1);
    const checks = new Set(findings.map(({ check }) => check));
    for (const check of [
      "address",
      "postgres-version",
      "replication",
      "clock",
      "descriptors",
      "versions",
      "agents-port",
    ]) {
      expect(checks).toContain(check);
    }
    const { out } = await rig.run("doctor");
    expect(out).toMatch(/^CHECK +ABOUT +VERDICT +FOUND\n/);
    expect(out).toMatch(/^postgres-version +Postgres +ok +version \d+/m);
  });

  it("should find a port that is shut, and say what to do", async () => {
    const { code, out } = await rig.run("doctor", { env: { ROLLCALL_HEALTH: `127.0.0.1:${await shutPort()}` } });
    expect(code).toBe(1);
    expect(out).toMatch(
      /^problem: address of 127\.0\.0\.1:\d+ \(health\): cannot be reached: connection refused\n {2}do: /m,
    );
  });

  it("should find agents' streams that cannot be reached", async () => {
    const instance = await report({});
    const agent_endpoint = `127.0.0.1:${await shutPort()}`;
    const addresses = { agent_endpoint, internal_address: "", query_endpoint: "" };
    await rig.store.db
      .insertInto("health_replicas")
      .values({ instance, ...addresses })
      .execute();
    const { code, findings } = await examine();
    expect(code).toBe(1);
    const about = findings.filter(({ subject }) => subject === agent_endpoint);
    expect(about).toMatchObject([{ check: "agents-port", verdict: "problem" }]);
  });

  it.each([
    ["a clock that is ahead", { clockAheadMs: 90_000 }, "clock"],
    ["a clock that is behind", { clockAheadMs: -90_000 }, "clock"],
    ["a certificate that ends soon", { certificateEndsAtMs: Date.now() + 3_600_000 }, "certificate"],
    ["a process without descriptors", { openFiles: 1_000, openFilesLimit: 1_010 }, "descriptors"],
    ["a process without NATS", { natsConnected: false }, "nats"],
    ["a process that does not follow the log", { feedLagMs: 120_000 }, "log-lag"],
    ["a process whose calls wait for connections", { callsWaitingMs: 4_800 }, "calls-wait"],
    ["a process without notifications", { lacksNotifications: true }, "notifications"],
  ])("should find %s", async (_, facts, check) => {
    const instance = await report(facts);
    const { code, findings } = await examine();
    expect(code).toBe(1);
    const about = findings.filter(({ subject, verdict }) => subject === instance && verdict !== "ok");
    expect(about).toMatchObject([{ check, verdict: "problem" }]);
    expect(about[0]?.advice).not.toBe("");
  });

  it("should name the session that holds a lock, and what it could not learn for that", async () => {
    const locker = await openSession(rig.store.address.url);
    await locker.query("begin; lock table nodes in access exclusive mode");
    const { findings } = await examine();
    await locker.end();
    expect(findings).toContainEqual(
      expect.objectContaining({
        ...{ check: "postgres-waits", subject: "Lock relation", verdict: "problem" },
        found: expect.stringMatching(/which pid \d+ \(.*idle in transaction\) holds$/),
        advice: expect.stringMatching(/^end what holds the lock: select pg_terminate_backend\(\d+\)$/),
      }),
    );
    expect(findings).toContainEqual(
      expect.objectContaining({ check: "postgres-answers", subject: "agent_versions", verdict: "problem" }),
    );
  });

  it("should warn of processes of several versions", async () => {
    await report({ version: "0.0.9" });
    const { findings } = await examine();
    expect(findings).toContainEqual(expect.objectContaining({ check: "versions", verdict: "warning" }));
  });

  it("should count the agents that an authority or a certificate would lock out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rollcall-doctor-"));
    const [present, next] = [new TestAuthority(folder), new TestAuthority(mkdtempSync(join(folder, "next-")))];
    const { certFile } = next.write("server", { names: ["cp.example", "127.0.0.1"] });
    appendFileSync(certFile, readFileSync(next.caFile));
    const [inUse, announced] = [present, next].map(({ caFile }) =>
      fingerprintOf(new X509Certificate(readFileSync(caFile))),
    );
    await report({ authorities: [inUse ?? "", announced ?? ""], certificateAuthority: inUse ?? "" });
    const nodes = rig.store.db.selectFrom("nodes").select(["info", "info_digest"]).where("id", "=", "n1");
    const { info: before, info_digest } = await nodes.executeTakeFirstOrThrow();
    const trust = async (...authorities: readonly (string | undefined)[]) => {
      const info = { trust: { source: "TRUST_SOURCE_ANNOUNCED", authorities, serverName: "cp.example" } };
      await rig.store.db
        .updateTable("nodes")
        .set({ info: JSON.stringify(info), info_digest: "00".repeat(32) })
        .where("id", "=", "n1")
        .execute();
    };
    await trust(inUse);
    const { findings } = await examine();
    const about = (subject: string | undefined) =>
      findings.filter((it) => it.check === "agent-trust" && it.subject === subject);
    expect(about(inUse)).toMatchObject([{ verdict: "ok" }]);
    expect(about(announced)).toMatchObject([{ verdict: "warning", found: expect.stringContaining("n1") }]);
    const check = `doctor --certificate ${certFile}`;
    expect(await rig.run(check)).toMatchObject({ code: 1, out: expect.stringContaining("locks out n1") });
    await trust(inUse, announced);
    expect(await rig.run(check)).toMatchObject({ code: 0, out: expect.stringContaining("locks out none of 1 agents") });
    const unusable = await rig.run(`doctor --certificate ${join(folder, "missing.pem")}`);
    expect(unusable).toMatchObject({ code: 2, err: expect.stringContaining("missing.pem: no such file") });
    const restored = { info: JSON.stringify(before), info_digest };
    await rig.store.db.updateTable("nodes").set(restored).where("id", "=", "n1").execute();
    rmSync(folder, { recursive: true, force: true });
  });

  it("should say what a viewer's token does not let it check", async () => {
    const env = { ROLLCALL_TOKEN: await rig.createToken("viewer") };
    const { code, out } = await rig.run("doctor", { env });
    expect(code).toBe(3);
    expect(out).toMatch(/^unknown: deployment of admin: could not be checked: .*\n {2}do: .*role admin/m);
  });

  it("should refuse words and formats that it does not know", async () => {
    expect((await rig.run("doctor -o csv")).code).toBe(2);
    expect((await rig.run("doctor --help")).out).toContain("Exit codes: 0 when nothing is wrong");
  });
});

describe("docs/runbook.md", () => {
  const page = readFileSync(join(workspaceRoot, "docs/runbook.md"), "utf8");
  const commands = [...new Set([...page.matchAll(/`rollcall ([a-z][^`]*)`/g)].map(([, words = ""]) => words))];

  it("should name commands that work", async () => {
    expect(commands.length).toBeGreaterThan(5);
    for (const line of commands) {
      const { code, err } = await rig.run(
        line.replace("NODE", "n1").replace("JOB", "none").replace("--now", "--now --yes"),
      );
      expect({ line, code, err: code === 2 ? err : "" }).toMatchObject({ line, err: "" });
    }
  });
});

describe("/metrics", () => {
  const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

  (hasPromtool ? it : it.skip)("should follow the conventions of Prometheus", async () => {
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input: await rig.metrics(),
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  it("should count the cluster in the process that does upkeep", async () => {
    await until("the cluster to be counted", async () => (await rig.metrics()).includes("rollcall_nodes{"));
    expect(await rig.metrics()).toMatch(
      // The runbook's commands drain it.
      /^rollcall_nodes\{membership="APPROVED",health="HEALTHY",connection="CONNECTED",scheduling="[A-Z]+"\} 1$/m,
    );
  });
});

/** A port at which nothing listens just now. */
async function shutPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
