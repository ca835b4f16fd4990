import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createGate, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import { sql } from "kysely";
import { endOwnProcess } from "../leases/process-end.ts";
import { takeCensus } from "./cluster-census.ts";
import { listProcessReports, type ProcessFacts, saveProcessReport } from "./process-reports.ts";
import {
  countAgentTrust,
  countAgentVersions,
  listStatementWaits,
  listUncontainedNodes,
  listUnknownResources,
  readStoreFacts,
} from "./store-facts.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const NOTHING = { nodes: [], conditions: [], jobs: [], executions: [], leases: [], head: 0n };

describe("takeCensus()", () => {
  it("should count nodes, jobs, executions and leases, and return the head of the log", async () => {
    const { db } = database.store;
    expect(await takeCensus(database.store)).toEqual(NOTHING);
    await addNode(database.store, "n1");
    await addNode(database.store, "n2");
    await addNode(database.store, "control", { type: "ORCHESTRATOR" });
    await db.insertInto("leases").values({ name: "a", instance: "a", service: "registry", address: "" }).execute();
    await sql`
      insert into jobs (name, type, version, count, spec, spec_digest, actor)
      values ('web', 'service', 1, 1, '{}', '', 'token:1')`.execute(db);
    for (const [id, state] of Object.entries({ e1: "LIVE", e2: "ORPHANED", e3: "COMPLETED" })) {
      await sql`
        insert into executions
          (id, job, version, index, node_id, desired, generation, spec_digest, millicores, memory_bytes, disk_bytes,
            state)
        values (${id}, 'web', 1, 0, 'n1', 'RUN', 1, '', 0, 0, 0, ${state})`.execute(db);
    }
    const census = await takeCensus(database.store);
    expect(census.nodes).toEqual([expect.objectContaining({ membership: "APPROVED", count: 2 })]);
    expect(census.jobs).toEqual([{ type: "service", state: "ACTIVE", count: 1 }]);
    expect(census.executions.map(({ count }) => count)).toEqual([1, 1]);
    expect(census.executions.map(({ state }) => state)).toContain("ORPHANED");
    expect(census.leases).toEqual([{ service: "registry", count: 1, oldestMs: expect.any(Number) }]);
  });
});

describe("takeCensus() of nodes", () => {
  it("should count each node in the group of its states", async () => {
    const fresh = await createTestDatabase();
    const holds = {
      ELIGIBLE: [],
      INELIGIBLE: [{ kind: "OPERATOR" }],
      DRAINING: [{ kind: "DRAIN" }],
      DRAINED: [{ kind: "DRAIN", drained: true }],
    };
    const groups = (["PENDING", "APPROVED", "REJECTED"] as const).flatMap((membership) =>
      Object.entries(holds).map(([scheduling, held]) => ({ membership, scheduling, held: JSON.stringify(held) })),
    );
    for (const [index, { membership, held }] of groups.entries()) {
      await addNode(fresh.store, `n${index}`, { membership });
      await sql`update nodes set holds = ${held} where id = ${`n${index}`}`.execute(fresh.store.db);
    }
    await sql`update node_sessions set marked = true where node_id = 'n5'`.execute(fresh.store.db);
    const { nodes } = await takeCensus(fresh.store);
    await fresh.drop();
    const known = nodes.map(({ membership, scheduling, health, count }) => [membership, scheduling, health, count]);
    expect(known.toSorted()).toEqual(
      groups
        .map(({ membership, scheduling }, index) => [membership, scheduling, index === 5 ? "UNHEALTHY" : "UNKNOWN", 1])
        .toSorted(),
    );
  });
});

describe("saveProcessReport()", () => {
  const facts: ProcessFacts = {
    ...{
      version: "0.1.0",
      nodeVersion: "24.0.0",
      clockAheadMs: -2,
      storeLatencyMs: 1,
      feedLagMs: 3,
      callsWaitingMs: 0,
    },
    lacksNotifications: false,
    ...{ openFiles: 10, openFilesLimit: null, certificateEndsAtMs: null, natsConnected: null },
  };

  it("should keep one report per process while the process holds its lease", async () => {
    const { store } = database;
    const lease = { name: "p-1", instance: "p-1", service: "admin", address: "" };
    const report = { instance: "p-1", service: "admin", host: "h", facts };
    await saveProcessReport(store.db, report);
    expect(await listProcessReports(store.db)).toEqual([]);
    await store.db.insertInto("leases").values(lease).execute();
    await saveProcessReport(store.db, { ...report, facts: { ...facts, openFiles: 11 } });
    expect(await listProcessReports(store.db)).toEqual([
      { ...report, facts: { ...facts, openFiles: 11 }, ageMs: expect.any(Number) },
    ]);
    await endOwnProcess(store, "p-1");
    expect(await store.db.selectFrom("process_reports").select("instance").execute()).toEqual([]);
  });

  it("should delete day-old reports with the next report", async () => {
    const { db } = database.store;
    await saveProcessReport(db, { instance: "old", service: "admin", host: "h", facts });
    await sql`update process_reports set reported_at = now() - interval '25 hours'`.execute(db);
    await saveProcessReport(db, { instance: "new", service: "admin", host: "h", facts });
    const rows = await db.selectFrom("process_reports").select("instance").execute();
    expect(rows).toEqual([{ instance: "new" }]);
  });
});

