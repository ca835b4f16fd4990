import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { listHealthReplicas, type Store } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type FakeStream, type TestDatabase } from "@rollcall/testkit";
import pg from "pg";
import { register } from "./testing/record.ts";
import { type TestReplica, TestReplicas } from "./testing/test-replica.ts";

/** Long thresholds, because this test runs in real time and a busy machine can be slow. */
const REAL_THRESHOLDS = {
  "Orchestrator.NodeManager.DisconnectTimeout": 900_000,
  "Orchestrator.NodeManager.UnknownTimeout": 3_600_000,
};

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

describe("createApp()", () => {
  it("should advertise its addresses as long as it runs", async () => {
    const replica = await replicas.start({ store });
    const endpoints = {
      agentEndpoint: ":7701",
      internalAddress: "127.0.0.1:7720",
      queryEndpoint: "127.0.0.1:7711",
    };
    replica.app.advertise(endpoints);
    await eventually(async () => {
      expect(await listHealthReplicas(store.db)).toEqual([{ instance: replica.instance, ...endpoints, sessions: 0 }]);
    });
    await store.db.deleteFrom("health_replicas").execute();
    // Taking the lease advertises the replica again, because others may have withdrawn its row while the lease was in
    // doubt.
    await replica.takeLease();
    await eventually(async () => expect(await listHealthReplicas(store.db)).toHaveLength(1));
    await replica.close();
    expect(await store.db.selectFrom("health_replicas").selectAll().execute()).toEqual([]);
  });

  it("should report whether agents can be admitted", async () => {
    const replica = await replicas.start({ store });
    expect(replica.app.ready()).toEqual({ agents: { ok: true, message: "0 agents connected" } });
    replica.app.onLeaseDoubt({ sinceMs: 0 });
    expect(replica.app.ready().agents).toMatchObject({ ok: false });
    replica.app.onLeaseHeld();
    await replica.app.close();
    expect(replica.app.ready().agents).toEqual({ ok: false, message: "the process is shutting down" });
  });

  it("should count what it holds", async () => {
    const replica = await replicas.start({ store });
    const agent = agents.create("counted");
    await register(store, [agent]);
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    await stream.beatAcknowledged();
    expect(await replica.metric("rollcall_health_sessions")).toBe(1);
    expect(await replica.metric("rollcall_health_nodes_held")).toBe(1);
    expect(await replica.metric("rollcall_health_beats_total")).toBe(2);
    stream.breakConnection();
    await eventually(async () => {
      expect(await replica.metric("rollcall_health_sessions")).toBe(0);
      const line = 'rollcall_health_transitions_total{kind="connection",state="DISCONNECTED"}';
      expect(await replica.metric(line)).toBe(1);
    });
    expect(await replica.metric("rollcall_health_nodes_held")).toBe(1);
  });

  it("should change no row while 1,000 agents send heartbeats and unchanged information", async () => {
    const replica = await replicas.start({ store, clock: systemClock, config: REAL_THRESHOLDS });
    const crowd = Array.from({ length: 1_000 }, (_, index) => agents.create(`crowd${index}`));
    await register(store, crowd);
    const streams = await joinAll(replica, crowd);
    await reportAll(streams);
    await eventually(() => expect(replica.app.replica.nodes.sessions).toBe(1_000));
    await settled();
    const before = await rowVersions();
    for (let round = 0; round < 3; round++) await reportAll(streams);
    expect(replica.app.replica.beats).toBe(4_000);
    expect(await rowVersions()).toEqual(before);
  });
});

async function joinAll(
  replica: TestReplica,
  crowd: readonly ReturnType<FakeAgents["create"]>[],
): Promise<readonly FakeStream[]> {
  const streams: FakeStream[] = [];
  // Connect in groups, because with a thousand connections at once, some would exceed the time limit for the Hello on
  // a busy machine.
  for (let from = 0; from < crowd.length; from += 100) {
    const group = crowd.slice(from, from + 100);
    streams.push(...(await Promise.all(group.map((agent) => agent.join(replica.address)))));
  }
  return streams;
}

/** Let each agent send its node information again, and a heartbeat with its usage. */
async function reportAll(streams: readonly FakeStream[]): Promise<void> {
  const usage = { cpuPercent: 12, memoryUsedMib: 1_000, gpus: [{ index: 0 }, { index: 1 }] };
  await Promise.all(
    streams.map(async (stream) => {
      stream.send({ case: "nodeInfo", value: { hostname: "h", labels: { zone: "a" } } });
      await stream.beatAcknowledged(usage);
    }),
  );
}

/** Wait until the initial reports are written. */
async function settled(): Promise<void> {
  await eventually(async () => {
    const { rows } = await query<{ waiting: string }>(
      "select count(*) as waiting from nodes join node_sessions on id = node_id where info is null or health " +
        "<> 'HEALTHY'",
    );
    // The previous test leaves one node behind.
    expect(Number(rows[0]?.waiting)).toBeLessThanOrEqual(1);
  });
}

/**
 * The version of each row, keyed by table, without leases. Postgres's own change counters would also work, but its
 * backends update them late.
 */
async function rowVersions(): Promise<Readonly<Record<string, unknown>>> {
  const tables = await query<{ name: string }>(
    "select relname as name from pg_stat_user_tables where relname <> 'leases' order by relname",
  );
  const versions: Record<string, unknown> = {};
  for (const { name } of tables.rows) {
    const { rows } = await query(
      `select count(*), md5(string_agg(xmin::text || ctid::text, ',' order by ctid)) from ${name}`,
    );
    versions[name] = rows;
  }
  return versions;
}

async function query<R extends pg.QueryResultRow>(text: string): Promise<pg.QueryResult<R>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await client.query<R>(text);
  } finally {
    await client.end();
  }
}
