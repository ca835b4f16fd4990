import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { saveProcessReport } from "../../libs/store/src/index.ts";
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

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ verdict }) => verdict === "problem");

beforeAll(async () => {
  await rig.connect("n1");
  await until("the process to report", async () => {
    const rows = await rig.store.db.selectFrom("process_reports").select("instance").execute();
    return rows.length > 0;
  });
});

/** Have the report of the rig's process say something else. */
async function report(facts: object, instance?: string): Promise<() => Promise<void>> {
  const row = await rig.store.db.selectFrom("process_reports").selectAll().executeTakeFirstOrThrow();
  const before = { instance: row.instance, service: row.service, host: row.host, facts: row.facts as never };
  await saveProcessReport(rig.store.db, { ...before, facts: { ...before.facts, ...facts }, ...(instance && { instance }) });
  return () => saveProcessReport(rig.store.db, before);
}

describe("doctor", () => {
  it("should find nothing wrong, and say what it has looked at", async () => {
    const { code, findings } = await examine();
    expect(problemsOf(findings)).toEqual([]);
    expect(findings.filter(({ verdict }) => verdict === "unknown")).toEqual([]);
    expect(code).toBe(0);
    const checks = new Set(findings.map(({ check }) => check));
    for (const check of ["address", "postgres-version", "replication", "clock", "descriptors", "versions", "agents-port"]) {
      expect(checks).toContain(check);
    }
    const { out } = await rig.run("doctor");
    expect(out).toMatch(/^CHECK +ABOUT +VERDICT +FOUND\n/);
    expect(out).toMatch(/^postgres-version +Postgres +ok +version \d+/m);
  });

  it("should find a port that is shut, and say what to do", async () => {
    const { code, out } = await rig.run("doctor", { env: { ROLLCALL_HEALTH: `127.0.0.1:${await shutPort()}` } });
    expect(code).toBe(1);
    expect(out).toMatch(/^problem: address of 127\.0\.0\.1:\d+ \(health\): cannot be reached: connection refused\n {2}do: /m);
  });

  it("should find agents' streams that cannot be reached", async () => {
    const endpoints = await rig.store.db.selectFrom("health_replicas").select("agent_endpoint").execute();
    const shut = `127.0.0.1:${await shutPort()}`;
    await rig.store.db.updateTable("health_replicas").set({ agent_endpoint: shut }).execute();
    const { code, findings } = await examine();
    await rig.store.db
      .updateTable("health_replicas")
      .set({ agent_endpoint: endpoints[0]?.agent_endpoint ?? "" })
      .execute();
    expect(code).toBe(1);
    expect(problemsOf(findings)).toMatchObject([{ check: "agents-port", subject: shut }]);
  });

  it.each([
    ["a clock that is ahead", { clockAheadMs: 90_000 }, "clock"],
    ["a clock that is behind", { clockAheadMs: -90_000 }, "clock"],
    ["a certificate that ends soon", { certificateEndsAtMs: Date.now() + 3_600_000 }, "certificate"],
    ["a process without descriptors", { openFiles: 1_000, openFilesLimit: 1_010 }, "descriptors"],
    ["a process without NATS", { natsConnected: false }, "nats"],
    ["a process that does not follow the log", { feedLagMs: 120_000 }, "log-lag"],
  ])("should find %s", async (_, facts, check) => {
    const restore = await report(facts);
    const { code, findings } = await examine();
    await restore();
    expect(code).toBe(1);
    expect(problemsOf(findings)).toMatchObject([{ check }]);
    expect(problemsOf(findings)[0]?.advice).not.toBe("");
  });

  it("should warn of processes and agents of several versions", async () => {
    const { db } = rig.store;
    const lease = { name: "old-1", instance: "old-1", service: "registry", address: "" };
    await db.insertInto("leases").values(lease).execute();
    await report({ version: "0.0.9" }, "old-1");
    const { findings } = await examine();
    await db.deleteFrom("leases").where("name", "=", "old-1").execute();
    expect(findings).toContainEqual(expect.objectContaining({ check: "versions", verdict: "warning" }));
  });

  it("should say what a Postgres setting endangers", async () => {
    const name = (await rig.store.db.selectFrom("cluster").select("cluster_id").execute()).length;
    expect(name).toBe(1);
    const { db } = rig.store;
    const { sql } = await import("kysely");
    const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(db);
    const database = sql.id(rows[0]?.name ?? "");
    await sql`alter database ${database} set synchronous_commit = off`.execute(db);
    // Connections that stand keep their settings: this one asks again.
    const { findings } = await examine();
    await sql`alter database ${database} reset synchronous_commit`.execute(db);
    expect(findings.filter(({ check }) => check === "postgres-settings")).toHaveLength(1);
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
    await rig.run(["job", "run", "-"], {});
    for (const line of commands) {
      const { code, err } = await rig.run(line.replace("NODE", "n1").replace("JOB", "none"));
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
      /^rollcall_nodes\{membership="APPROVED",health="HEALTHY",connection="CONNECTED",scheduling="ELIGIBLE"\} 1$/m,
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
