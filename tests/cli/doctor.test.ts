import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { fingerprintOf } from "../../libs/identity/src/index.ts";
import { openSession } from "../../libs/postgres-embedded/test/embedded-servers.ts";
import { type ProcessFacts, saveProcessReport } from "../../libs/store/src/index.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { until } from "../../libs/testkit/src/index.ts";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { FaultProxy } from "../../libs/testkit/src/wire/fault-proxy.ts";
import { workspaceRoot } from "../support/workspace.ts";
import { useControlPlane } from "./support/cli-rig.ts";

interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly status: string;
  readonly found: string;
  readonly advice: string;
}

const rig = useControlPlane();

async function examine(options = ""): Promise<{ readonly code: number; readonly findings: readonly Finding[] }> {
  const { code, out } = await rig.run(`doctor -o json ${options}`.trim());
  return { code, findings: JSON.parse(out).findings };
}

/**
 * The settings that make the Postgres of the tests fast but unsafe. They are real problems, so every run finds them.
 */
const UNSAFE = ["fsync", "full_page_writes", "synchronous_commit"];

/** The measurements that vary on a busy machine. */
const BY_LOAD = ["store-latency", "postgres-latency", "log-lag", "clock", "report"];

const HEALTHY_FACTS: ProcessFacts = {
  ...{ version: "0.1.0", nodeVersion: "24.0.0", clockAheadMs: 0, storeLatencyMs: 1, feedLagMs: 1_000 },
  ...{ openFiles: 100, openFilesLimit: 1_024, certificateEndsAtMs: null, natsConnected: null },
  ...{ lacksNotifications: false, callsWaitingMs: 0 },
};

let others = 0;

/**
 * Write the report of another process. It lasts until the lease of the process expires. Returns the process's instance.
 */
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

const silentProxies: FaultProxy[] = [];
afterAll(() => Promise.all(silentProxies.map((proxy) => proxy.close())));