describe("readStoreFacts()", () => {
  it("should return version, settings, connections and standbys", async () => {
    const facts = await readStoreFacts(database.store.db);
    expect(facts.versionNumber).toBeGreaterThanOrEqual(130_000);
    expect(facts.settings.max_connections).toMatch(/^\d+$/);
    expect(facts.settings).toHaveProperty("fsync");
    expect(facts.connections).toBeGreaterThan(0);
    expect(facts).toMatchObject({ isStandby: false, standbys: [] });
  });
});

describe("listStatementWaits()", () => {
  it("should report what statements wait for, with the session that holds the lock", async () => {
    const holder = await database.openStore("the holder");
    const gate = createGate();
    const holding = holder.transaction(async (tx) => {
      await sql`lock table nodes in access exclusive mode`.execute(tx);
      await gate.passed;
    });
    await until("the lock", async () => {
      const { rows } = await sql`
        select from pg_locks where mode = 'AccessExclusiveLock' and relation = 'nodes'::regclass and granted
      `.execute(database.store.db);
      return rows.length > 0;
    });
    const waiting = countAgentVersions(database.store.db);
    const [wait] = await until("the wait to be listed", async () => {
      const waits = await listStatementWaits(database.store.db);
      return waits.length > 0 && waits;
    });
    expect(wait).toEqual({
      ...{ type: "Lock", event: "relation", statements: 1, longestMs: expect.any(Number) },
      heldBy: expect.stringMatching(/^pid \d+ \(the holder, idle in transaction\)$/),
    });
    gate.open();
    await Promise.all([holding, waiting]);
    expect(await listStatementWaits(database.store.db)).toEqual([]);
  });
});

describe("countAgentVersions()", () => {
  it("should count approved nodes by the version that they report", async () => {
    const { db } = database.store;
    await sql`update nodes set info = '{"agentVersion": "0.3.0"}' where id = 'n2'`.execute(db);
    const versions = await countAgentVersions(db);
    expect(versions).toContainEqual({ version: "0.3.0", nodes: 1 });
  });
});

describe("countAgentTrust()", () => {
  it("should count approved nodes that report the same trust, and name the first ten", async () => {
    const fresh = await createTestDatabase();
    const { db } = fresh.store;
    for (let at = 10; at < 22; at += 1) await addNode(fresh.store, `n${at}`);
    await addNode(fresh.store, "pending", { membership: "PENDING" });
    await addNode(fresh.store, "kit");
    const trust = { source: "TRUST_SOURCE_ANNOUNCED", authorities: ["sha256:a"], serverName: "cp.example" };
    await sql`update nodes set info = ${JSON.stringify({ trust })} where id <> 'kit'`.execute(db);
    await sql`update nodes set info = '{}' where id = 'kit'`.execute(db);
    const first = Array.from({ length: 10 }, (_, at) => `n${at + 10}`);
    expect(await countAgentTrust(db)).toEqual([
      { trust, nodes: 12, nodeIds: first },
      { trust: null, nodes: 1, nodeIds: ["kit"] },
    ]);
    await fresh.drop();
  });
});

describe("listUncontainedNodes()", () => {
  it("should list approved nodes that cannot end all their processes", async () => {
    const { db } = database.store;
    const report = (containment: string) => JSON.stringify({ work: { isolation: { containment } } });
    await sql`update nodes set info = ${report("WORK_CONTAINMENT_CGROUP")} where id = 'n1'`.execute(db);
    expect(await listUncontainedNodes(db)).toEqual([]);
    await sql`update nodes set info = ${report("WORK_CONTAINMENT_MISSING")} where id = 'n2'`.execute(db);
    expect(await listUncontainedNodes(db)).toEqual(["n2"]);
  });
});

describe("listUnknownResources()", () => {
  it("should list approved nodes with the reasons of the resources that their agents cannot determine", async () => {
    const { db } = database.store;
    const report = (...facts: readonly string[]) => JSON.stringify({ unknownFacts: facts.map((fact) => ({ fact })) });
    await sql`update nodes set info = ${report("hostname")} where id = 'n1'`.execute(db);
    expect(await listUnknownResources(db)).toEqual([]);
    await sql`update nodes set info = ${report("memory_bytes", "gpus")} where id = 'n2'`.execute(db);
    expect(await listUnknownResources(db)).toEqual([{ nodeId: "n2", reasons: ["MEMORY_UNKNOWN", "GPUS_UNKNOWN"] }]);
  });
});
