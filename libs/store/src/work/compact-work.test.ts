import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addWorkNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { compactWork } from "./compact-work.ts";
import { saveSpec } from "./execution-specs.ts";
import { saveJobVersion } from "./jobs.ts";

const DAY_MS = 86_400_000;
const SIGNAL = new AbortController().signal;
const DIGEST = Buffer.alloc(32, 1);

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  for (const name of ["active", "over"]) {
    const version = { name, type: "batch", version: 1, count: 1, spec: {}, specDigest: DIGEST } as const;
    await store.transaction((tx) => saveJobVersion(tx, { ...version, actor: "a", reason: "" }));
  }
  await store.db.updateTable("jobs").set({ state: "COMPLETED" }).where("name", "=", "over").execute();
});

afterAll(() => database.drop());

async function ended(id: string, job: string, index: number, facts: { days?: number; holds?: boolean } = {}) {
  const { days = 30, holds = false } = facts;
  await sql`
    insert into executions (id, job, version, index, node_id, desired, generation, spec_digest, millicores,
      memory_bytes, disk_bytes, state, holds, ended_at)
    values (${id}, ${job}, 1, ${index}, 'n', 'FORGET', 1, ${DIGEST}, 0, 0, 0, 'COMPLETED', ${holds},
      now() - ${days} * interval '1 day')`.execute(store.db);
  await sql`
    insert into execution_observations (execution_id, node_id, epoch, report, observed)
    values (${id}, 'n', 1, 1, 'ENDED')`.execute(store.db);
}

async function left(): Promise<readonly string[]> {
  const rows = await store.db.selectFrom("executions").select("id").orderBy("id").execute();
  const { count } = await store.db
    .selectFrom("execution_observations")
    .select((eb) => eb.fn.countAll<bigint>().as("count"))
    .executeTakeFirstOrThrow();
  expect(Number(count)).toBe(rows.length);
  return rows.map(({ id }) => id);
}

describe("compactWork()", () => {
  it("should delete what ended long ago, except what determines the next step", async () => {
    await ended("a1", "active", 0);
    await ended("a2", "active", 0);
    await ended("a3", "active", 1, { days: 1 });
    await ended("a4", "active", 2, { holds: true });
    await ended("o1", "over", 0);
    await ended("o2", "over", 0, { days: 1 });
    await ended("x1", "gone", 0);
    expect(await compactWork(store, { ageMs: 7 * DAY_MS, ofJob: 100 }, SIGNAL)).toBe(3);
    expect(await left()).toEqual(["a2", "a3", "a4", "o2"]);
    expect(await compactWork(store, { ageMs: 7 * DAY_MS, ofJob: 100 }, SIGNAL)).toBe(0);
  });

  it("should keep an execution that still runs although its end was recorded, until it has stopped", async () => {
    await addWorkNode(store, "n");
    await ended("r1", "gone", 0);
    await sql`update execution_observations set observed = 'RUNNING' where execution_id = 'r1'`.execute(store.db);
    const compact = () => compactWork(store, { ageMs: 7 * DAY_MS, ofJob: 100 }, SIGNAL);
    expect(await compact()).toBe(0);
    await sql`update execution_observations set missing = 2 where execution_id = 'r1'`.execute(store.db);
    expect(await compact()).toBe(1);
  });

  it("should keep a limited number per job, the newest", async () => {
    for (let number = 0; number < 5; number += 1) await ended(`p${number}`, "over", number, { days: 0 });
    await compactWork(store, { ageMs: 7 * DAY_MS, ofJob: 3 }, SIGNAL);
    expect(await left()).toEqual(["a2", "a3", "a4", "p2", "p3", "p4"]);
  });

  it("should delete specs and allocations that nothing needs", async () => {
    const unused = Buffer.alloc(32, 9);
    await store.transaction((tx) => saveSpec(tx, unused, Buffer.from("spec")));
    await store.transaction((tx) => saveSpec(tx, DIGEST, Buffer.from("spec")));
    await sql`update execution_specs set created_at = now() - interval '2 days'`.execute(store.db);
    await sql`insert into node_allocations (node_id) values ('gone'), ('n')`.execute(store.db);
    await compactWork(store, { ageMs: 7 * DAY_MS, ofJob: 100 }, SIGNAL);
    const specs = await store.db.selectFrom("execution_specs").select("digest").execute();
    expect(specs).toEqual([{ digest: DIGEST }]);
    const allocations = await store.db.selectFrom("node_allocations").select("node_id").execute();
    expect(allocations).toEqual([{ node_id: "n" }]);
  });
});