describe("doctor", () => {
  it("should find addresses that accept connections and do not answer, and not blame Postgres", async () => {
    const proxy = await FaultProxy.start(Number(rig.address.split(":")[1]));
    proxy.silence(true);
    try {
      const env = { ROLLCALL_SERVER: `127.0.0.1:${proxy.port}` };
      const { code, out } = await rig.run("doctor -o json --timeout 1s", { env });
      const unchecked = "could not be checked: its address does not answer";
      expect({ code, findings: JSON.parse(out).findings }).toMatchObject({
        code: 1,
        findings: [
          { check: "address", status: "problem", found: "accepts connections, but does not answer" },
          { check: "upkeep", status: "unknown", found: unchecked },
          { check: "deployment", status: "unknown", found: unchecked },
          { check: "webhooks", status: "unknown", found: unchecked },
        ],
      });
    } finally {
      await proxy.close();
    }
  });

  it("should report the problems, and what else it has checked", async () => {
    const { code, findings } = await examine();
    const certain = findings.filter(({ check }) => !BY_LOAD.includes(check));
    expect(certain.filter(({ status }) => status === "problem").map(({ subject }) => subject)).toEqual(UNSAFE);
    expect(findings.filter(({ status }) => status === "unknown")).toEqual([]);
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
    expect(out).toMatch(/^CHECK +ABOUT +STATUS +FOUND\n/);
    expect(out).toMatch(/^postgres-version +Postgres +ok +version \d+/m);
  });

  it("should find a closed port, and say what to do", async () => {
    const { code, out } = await rig.run("doctor", { env: { ROLLCALL_HEALTH: `127.0.0.1:${await shutPort()}` } });
    expect(code).toBe(1);
    expect(out).toMatch(
      /^problem: address of 127\.0\.0\.1:\d+ \(health\): cannot be reached: connection refused\n {2}do: /m,
    );
  });

  it.each([
    ["cannot be reached", /^cannot be reached: /, shutPort],
    ["do not answer", /^accepts connections, but does not answer$/, silentPort],
  ] as const)("should find agents' streams that %s", async (_, found, port) => {
    const instance = await report({});
    const agent_endpoint = `127.0.0.1:${await port()}`;
    const addresses = { agent_endpoint, internal_address: "", query_endpoint: "" };
    await rig.store.db
      .insertInto("health_replicas")
      .values({ instance, ...addresses })
      .execute();
    const { code, findings } = await examine("--timeout 2s");
    expect(code).toBe(1);
    const about = findings.filter(({ subject }) => subject === agent_endpoint);
    expect(about).toMatchObject([{ check: "agents-port", status: "problem", found: expect.stringMatching(found) }]);
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
    const about = findings.filter(({ subject, status }) => subject === instance && status !== "ok");
    expect(about).toMatchObject([{ check, status: "problem" }]);
    expect(about[0]?.advice).not.toBe("");
  });

  it("should name the session that holds a lock, and the checks that the lock prevented", async () => {
    const locker = await openSession(rig.store.address.url);
    await locker.query("begin; lock table nodes in access exclusive mode");
    const { findings } = await examine();
    await locker.end();
    expect(findings).toContainEqual(
      expect.objectContaining({
        ...{ check: "postgres-waits", subject: "Lock relation", status: "problem" },
        found: expect.stringMatching(/; pid \d+ \(.*idle in transaction\) holds the lock$/),
        advice: expect.stringMatching(/^end the holder of the lock: select pg_terminate_backend\(\d+\)$/),
      }),
    );
    expect(findings).toContainEqual(
      expect.objectContaining({ check: "postgres-answers", subject: "agent_versions", status: "problem" }),
    );
  });

  it("should warn of processes of several versions", async () => {
    await report({ version: "0.0.9" });
    const { findings } = await examine();
    expect(findings).toContainEqual(expect.objectContaining({ check: "versions", status: "warning" }));
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
    expect(about(inUse)).toMatchObject([{ status: "ok" }]);
    expect(about(announced)).toMatchObject([{ status: "warning", found: expect.stringContaining("n1") }]);
    const check = `doctor --certificate ${certFile}`;
    expect(await rig.run(check)).toMatchObject({ code: 1, out: expect.stringContaining("locks out n1") });
    await trust(inUse, announced);
    expect(await rig.run(check)).toMatchObject({ code: 0, out: expect.stringContaining("locks out none of 1 agent") });
    const unusable = await rig.run(`doctor --certificate ${join(folder, "missing.pem")}`);
    expect(unusable).toMatchObject({ code: 2, err: expect.stringContaining("missing.pem: no such file") });
    const restored = { info: JSON.stringify(before), info_digest };
    await rig.store.db.updateTable("nodes").set(restored).where("id", "=", "n1").execute();
    rmSync(folder, { recursive: true, force: true });
  });

  it("should name nodes whose agents cannot determine a resource", async () => {
    const found = async () => (await examine()).findings.filter(({ check }) => check === "resources");
    expect(await found()).toMatchObject([{ status: "ok", subject: "nodes" }]);
    const node = rig.store.db.selectFrom("nodes").select("info").where("id", "=", "n1");
    const { info: before } = await node.executeTakeFirstOrThrow();
    const save = (info: unknown) =>
      rig.store.db
        .updateTable("nodes")
        .set({ info: JSON.stringify(info) })
        .where("id", "=", "n1")
        .execute();
    await save({ unknownFacts: [{ fact: "disk_bytes", reason: "EIO" }] });
    const unknown = { status: "warning", subject: "n1", found: expect.stringContaining("DISK_UNKNOWN") };
    expect(await found()).toMatchObject([unknown]);
    await save(before);
  });

  it("should name the checks that a viewer's token does not allow", async () => {
    const env = { ROLLCALL_TOKEN: await rig.createToken("viewer") };
    const { code, out } = await rig.run("doctor", { env });
    expect(code).toBe(3);
    const missing = ["deployment", "webhooks"].map(
      (check) => `unknown: ${check} of admin: could not be checked: .*\\n`,
    );
    expect(out).toMatch(new RegExp(`^${missing.join("")} {2}do: .*role admin`, "m"));
  });

  it("should refuse unknown words and formats", async () => {
    expect((await rig.run("doctor -o csv")).code).toBe(2);
    expect((await rig.run("doctor --help")).out).toContain("Exit codes: 0 if there is no problem");
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

  needs("promtool", hasPromtool).it("should follow the conventions of Prometheus", async () => {
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input: await rig.metrics(),
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  it("should count the cluster in the process that does upkeep", async () => {
    await until("the cluster to be counted", async () => (await rig.metrics()).includes("rollcall_nodes{"));
    expect(await rig.metrics()).toMatch(
      // Accept any scheduling state, because the commands of the runbook drain the node.
      /^rollcall_nodes\{membership="APPROVED",health="HEALTHY",connection="CONNECTED",scheduling="[A-Z]+"\} 1$/m,
    );
  });
});

/** Find a port on which nothing is listening. */
async function shutPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/**
 * Return the port of a server that accepts connections and never responds. The server listens until the test file ends.
 */
async function silentPort(): Promise<number> {
  const proxy = await FaultProxy.start(Number(rig.address.split(":")[1]));
  proxy.silence(true);
  silentProxies.push(proxy);
  return proxy.port;
}
